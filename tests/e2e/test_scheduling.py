"""Ops: what the log shows, sent again and again, and signed off by whoever looked through it."""

from __future__ import annotations

import email
import re
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_fits, expect_no_faults
from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import AUDITOR, enter
from tests.e2e.screens import DESK

pytestmark = pytest.mark.screens(DESK, reason="sets its sizes and themes itself")

CALLS_OF_YESTERDAY = """
from datetime import timedelta
from django.utils import timezone
from audit.models import AuditEntry
from workspaces.models import Workspace
AuditEntry.objects.bulk_create(
    AuditEntry(
        workspace_id=Workspace.objects.get(slug="demo").pk,
        created_at=timezone.now() - timedelta(days=1, seconds=number),
        action="tool_call.finished", actor_kind="user", actor_label="member@demo.example", source="chat",
        server_name="Clock", tool_name="get_current_time", outcome="tool_error", duration_ms=12,
    )
    for number in range(3)
)
"""
PHONE = {"width": 390, "height": 800}
DESKTOP = {"width": 1280, "height": 900}


def newest_mail(trellis: RunningTrellis) -> EmailMessage:
    """The mail that was written last into the folder that stands for a mail server."""
    newest = max(Path(trellis.data_dir / "mail").iterdir(), key=lambda path: path.stat().st_mtime)
    # A file holds all mails of one connection, each with a line below.
    text = re.split(r"(?m)^-{79}\n", newest.read_text())[-2]
    return email.message_from_string(text, policy=default)


def link_in(message: EmailMessage) -> str:
    body = message.get_body(("plain",))
    assert body is not None
    found = re.search(r"https?://[^/\s]+(/w/demo/audit/sent/\S+)", body.get_content())
    assert found
    return found[1]


def look(page: Page, name: str) -> None:
    """No fault in both themes, and on a phone."""
    look_in_both_themes(page, name)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # width and height
    expect_fits(page, f"{name} on a phone")
    expect_no_faults(page, f"{name} on a phone", seen="at another width")
    screenshot(page, f"{name}-phone-dark")
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]  # width and height
    page.emulate_media(color_scheme="light")
    screenshot(page, name)


def test_three_choices_send_a_file_that_is_signed_off(
    new_context: NewContext, trellis: RunningTrellis
) -> None:
    """REL-1210, REL-1211, REL-1212, REL-1213, REL-1214, REL-1216, REL-1217: from the log's filters to the sign-off."""
    trellis.shell(CALLS_OF_YESTERDAY)
    context = new_context(viewport=DESKTOP, timezone_id="Europe/Zurich", bypass_csp=True)
    page = context.new_page()
    enter(page, AUDITOR, at="/w/demo/audit/?range=7d&outcome=failed")
    page.get_by_role("link", name="Send this regularly").click()
    what = page.get_by_label("1. What")
    expect(what).to_have_value("ready:failures")
    summary = page.locator("#schedule-summary")
    expect(summary).to_contain_text("The next times (Europe/Zurich)")
    expect(summary.get_by_role("listitem")).to_have_count(3)
    page.get_by_label("2. When").select_option("Every day")
    page.get_by_label("At", exact=True).select_option("07:00")
    expect(summary.get_by_role("listitem").first).to_contain_text("07:00")
    expect(page.get_by_label("Filters")).to_be_hidden()
    what.select_option("Filters that you type")
    expect(page.get_by_label("Filters")).to_be_visible()
    what.select_option("Failed calls")
    expect(page.get_by_role("checkbox", name=AUDITOR)).to_be_checked()
    expect(page.get_by_label("Name")).to_be_hidden()

    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Audit log: Failed calls, every day")).to_be_visible()
    rows = page.get_by_role("region", name="First rows of the file")
    expect(rows).to_contain_text("get_current_time")
    look(page, "schedule-preview")

    page.get_by_role("button", name="Send me one now").click()
    expect(page.get_by_text(f"Sent to {AUDITOR} alone")).to_be_visible()
    message = newest_mail(trellis)
    assert message["To"] == AUDITOR
    [attached] = message.iter_attachments()
    assert "get_current_time" in attached.get_content()
    page.get_by_role("button", name="Schedule", exact=True).click()
    expect(page.get_by_text("“Failed calls, every day” is scheduled.")).to_be_visible()

    page.get_by_role("button", name="Send Failed calls, every day now").click()
    expect(page.get_by_text("Sent to", exact=False).first).to_be_visible()
    look(page, "schedules")
    page.goto(link_in(newest_mail(trellis)))
    expect(
        page.get_by_role("heading", name="Look through “Failed calls, every day”")
    ).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="get_current_time")).to_have_count(3)
    page.get_by_label("Note").fill("Known: the clock was wound")
    look(page, "sign-off")
    page.get_by_role("button", name="Looked through").click()
    expect(page.get_by_text(f"Signed off by {AUDITOR}")).to_be_visible()
    expect(page.get_by_role("button", name="Looked through")).to_have_count(0)

    page.goto("/w/demo/audit/schedules/")
    page.get_by_role("link", name="Failed calls, every day", exact=True).click()
    sent = page.get_by_role("row").filter(has_text="Known: the clock was wound")
    expect(sent).to_contain_text(AUDITOR)
    expect(sent).to_contain_text("sent")
    look(page, "schedule")
    page.get_by_role("button", name="Delete Failed calls, every day").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("is deleted.")).to_be_visible()
    page.goto("/w/demo/audit/reviews/")
    expect(page.get_by_role("row").filter(has_text="Known: the clock was wound")).to_be_visible()


A_SAVED_VIEW = """
from audit.models import SavedView
from workspaces.models import User, Workspace
SavedView.objects.create(
    workspace=Workspace.objects.get(slug="demo"), owner=User.objects.get(email="auditor@demo.example"),
    page="log", name="Slow clocks", query="tool=get_current_time&duration_min=500",
)
"""
NO_SAVED_VIEW = """
from audit.models import SavedView
SavedView.unscoped.filter(name="Slow clocks").delete()
"""


def test_a_view_that_goes_while_the_form_is_open_takes_nothing_along(
    new_context: NewContext, trellis: RunningTrellis
) -> None:
    """REL-1388: filters stand there as people type them, and what was typed stays."""
    trellis.shell(A_SAVED_VIEW)
    context = new_context(viewport=DESKTOP, timezone_id="Europe/Zurich", bypass_csp=True)
    page = context.new_page()
    enter(page, AUDITOR, at="/w/demo/audit/?tool=get_current_time&duration_min=500")
    page.get_by_role("link", name="Send this regularly").click()
    what = page.get_by_label("1. What")
    expect(what.locator("option:checked")).to_have_text("Slow clocks")
    page.get_by_label("2. When").select_option("Every day")
    page.get_by_text("More: name, file, time zone, delivery").click()
    page.locator("#schedule-name").fill("Clocks of the day")
    trellis.shell(NO_SAVED_VIEW)
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("The view that you chose was deleted.").first).to_be_visible()
    expect(page.get_by_label("Filters", exact=True)).to_have_value(
        "tool:get_current_time duration:500.."
    )
    expect(page.get_by_label("2. When").locator("option:checked")).to_have_text("Every day")
    expect(page.locator("#schedule-name")).to_have_value("Clocks of the day")
    look(page, "schedule-view-gone")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("The view that you chose was deleted.")).to_have_count(0)
