"""One person who writes one message in two places at once."""

from __future__ import annotations

import re
import time

from playwright.sync_api import expect

from tests.e2e.conftest import NewContext
from tests.e2e.people import HOME, MEMBER, enter, expect_idle, open_chat, send
from tests.patience import PATIENCE

_KEEP_NOTES = """() => {
  window.notes = "";
  const note = () => document.querySelectorAll(".toast-box").forEach((one) => { window.notes += one.textContent; });
  new MutationObserver(note).observe(document.body, { childList: true, subtree: true });
}"""


def test_two_devices_that_type_at_once_lose_no_word(new_context: NewContext) -> None:
    """REL-1346: both texts are in both fields, and in the one message that is sent."""
    desk, phone = new_context().new_page(), new_context().new_page()
    enter(desk, MEMBER)
    open_chat(desk, "Clock", "What time is it in Oslo?")
    expect_idle(desk)
    enter(phone, MEMBER)
    phone.goto(desk.url)
    here, there = (one.get_by_role("textbox", name="Message") for one in (desk, phone))
    expect(there).to_be_enabled()
    for page in (desk, phone):
        page.evaluate(_KEEP_NOTES)
    for ours, theirs in (("What about Rome", "and what of Lima"), ("Then Rome", "then Lima")):
        here.fill(ours)
        there.fill(theirs)
        for field in (here, there):
            for words in (ours, theirs):
                expect(field).to_have_value(re.compile(re.escape(words)))
        deadline = time.monotonic() + PATIENCE
        while here.input_value() != there.input_value():
            assert time.monotonic() < deadline
            desk.wait_for_timeout(50)
    # Who wrote last hears of it.
    assert "in two places" in desk.evaluate("notes") + phone.evaluate("notes")
    here.fill("What time is it in Rome and Lima?")
    send(desk)
    expect_idle(desk)
    expect(there).to_have_value("")
    expect(here).to_have_value("")


def test_two_tabs_that_type_at_once_lose_no_word(new_context: NewContext) -> None:
    """REL-1346: a tab shows at once what another one of the same browser has, so what comes next is added to it."""
    page = new_context().new_page()
    enter(page, MEMBER)
    other = page.context.new_page()
    other.goto(HOME)
    here, there = (one.get_by_role("textbox", name="Message").first for one in (page, other))
    expect(there).to_be_enabled()
    here.fill("What time is it")
    expect(there).to_have_value("What time is it", timeout=1_000)
    there.press("End")
    there.press_sequentially(" in Rome?")
    expect(here).to_have_value("What time is it in Rome?", timeout=1_000)
    here.fill("")
    expect(there).to_have_value("")
