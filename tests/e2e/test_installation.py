"""The platform's owner looks at background jobs, storage and versions, has a job run, and copies the versions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import NewContext, RunningTrellis
from tests.e2e.people import ADMIN, enter
from tests.e2e.platform_owner import check, owner_page
from tests.e2e.screens import DESK
from tests.patience import PATIENCE
from workspaces.product import VERSION

pytestmark = pytest.mark.screens(DESK, reason="sets its sizes and themes itself")

OWNER = "installation@demo.example"
FAIL = """
from django.utils import timezone
from workspaces.models import BackgroundJob
now = timezone.now()
BackgroundJob.objects.update_or_create(
    name="workspaces.tasks.clear_sessions",
    defaults={
        "started_at": now, "ended_at": now, "seconds": 0.2, "failed_at": now, "fault": "database",
        "error": "OperationalError", "failures": {now.strftime("%Y-%m-%dT%H"): 2},
    },
)
"""
"""As a run last night that the database refused."""


@pytest.fixture
def owner(trellis: RunningTrellis, new_context: NewContext) -> Iterator[Page]:
    """A page of the platform's owner."""
    with owner_page(
        trellis,
        new_context,
        email=OWNER,
        name="Ira Installation",
        permissions=["clipboard-read", "clipboard-write"],
    ) as page:
        yield page


def look_until_fine(page: Page, job: str) -> None:
    """Look again until the job's last run is told to have gone well."""
    row = page.get_by_role("row", name=re.compile(job))
    ends = time.monotonic() + PATIENCE
    while "fine" not in row.inner_text() and time.monotonic() < ends:
        page.get_by_role("link", name="Look again").click()
    expect(row).to_contain_text("fine")


def test_the_owner_looks_after_the_installation(
    trellis: RunningTrellis, owner: Page, new_context: NewContext
) -> None:
    """REL-1200, REL-1203, REL-1204, REL-1206, SEC-585: in tabs, with the worker that runs in this very process."""
    trellis.shell(FAIL)
    owner.goto("/platform/state/")
    tabs = owner.get_by_role("navigation", name="State of the installation")
    expect(tabs.get_by_role("link", name="Overview")).to_have_attribute("aria-current", "page")
    expect(owner.get_by_role("row", name=re.compile("Background jobs"))).to_be_visible()
    check(owner, "installation-state")

    tabs.get_by_role("link", name="Background jobs").click()
    jobs = owner.get_by_role("region", name="Table of jobs")
    row = jobs.get_by_role("row", name=re.compile("Delete sessions"))
    expect(row).to_contain_text("The database did not answer")
    expect(row).to_contain_text("failed")
    look_until_fine(owner, "Count log entries")
    expect(owner.get_by_role("region", name="Table of workers")).to_contain_text("alive")
    check(owner, "installation-jobs")
    owner.get_by_role("button", name=re.compile("^Run now: Delete sessions")).click()
    expect(owner.get_by_text("Started: Delete sessions")).to_be_visible()
    # The worker takes it within a moment, and it goes well.
    look_until_fine(owner, "Delete sessions")

    tabs.get_by_role("link", name="Storage").click()
    expect(owner.get_by_role("heading", name="Largest workspaces")).to_be_visible()
    expect(owner.get_by_role("region", name="Table of the database's parts")).to_contain_text(
        "Log entries"
    )
    check(owner, "installation-storage")

    tabs.get_by_role("link", name="Versions").click()
    check(owner, "installation-versions")
    owner.get_by_role("button", name="Copy for a report").click()
    expect(owner.get_by_text("Copied")).to_be_visible()
    copied = owner.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"Trellis {VERSION}")
    assert "SQLite: " in copied

    admin = new_context().new_page()
    enter(admin, ADMIN)
    answer = admin.goto("/platform/state/jobs/")
    assert answer is not None
    assert answer.status == 404
