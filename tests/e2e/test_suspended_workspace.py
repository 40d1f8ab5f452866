"""A member comes to their workspace, and whoever runs the installation has suspended it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import NewContext, RunningTrellis
from tests.e2e.looks import look_at
from tests.e2e.people import sign_in

PERSON = "sina@suspended.example"
ADD = f"""
from config.demo.people import PASSWORD
from workspaces.models import Membership, User, Workspace
shut = Workspace.objects.create(name="North garden", slug="north-garden")
sina = User.objects.create_user("{PERSON}", PASSWORD, name="Sina Shut", is_confirmed=True)
Membership.objects.create(workspace=shut, user=sina, role="member")
"""
SWITCH = """
from workspaces.models import Workspace
Workspace.objects.filter(slug="north-garden").update(is_active={})
"""
REMOVE = f"""
from workspaces.models import Membership, User
Membership.unscoped.filter(user__email="{PERSON}").delete()
User.objects.filter(email="{PERSON}").update(is_active=False)
"""


@pytest.fixture
def suspended(trellis: RunningTrellis) -> Iterator[RunningTrellis]:
    """A workspace of one member that can be suspended."""
    trellis.shell(ADD)
    yield trellis
    trellis.shell(SWITCH.format(False) + REMOVE)


@pytest.mark.screens("1280-light", reason="goes through widths and themes itself")
def test_a_member_reads_that_their_workspace_is_suspended(
    new_context: NewContext, suspended: RunningTrellis
) -> None:
    """SEC-752, REL-1903, REL-1904: with whom to ask; and is in again once it is open, on pages that stayed open, too."""
    page = new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True).new_page()
    sign_in(page, PERSON)
    suspended.shell(SWITCH.format(False))
    page.goto("/w/north-garden/")
    title = page.get_by_role("heading", name="North garden is suspended")
    expect(title).to_be_visible()
    expect(page.get_by_text("The people who run this installation")).to_be_visible()
    look_at(page, "suspended-workspace", always_all=True)
    suspended.shell(SWITCH.format(True))
    page.get_by_role("link", name="Try again").click()
    expect(title).to_have_count(0)
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    suspended.shell(SWITCH.format(False))
    banner = page.get_by_text("This workspace is suspended.")
    expect(banner).to_be_visible()
    suspended.shell(SWITCH.format(True))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(banner).to_have_count(0)
