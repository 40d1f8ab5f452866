"""Somebody who edits a bud checks it by test questions, in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import screenshot
from tests.e2e.people import ADMIN, enter, expect_idle, open_chat


@pytest.mark.screens("390-light", reason="counts the versions of a bud, which a server keeps")
def test_a_bud_is_checked_in_its_editor_and_a_call_is_kept_as_a_test(page: Page) -> None:
    """REL-1465, REL-600, REL-601, REL-604, REL-607: add, run, read why it failed, mend, and keep one's own call."""
    enter(page, ADMIN, at="/w/demo/buds/")
    page.get_by_role("link", name="Clock", exact=True).click()
    checks = page.get_by_role("region", name="Checks")
    expect(checks.get_by_text("A check is a test question")).to_be_visible()
    checks.get_by_role("button", name="Add a check").click()
    checks.get_by_label("Question").fill("What time is it in Rome?")
    checks.get_by_role("button", name="Save check").click()
    expect(checks.get_by_text("Say what you expect")).to_be_visible()
    checks.get_by_role("button", name="Add a tool call").click()
    checks.get_by_label("Tool", exact=True).fill("convert_time")
    checks.get_by_label(re.compile("^The answer contains")).fill("rome")
    screenshot(page, "check-form")
    checks.get_by_role("button", name="Save check").click()
    checks.get_by_role("button", name="Run checks").click()
    expect(checks.get_by_text("0 of 1 passed").last).to_be_visible()
    expect(checks.get_by_text("It should have called convert_time")).to_be_visible()
    checks.get_by_text("Answer and calls").click()
    expect(checks.get_by_text("Europe/Rome").first).to_be_visible()
    screenshot(page, "checks")
    expect_no_faults(page)
    checks.get_by_role("button", name="Edit What time").click()
    checks.get_by_label("Tool", exact=True).fill("get_current_time")
    checks.get_by_role("button", name="Save check").click()
    checks.get_by_role("button", name="Run checks").click()
    expect(checks.get_by_text("1 of 1 passed").last).to_be_visible()
    page.get_by_role("link", name="Versions", exact=True).click()
    expect(page.get_by_text("1 of 1 passed")).to_be_visible()

    page.go_back()
    checks.get_by_text("When checks run by themselves").click()
    checks.get_by_label("On a schedule").select_option(label="Every week")
    expect(checks.get_by_text("with the rights of admin@demo.example")).to_be_visible()
    checks.get_by_label("Before saving").check()
    expect(checks.get_by_text("Saved.")).to_be_attached()
    expect_no_faults(page)
    screenshot(page, "checks-plan")
    # Save asks first where a check fails, and goes through where all pass.
    checks.get_by_role("button", name="Edit What time").click()
    checks.get_by_label(re.compile("^The answer contains")).fill("paris")
    checks.get_by_role("button", name="Save check").click()
    page.get_by_label("Description").fill("Tells the time anywhere.")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(checks.get_by_text("Checking before saving").last).to_be_visible()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Only 0 of 1 checks passed. Save the bud anyway?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_label("Description")).to_have_value("Tells the time anywhere.")
    checks.get_by_role("button", name="Edit What time").click()
    checks.get_by_label(re.compile("^The answer contains")).fill("rome")
    checks.get_by_role("button", name="Save check").click()
    # Right away: the checks that run are those that stand there.
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.get_by_text("New messages use it from now on")).to_be_visible()
    expect(page.get_by_label("Description")).to_have_value("Tells the time anywhere.")
    # What changes answers is saved once the checks have passed with it, or if somebody insists.
    instructions = page.locator("[name=system_prompt]")
    instructions.fill("Tell the time, and nothing else.")
    with page.expect_event("load"):
        page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.get_by_text("New messages use it from now on")).to_be_visible()
    expect(instructions).to_have_value("Tell the time, and nothing else.")
    checks.get_by_role("button", name="Edit What time").click()
    checks.get_by_label(re.compile("^The answer contains")).fill("atlantis")
    checks.get_by_role("button", name="Save check").click()
    expect(checks.get_by_role("button", name="Save check")).to_have_count(0)
    instructions.fill("Tell the time slowly.")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(dialog).to_contain_text("Only 0 of 1 checks passed. Save the bud anyway?")
    with page.expect_event("load"):
        dialog.get_by_role("button", name="Save anyway").click()
    expect(page.get_by_text("New messages use it from now on")).to_be_visible()
    expect(instructions).to_have_value("Tell the time slowly.")
    # The version whose checks passed comes back without being checked again. Another one is refused first.
    page.get_by_role("link", name="Versions", exact=True).click()
    in_use = page.get_by_role("heading", name=re.compile(r"^Version \d+ in use")).inner_text()
    slow = int(in_use.split()[1])  # other journeys change this bud, too
    first = slow - 3
    page.get_by_role("button", name=f"Restore version {first}", exact=True).click()
    expect(page.get_by_text(f"Version {first} is back.")).to_be_visible()
    page.get_by_role("link", name="Versions", exact=True).click()
    page.get_by_role("button", name=f"Restore version {slow}", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("was not restored")
    expect_no_faults(page)
    screenshot(page, "restore-refused")
    page.get_by_role("button", name="Restore it anyway").click()
    expect(page.get_by_text(f"Version {slow} is back.")).to_be_visible()

    open_chat(page, "Clock", "What time is it in Berlin?")
    expect(page.get_by_text("Europe/Berlin").first).to_be_visible()
    expect_idle(page)
    page.goto("/w/demo/audit/?tool=get_current_time&show=calls")
    page.locator("a[href*='/audit/calls/']").first.click()
    page.get_by_role("button", name="Keep as a test").click()
    expect(page.get_by_text("The call is a check now")).to_be_visible()
    expect(checks.get_by_text("What time is it in Berlin?")).to_be_visible()
    checks.get_by_role("button", name="Remove What time is it in Berlin?").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(checks.get_by_text("What time is it in Berlin?")).to_have_count(0)


def test_two_people_who_edit_a_check_hear_of_each_other(page: Page) -> None:
    """REL-1387: what the first changed stands at its field, what the second typed stays, and saving again replaces."""
    enter(page, ADMIN, at="/w/demo/buds/")
    page.get_by_role("link", name="Clock", exact=True).click()
    checks = page.get_by_role("region", name="Checks")
    checks.get_by_role("button", name="Add a check").click()
    checks.get_by_label("Question").fill("Which day is it?")
    checks.get_by_label(re.compile("^The answer contains")).fill("day")
    checks.get_by_role("button", name="Save check").click()
    checks.get_by_role("button", name="Edit Which day").click()
    checks.get_by_label(re.compile("^Judged by a model")).fill("It names a day of the week")
    other = page.context.new_page()
    other.goto(page.url)
    theirs = other.get_by_role("region", name="Checks")
    theirs.get_by_role("button", name="Edit Which day").click()
    theirs.get_by_label(re.compile("^The answer contains")).fill("friday")
    theirs.get_by_role("button", name="Save check").click()
    expect(theirs.get_by_text("contains “friday”")).to_be_visible()
    other.close()
    checks.get_by_role("button", name="Save check").click()
    expect(checks.get_by_text("Someone else changed this check in the meantime")).to_be_visible()
    expect(checks.get_by_text("Now: friday")).to_be_visible()
    expect(checks.get_by_label(re.compile("^Judged by a model"))).to_have_value(
        "It names a day of the week"
    )
    expect_no_faults(page)
    screenshot(page, "check-changed-meanwhile")
    checks.get_by_role("button", name="Save check").click()
    expect(checks.get_by_text("judged by “It names a day of the week”")).to_be_visible()
    checks.get_by_role("button", name="Remove Which day").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(checks.get_by_text("Which day is it?")).to_have_count(0)
