"""One question, two models: their answers side by side, and one of them gone on from."""

from __future__ import annotations

import re
import threading

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_fits
from tests.e2e.conftest import NewContext
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import MEMBER, enter, expect_idle, open_chat, say
from tests.e2e.screens import DESK
from tests.fakes.scripted_model import ScriptedModel

pytestmark = pytest.mark.screens(DESK, reason="sets its sizes and themes itself")


def check(page: Page, name: str) -> None:
    """In both themes axe finds nothing, and the page does not scroll sideways."""
    look_in_both_themes(page, name)
    expect_fits(page)
    page.emulate_media(color_scheme="light")


def test_two_models_are_compared_and_one_answer_is_used(
    new_context: NewContext, quick: ScriptedModel
) -> None:
    """REL-574, REL-571: chosen by keyboard, side by side while one still writes, the same on a phone, and one kept."""
    page = new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True).new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Oslo?")
    expect_idle(page)
    composer = page.get_by_role("textbox", name="Message").first
    composer.fill("/comp")
    composer.press("Enter")
    dialog = page.get_by_role("dialog", name="Compare models")
    expect(dialog.get_by_role("button", name="Compare 1 model")).to_be_disabled()
    dialog.get_by_role("checkbox", name="quick-model").press("Space")
    check(page, "comparing-choice")
    dialog.get_by_role("button", name="Compare 2 models").press("Enter")
    expect(page.get_by_text("Compares demo and quick-model · this message only")).to_be_visible()

    hold = threading.Event()
    quick.say("It is time for tea", hold=hold)
    say(page, "What time is it in Tokyo?")
    demo = page.get_by_role("region", name="Answer of demo")
    other = page.get_by_role("region", name="Answer of quick-model")
    expect(demo).to_contain_text("In Tokyo it is now")
    expect(demo.locator("article.tool-card")).to_be_visible()
    expect(other).to_contain_text("It is time for")
    expect(other).to_have_attribute("aria-busy", "true")
    expect(page.get_by_text("1 of 2 answers have ended.")).to_be_attached()
    page.reload()
    expect(other).to_contain_text("It is time for")
    hold.set()
    expect(other).to_contain_text("tea")
    expect(page.get_by_text("the answer of demo is used: it was complete first")).to_be_visible()
    expect_idle(page)
    check(page, "comparing")

    phone = new_context(
        viewport={"width": 390, "height": 800},
        bypass_csp=True,
        storage_state=page.context.storage_state(),
    ).new_page()
    phone.goto(page.url)
    expect(phone.get_by_role("region", name="Answer of demo")).to_be_visible()
    expect(phone.get_by_role("region", name="Answer of quick-model")).to_be_hidden()
    tabs = phone.get_by_role("group", name="Answers to compare")
    tabs.get_by_role("button", name=re.compile("quick-model")).click()
    expect(phone.get_by_role("region", name="Answer of quick-model")).to_be_visible()
    check(phone, "comparing-phone")
    # Also at the end of a long answer.
    phone.locator(".comparison-answer:visible .answer-body").evaluate(
        "one => { one.style.minHeight = '3000px'; }"
    )
    phone.locator(".chat-scroll").evaluate("one => { one.scrollTop = 2000; }")
    expect(tabs).to_be_in_viewport(ratio=1)

    page.get_by_role("button", name="Use the answer of quick-model").press("Enter")
    for one in (page, phone):
        answer = one.locator("article.answer").last
        expect(answer).to_contain_text("It is time for tea")
        expect(answer).to_contain_text(re.compile("[12]/2"))
        expect(one.get_by_role("region", name="Answers to compare")).to_have_count(0)
    expect(composer).to_be_focused()

    quick.say("Or for coffee")
    answer = page.locator("article.answer").last
    answer.hover()
    # Among the arrows they stand in the order in which they began.
    arrows = re.compile("^(Earlier|Later) answer$")
    answer.get_by_role("button", name=arrows, disabled=False).click()
    expect(answer).to_contain_text("In Tokyo it is now")
    answer.get_by_role("button", name="Answer in another way").click()
    page.get_by_role("button", name="Compare with…").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("quick-model")).click()
    expect(other).to_contain_text("Or for coffee")
    expect(demo).to_contain_text("In Tokyo it is now")
