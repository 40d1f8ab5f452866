"""Ops: every call on record, filtered, in detail, charted, exported."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.people import AUDITOR, enter, takes_from_input_method


def test_times_are_typed_by_the_readers_own_clock(new_context: NewContext) -> None:
    """REL-1421, REL-2282: of the log's range and of a review, as everything on these pages is shown; the address is in UTC."""
    page = new_context(timezone_id="Asia/Tokyo").new_page()
    enter(page, AUDITOR, at="/w/demo/audit/")
    page.get_by_label("Time", exact=True).select_option("custom")
    page.get_by_label("From", exact=True).fill("2026-11-01T09:00:00")
    page.get_by_label("To", exact=True).fill("2050-01-01T00:00:00")
    page.get_by_role("button", name="Apply").first.click()
    page.wait_for_url("**since=2026-11-01T00%3A00%3A00.000Z**")
    expect(page.get_by_label("From", exact=True)).to_have_value("2026-11-01T09:00")
    expect(page.get_by_role("list", name="Filters in use")).to_contain_text("Nov 1, 2026, 9:00 AM")
    page.goto("/w/demo/audit/reviews/")
    # What Firefox needs to show AM or PM.
    assert page.get_by_label("From", exact=True).evaluate("node => node.offsetWidth") >= 240
    page.get_by_label("From", exact=True).fill("2050-01-01T00:00")
    page.get_by_role("button", name="I have reviewed this").click()
    expect(page.locator(".errorlist")).to_be_visible()
    expect(page.get_by_label("From", exact=True)).to_have_value("2050-01-01T00:00")
    page.get_by_label("From", exact=True).fill("2026-11-01T09:00")
    page.get_by_role("button", name="I have reviewed this").click()
    signed = page.get_by_role("link", name="Nov 1, 2026, 9:00 AM to")
    expect(signed).to_have_attribute("href", re.compile("since=2026-11-01T00%3A00"))


CHANGES_ON_PAPER = """() => {
    const [before, printed, after] = ["trellis:theme", "beforeprint", "afterprint"].map((name) => {
        dispatchEvent(new Event(name));
        return document.querySelector("canvas").toDataURL();
    });
    return before !== printed && before === after;
}"""
"""Whether the chart is drawn anew for paper, and again afterwards."""


def test_a_call_is_found_read_and_exported(page: Page, trellis: RunningTrellis) -> None:
    """Journey 3, REL-769, REL-2755: requested and finished, filters, detail, chart, on paper too, CSV and JSONL."""
    asked = trellis.manage(
        "ask", "--workspace", "demo", "--bud", "clock", "What time is it in Lima?"
    )
    assert asked.returncode == 0, asked.stderr
    enter(page, AUDITOR, at="/w/demo/audit/")
    expect(page.get_by_role("heading", name="Audit")).to_be_visible()
    expect(page.locator("canvas")).to_be_visible()
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("canvas")).to_have_css("max-width", "100%")
    expect(page.locator("html")).to_have_css("color-scheme", "light")
    page.emulate_media(media="screen", color_scheme="dark")
    assert page.evaluate(CHANGES_ON_PAPER)
    page.emulate_media(color_scheme="light")
    page.locator("#filter-range").select_option("24h")
    page.wait_for_url("**range=24h**")
    search = page.get_by_role("combobox", name="Search and filter")
    search.press_sequentially("tool:get_cur")
    offers = page.get_by_role("listbox", name="Filters").get_by_role("option")
    expect(offers.filter(has_text="get_current_time")).to_be_visible()
    assert not takes_from_input_method(search, "ArrowDown")
    search.press("ArrowDown")
    search.press("Enter")
    expect(search).to_have_value("tool:get_current_time ")
    search.press_sequentially("outcom:ok")
    search.press("Escape")
    search.press("Enter")
    expect(page.get_by_text("Did you mean “outcome”?")).to_be_visible()
    search.fill("outcome:ok")
    search.press("Escape")
    search.press("Enter")
    expect(page.get_by_role("list", name="Filters in use")).to_contain_text("get_current_time")
    page.get_by_role("link", name="Remove the filter Outcome: Succeeded").click()
    page.wait_for_url(lambda address: "outcome" not in address)
    page.goto("/w/demo/audit/?range=24h&action=tool_call.finished&tool=get_current_time")
    rows = page.get_by_role("row").filter(has_text="get_current_time")
    expect(rows.first).to_contain_text("get_current_time")
    unfold = rows.first.get_by_role("button", name="Tool call")
    unfold.focus()
    page.keyboard.press("Enter")
    expect(unfold).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("link", name="Tool call requested").first).to_be_visible()
    screenshot(page, "audit")
    rows.first.get_by_role("link").first.click()
    expect(page.locator("main")).to_contain_text("America/Lima")
    expect(page.locator("main")).to_contain_text("requested")
    screenshot(page, "audit-detail")
    page.get_by_role("link", name="Show around this").click()
    expect(page.get_by_role("link", name="Every entry")).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("row").filter(has_text="get_current_time").first).to_be_visible()
    page.goto("/w/demo/audit/?range=24h&tool=get_current_time")
    for label, read in (("CSV", _csv), ("JSON", _jsonl)):
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as download:
            page.get_by_role("link", name=label).first.click()
        actions = read(Path(download.value.path()))
        assert {"tool_call.requested", "tool_call.finished"} <= actions
    page.goto("/w/demo/audit/reports/?range=24h")
    expect(page.locator("canvas").first).to_be_visible()
    term = page.get_by_role("button", name="Refused", exact=True)
    term.focus()
    expect(page.locator("#term-refused")).to_be_visible()
    page.get_by_role("link", name="Tool", exact=True).click()
    expect(page.get_by_role("link", name="get_current_time").first).to_be_visible()
    page.get_by_role("link", name="Tool calls: ").click()
    expect(page.get_by_role("row").filter(has_text="get_current_time").first).to_be_visible()
    page.goto("/w/demo/audit/?range=24h&action=export.created")
    expect(page.get_by_role("row").nth(1)).to_contain_text(AUDITOR)


def _csv(path: Path) -> set[str]:
    return {row["action"] for row in csv.DictReader(io.StringIO(path.read_text("utf-8-sig")))}


def _jsonl(path: Path) -> set[str]:
    return {json.loads(line)["action"] for line in path.read_text().splitlines()}
