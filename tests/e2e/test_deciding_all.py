"""Several calls of one step that wait: all allowed or refused at once, and what was changed on their cards."""

from __future__ import annotations

import json

from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import screenshot
from tests.e2e.people import expect_idle, open_chat, open_sidebar
from tests.fakes.scripted_model import ScriptedModel


def ask(page: Page, model: ScriptedModel, *names: str) -> None:
    """Have it write notes of these names, which wait for the person."""
    model.clear()
    notes = [("notes__write_note", {"name": name, "text": "Said by the model"}) for name in names]
    model.call(*notes, text="Let me write these.")
    for _ in range(2):
        model.say("I am done")  # one of them is the title
    page.goto("/w/demo/")
    open_chat(page, "Keeper", "Write these notes")
    expect(page.locator(".approval")).to_have_count(len(names))


def test_changed_arguments_go_along_when_all_are_allowed(
    member: Page, keeper: ScriptedModel
) -> None:
    """REL-1347: also after another chat was shown; without a connection nothing is said to have been done."""
    ask(member, keeper, "first", "second", "third")
    card = member.locator(".approval").nth(1)
    card.get_by_role("button", name="Edit").click()
    card.get_by_label("text").fill("Said by me")
    address = member.url
    everyone = member.get_by_role("button", name="Allow all 3, with your changes")
    expect(everyone).to_be_visible()
    open_sidebar(member).get_by_role("button", name="New chat").first.click()
    open_sidebar(member).locator("li.chat-row a").first.click()
    member.wait_for_url(address)
    expect(card.get_by_label("text")).to_have_value("Said by me")
    screenshot(member, "all-with-changes")
    expect_no_faults(member, "calls of one step with changed arguments")
    member.context.set_offline(True)
    expect(member.get_by_text("Reconnecting…")).to_be_visible()
    everyone.click()
    notice = member.get_by_text("You are offline, so this was not done.")
    expect(notice).to_be_visible()
    member.context.set_offline(False)
    expect(notice).to_have_count(0, timeout=8_000)
    expect(member.locator(".approval")).to_have_count(3)
    everyone.click()
    expect_idle(member)
    member.get_by_role("button", name="Called 3 tools").click()
    tools = member.locator("article.tool-card")
    expect(tools).to_have_count(3)
    sent = json.dumps(keeper.requests)
    assert "first" in sent
    expect(tools.nth(1)).to_contain_text("succeeded")
    for at, is_changed in enumerate((False, True, False)):
        tools.nth(at).get_by_role("button").first.click()
        expect(tools.nth(at).get_by_text("with changed arguments")).to_have_count(int(is_changed))


def test_all_are_refused_at_once(member: Page, keeper: ScriptedModel) -> None:
    """REL-1149, REL-1350, REL-1486: the model hears so of each and why, and none is said to have been called."""
    ask(member, keeper, "first", "second")
    member.get_by_role("button", name="Refuse all 2…").click()
    expect(member.get_by_label("Why not?")).to_be_focused()
    screenshot(member, "all-refused-why")
    expect_no_faults(member, "calls of one step that are refused with a reason")
    member.get_by_label("Why not?").fill("These notes are there already")
    member.get_by_role("button", name="Refuse all 2", exact=True).click()
    expect_idle(member)
    assert json.dumps(keeper.requests).count("These notes are there already") >= 2
    expect(member.locator(".approval")).to_have_count(0)
    member.get_by_role("button", name="2 tools not called").click()
    expect(member.locator("article.tool-card").first).to_contain_text("refused")
