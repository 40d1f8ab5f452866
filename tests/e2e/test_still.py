"""Nothing jumps, nothing moves for those who want no motion, and everything fits at twice the size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.e2e.accessibility import expect_fits
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import MEMBER, enter, expect_idle, open_chat, say
from tests.e2e.screens import DESK

MOST = 0.03
"""Browsers' makers call 0.1 good. Source: web.dev, "Cumulative Layout Shift"."""
TOLD = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const parts = entry.sources.map(({node, previousRect, currentRect}) => {
      const box = node?.nodeType === 1 ? node : node?.parentElement;
      return `${box?.tagName}.${box?.className} from ${previousRect.y} to ${currentRect.y}`;
    });
    window.shifts.push([entry.value, parts]);
  }
}).observe({type: 'layout-shift', buffered: true});
"""
MOVING = """() => document.getAnimations()
  .filter((one) => one.playState === 'running' && one.effect.getComputedTiming().endTime > 1)
  .map((one) => `${one.animationName ?? one.transitionProperty} of ${one.effect.target?.className}`)"""


@contextmanager
def expect_still(page: Page) -> Iterator[None]:
    """Whatever is done meanwhile, also what follows a key or a click, moves next to nothing of what was there."""
    page.evaluate("window.shifts = []")
    yield
    page.wait_for_timeout(600)  # what a late file or font would move
    shifts = page.evaluate("window.shifts")
    assert sum(value for value, _ in shifts) < MOST, shifts


@pytest.mark.screens(DESK, reason="sets its sizes and themes itself")
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_jumps_while_pages_load_and_answers_stream(
    new_context: NewContext, width: int
) -> None:
    """REL-784, REL-3270: start page, an answer with a call, one with a table, code, formula and diagram, a reload, search."""
    viewport: ViewportSize = {"width": width, "height": 800}
    page = new_context(viewport=viewport).new_page()
    page.add_init_script(TOLD)
    enter(page, MEMBER)
    with expect_still(page):
        page.goto("/w/demo/")
        expect(page.locator(".bud-card").get_by_role("button", name="Clock").first).to_be_visible()
    with expect_still(page):
        page.locator(".bud-card").get_by_role("button", name="Notes").first.click()
        page.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    open_chat(page, "Clock", "What time is it in Tokyo?")
    with expect_still(page):
        expect(page.locator("article.tool-card")).to_be_visible()
        expect_idle(page)
    with expect_still(page):
        say(page, "Show me the formatting")
        expect(page.locator("article.answer")).to_have_count(2)
        expect_idle(page)
        expect(page.locator(".md-diagram img")).to_be_visible()
    with expect_still(page):
        page.reload()
        expect(page.locator(".md-math-block .katex")).to_be_visible()
        expect(page.locator(".md-diagram img")).to_be_visible()
    with expect_still(page):
        page.keyboard.press("Control+k")
        for letter in "time is it":
            # Each has its answer before the next one is typed, as where somebody types slowly.
            with page.expect_response("**/api/search/**"):
                page.keyboard.type(letter)
            expect(page.locator(".search-results")).to_have_attribute("aria-busy", "false")
        expect(page.get_by_role("option").first).to_contain_text("Tokyo")
        page.keyboard.type(" nowhere", delay=40)
        expect(page.get_by_role("option")).to_have_count(0)


def test_nothing_moves_for_those_who_want_no_motion(new_context: NewContext) -> None:
    """REL-785: not while a page loads, an answer comes, a dialog opens or a menu does."""
    page = new_context(reduced_motion="reduce").new_page()
    enter(page, MEMBER)
    page.wait_for_timeout(50)
    assert page.evaluate(MOVING) == []
    open_chat(page, "Clock", "What time is it in Tokyo?")
    for _ in range(20):
        assert page.evaluate(MOVING) == []
        page.wait_for_timeout(100)
    expect_idle(page)
    page.keyboard.press("Control+k")
    page.wait_for_timeout(50)
    assert page.evaluate(MOVING) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Add to this message").click()
    page.wait_for_timeout(50)
    assert page.evaluate(MOVING) == []


@pytest.mark.screens(DESK, reason="sets its sizes and themes itself")
def test_everything_fits_at_twice_the_size(new_context: NewContext) -> None:
    """REL-785: 200 % of a screen of 1280 by 800; the message field is there, and what is written into it is sent."""
    viewport: ViewportSize = {"width": 640, "height": 400}
    page = new_context(viewport=viewport, device_scale_factor=2).new_page()
    enter(page, MEMBER)
    expect(page.locator(".bud-card").first).to_be_visible()
    expect_fits(page)
    screenshot(page, "zoom-start")
    open_chat(page, "Clock", "Show me the formatting")
    expect_idle(page)
    expect_fits(page)
    composer = page.get_by_role("textbox", name="Message").first
    expect(composer).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    screenshot(page, "zoom-chat")
    composer.fill("\n".join(f"Line {number}" for number in range(40)))
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    expect(page.locator("article.answer").last).to_be_in_viewport()
    screenshot(page, "zoom-long")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search chats")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("option").first).to_be_in_viewport(ratio=1)
    screenshot(page, "zoom-search")
    expect_fits(page)
