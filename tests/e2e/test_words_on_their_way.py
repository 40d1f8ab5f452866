"""Words that the server has not taken yet: none is lost, and none goes elsewhere."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import screenshot
from tests.e2e.people import (
    HOME,
    expect_idle,
    leave_sidebar,
    open_chat,
    open_sidebar,
    say,
    send,
    tool_card,
)


def hold_requests(page: Page, address: str, method: str) -> list[Route]:
    """Let no request of this kind go on before the journey does; gives those that wait."""
    waiting: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method == method:
            waiting.append(route)
        else:
            route.continue_()

    page.route(address, hold)
    return waiting


@pytest.fixture
def held(member: Page) -> list[Route]:
    """Requests that begin a chat, on the start page."""
    member.goto(HOME)
    member.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    return hold_requests(member, "**/api/conversations/", "POST")


def begin(member: Page, words: str) -> None:
    """Send the first words, and wait until they are asked of the server."""
    with member.expect_request(lambda one: one.method == "POST" and "/conversations/" in one.url):
        say(member, words)


def test_a_chat_whose_code_is_on_its_way_has_a_place_and_is_fetched_in_one_step(
    member: Page,
) -> None:
    """REL-3144: on a slow network its page is not blank, and what its code imports is asked for along with it."""
    open_chat(member, "Clock", "What time is it in Oslo?")
    expect_idle(member)
    held = hold_requests(member, "**/web/conversation-*.js", "GET")
    with member.expect_request("**/web/render-*.js"):
        member.reload(wait_until="commit")
    assert held
    expect(member.locator("main").get_by_text("Loading the conversation")).to_have_count(1)
    expect(open_sidebar(member).locator("li.chat-row").first).to_be_visible()
    leave_sidebar(member)
    for one in held:
        one.continue_()
    expect(member.locator("article.answer")).to_contain_text("In Oslo it is now")


def test_words_typed_while_a_chat_begins_go_along(member: Page, held: list[Route]) -> None:
    """REL-1259: on a slow network people have written on when the new chat opens."""
    begin(member, "What time is it in Tokyo?")
    field = member.get_by_role("textbox", name="Message").first
    expect(field).to_have_value("")
    field.press_sequentially("And in Rome?")
    held[0].continue_()
    member.wait_for_url("**/c/**")
    expect(member.locator(".user-message")).to_contain_text("What time is it in Tokyo?")
    expect(field).to_have_value("And in Rome?")
    expect_idle(member)
    member.goto("/w/demo/")
    expect(field).to_have_value("")


def choose_notes_slowly(member: Page) -> list[Route]:
    """Choose the bud *Notes*; the server is not asked before the request that this gives goes on."""
    held = hold_requests(member, "**/api/conversations/*/", "PATCH")
    member.locator(".composer-bar").get_by_role("button", name=re.compile("^Bud and model")).click()
    choosing = member.get_by_role("dialog", name="Bud and model")
    with member.expect_request(lambda one: one.method == "PATCH"):
        choosing.get_by_role("option", name=re.compile("Notes")).click()
    return held


def test_words_wait_for_the_bud_that_was_chosen(member: Page) -> None:
    """REL-1702: on a slow network they go to the bud that stands chosen, and not to the one before."""
    open_chat(member, "Clock", "What time is it in Tokyo?")
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    held = choose_notes_slowly(member)
    say(member, 'Read the note "ideas"')
    expect(member.locator(".user-message").last).to_contain_text("ideas")
    held[0].continue_()
    expect(tool_card(member)).to_contain_text("notes")
    expect_idle(member)


def test_words_wait_where_the_chosen_bud_is_refused(member: Page) -> None:
    """REL-1802: they stand in the field again, in their order, and the bud before gets none of them."""
    open_chat(member, "Clock", "What time is it in Perth?")
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    held = choose_notes_slowly(member)
    for words in ("First of all", "And then"):
        say(member, words)
        expect(member.locator(".user-message").last).to_contain_text(words)
    why = {"code": "conflict", "detail": "An answer is being written.", "attr": None}
    held[0].fulfill(status=409, json={"errors": [why]})
    expect(member.get_by_text("is in the message field again")).to_be_visible()
    expect(member.get_by_role("textbox", name="Message").first).to_have_value(
        "First of all\n\nAnd then"
    )
    expect(member.locator(".user-message")).to_have_count(1)
    screenshot(member, "held-back")


def test_a_chat_that_begins_takes_nobody_along(member: Page, held: list[Route]) -> None:
    """REL-1701: who looks at another chat meanwhile stays there, and reads that theirs has begun."""
    begin(member, "What time is it in Lagos?")
    sidebar = open_sidebar(member)
    held[0].continue_()
    here = sidebar.locator(".chat-row-link[aria-current=page]")
    expect(here).to_be_visible()
    expect(sidebar).to_be_visible()
    first = here.get_attribute("href")
    expect(member.locator(".user-message")).to_contain_text("Lagos")
    expect_idle(member)

    member.goto(HOME)
    begin(member, "What time is it in Accra?")
    open_sidebar(member).locator(f'a[href="{first}"]').click()
    expect(member.locator(".user-message")).to_contain_text("Lagos")
    held[1].continue_()
    notice = member.get_by_text("Your new chat has begun.")
    expect(notice).to_be_visible()
    expect(member.locator(".user-message")).to_contain_text("Lagos")
    screenshot(member, "begun-elsewhere")
    member.get_by_role("button", name="Open", exact=True).click()
    expect(member.locator(".user-message")).to_contain_text("Accra")
    expect_idle(member)


def test_words_that_begin_no_chat_stand_in_the_field_again(member: Page) -> None:
    """REL-750, REL-752: a chosen server has gone since; the person is told, and sends them once more."""
    member.goto("/w/demo/")
    expect(member.locator(".bud-card").first).to_be_visible()
    member.evaluate(
        """() => {
          const kept = JSON.parse(sessionStorage.getItem("trellis.home"));
          kept.overrides.additional_servers = [crypto.randomUUID()];
          sessionStorage.setItem("trellis.home", JSON.stringify(kept));
        }"""
    )
    member.reload()
    expect(member.locator(".bud-card").first).to_be_visible()
    say(member, "What can you do?")
    expect(
        member.get_by_text("A model or server that you chose is no longer there.")
    ).to_be_visible()
    composer = member.get_by_role("textbox", name="Message").first
    expect(composer).to_have_value("What can you do?")
    expect_no_faults(member)
    send(member)
    member.wait_for_url("**/c/**")
    expect_idle(member)
