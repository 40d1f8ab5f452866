"""An administrator, the platform's owner and an auditor: each goes through all rooms and does one real thing in each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.people import AUDITOR, MEMBER, enter
from tests.e2e.screens import DESK
from tests.fakes.scripted_model import ScriptedModel

pytestmark = pytest.mark.screens(DESK, reason="sets its sizes and themes itself")

ADMINISTRATOR = "ines@rooms.example"
ROOT = "rosa@rooms.example"
GUEST = "guest@rooms.example"
NEWCOMER = "nora@rooms.example"
ADD_PEOPLE = f"""
from config.demo.people import PASSWORD
from workspaces.models import Membership, User, Workspace
demo = Workspace.objects.get(slug="demo")
ines = User.objects.create_user("{ADMINISTRATOR}", PASSWORD, name="Ines Admin", is_confirmed=True)
Membership.objects.create(workspace=demo, user=ines, role="admin")
rosa = User.objects.create_user("{ROOT}", PASSWORD, name="Rosa Root", is_confirmed=True)
User.objects.filter(pk=rosa.pk).update(is_superuser=True)
Membership.objects.create(workspace=demo, user=rosa, role="member")
"""
REMOVE_PEOPLE = """
from audit.models import AlertRule
from chat.models import Bud, Conversation
Conversation.objects.across_workspaces().filter(bud__provider__name="Compared").delete()
Bud.objects.across_workspaces().filter(provider__name="Compared").delete()
AlertRule.objects.across_workspaces().delete()
from workspaces.models import Membership, User, Workspace
Membership.unscoped.filter(user__email__endswith="@rooms.example").delete()
User.objects.filter(email__endswith="@rooms.example").update(is_active=False, is_superuser=False)
Workspace.objects.filter(slug="third-garden").update(is_active=False)
"""


@pytest.fixture(scope="module")
def people(trellis: RunningTrellis, quick: ScriptedModel) -> Iterator[None]:
    """An administrator who is no owner, and an owner of the platform; they are gone afterwards, with what they made."""
    trellis.shell(ADD_PEOPLE)
    yield
    trellis.shell(REMOVE_PEOPLE)


@pytest.fixture(scope="module")
def call(trellis: RunningTrellis) -> None:
    """Somebody has had a tool called, so that there is something in the log."""
    asked = trellis.manage(
        "ask", "--workspace", "demo", "--bud", "clock", "What time is it in Oslo?"
    )
    assert asked.returncode == 0, asked.stderr


@pytest.fixture
def page(new_context: NewContext) -> Page:
    """A page of somebody who is not signed in, on a screen as wide as a desk has."""
    return new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True).new_page()


def room(page: Page, name: str) -> None:
    """Go to a room by its link beside the pages of the admin."""
    if "/admin/" not in page.url:
        page.goto("/admin/")
    rooms = page.get_by_role("navigation", name="Admin")
    rooms.get_by_role("link", name=name, exact=True).first.click()
    expect(page.locator("main")).to_be_visible()


def add(page: Page) -> None:
    """Go from a list of the admin to the form for a new row."""
    page.locator("a[href$='/add/']").first.click()


def tab(page: Page, name: str) -> None:
    """Go to another page of the log."""
    tabs = page.get_by_role("navigation", name="Audit")
    tabs.get_by_role("link", name=name, exact=True).click()
    expect(tabs.get_by_role("link", name=name, exact=True)).to_have_attribute(
        "aria-current", "page"
    )


def confirm(page: Page, verb: str) -> None:
    """Say yes to the question that the page asks."""
    page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()


def run_action(page: Page, row: str, action: str) -> None:
    """Choose one row of a list, and what is done with it."""
    page.get_by_role("row", name=re.compile(row)).get_by_role("checkbox").check()
    page.get_by_role("combobox", name="Action").select_option(label=action)
    page.get_by_role("button", name="Run").click()


def test_an_administrator_goes_through_all_rooms(
    page: Page, people: None, call: None, quick: ScriptedModel
) -> None:
    """REL-1488: who is no owner, no auditor and no superuser; nothing of theirs is missing, nothing above it offered."""
    enter(page, ADMINISTRATOR, at="/admin/")
    rooms = page.get_by_role("navigation", name="Admin")
    for name in ("Settings as a file", "Rules of this workspace", "State of the installation"):
        expect(rooms.get_by_role("link", name=name)).to_have_count(0)
    page.get_by_role("link", name=re.compile("Tool calls today")).click()
    expect(page.get_by_role("row").filter(has_text="get_current_time").first).to_be_visible()
    _people(page)
    _buds(page, quick)
    _models(page, quick)
    _tools(page)
    _log_of_others(page)


def _people(page: Page) -> None:
    room(page, "Invite people")
    page.get_by_label("E-mail addresses").fill(GUEST)
    page.get_by_role("button", name="Invite", exact=True).click()
    page.get_by_role("button", name=f"Revoke the invitation of {GUEST}").click()
    expect(page.get_by_role("rowheader", name=GUEST)).to_have_count(0)
    room(page, "People")
    page.get_by_role("link", name="Max Member").click()
    role = page.get_by_label("Role", exact=True)
    expect(role.get_by_role("option")).to_have_text(["Admin", "Member"])
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    room(page, "People, all fields")
    actions = page.locator("select[name=action] option")
    expect(actions.filter(has_text="Change role to admin")).to_have_count(1)
    expect(actions.filter(has_text=re.compile("owner|audit"))).to_have_count(0)
    run_action(page, re.escape(MEMBER), "Change role to member")
    page.get_by_role("button", name="Change role").click()
    expect(page.get_by_text("This is their role already.")).to_be_visible()
    room(page, "Spending limits")
    tokens = page.get_by_label("Tokens a month").first
    for value in ("900000000", ""):
        tokens.fill(value)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("Saved. The limits hold from now on.")).to_be_visible()


_ANSWERS = 6
"""To the question in the test chat and in the check; one is its title, at whatever moment it is asked for."""


def _buds(page: Page, quick: ScriptedModel) -> None:
    room(page, "Buds")
    add(page)
    page.get_by_label("Name", exact=True).fill("Trial")
    page.locator("#id_model").select_option(label="quick-model")
    quick.clear()
    for _ in range(_ANSWERS):
        quick.say("I am on trial")
    page.get_by_role("button", name="Start a test").click()
    frame = page.frame_locator("[data-test-frame]")
    composer = frame.get_by_role("textbox", name="Message")
    composer.fill("Who are you?")
    composer.press("Enter")
    expect(frame.locator("article.answer")).to_contain_text("I am on trial")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Trial is ready.")).to_be_visible()
    checks = page.get_by_role("region", name="Checks")
    checks.get_by_role("button", name="Add a check").click()
    checks.get_by_label("Question").fill("Who are you?")
    checks.get_by_label(re.compile("^The answer contains")).fill("trial")
    checks.get_by_role("button", name="Save check").click()
    checks.get_by_role("button", name="Run checks").click()
    expect(checks.get_by_text("1 of 1 passed").last).to_be_visible()
    room(page, "Buds")
    run_action(page, "Trial", "Archive")
    expect(page.get_by_text("1 bud archived.")).to_be_visible()


def _models(page: Page, quick: ScriptedModel) -> None:
    room(page, "Model providers")
    add(page)
    page.locator("input[name=name]").fill("Third")
    page.locator("input[name=base_url]").fill(quick.base_url)
    page.locator("input[name=default_model]").fill("quick-model")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_text(re.compile("answered in"))).to_be_visible()
    page.get_by_role("link", name="Edit").first.click()
    page.get_by_role("link", name="Delete").click()
    expect(page.get_by_text("No bud uses it.")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text(re.compile("“Third” was deleted"))).to_be_visible()


def _tools(page: Page) -> None:
    room(page, "Servers")
    card = page.locator("article.server", has_text="mcp-time").first
    card.get_by_role("button", name=re.compile("Test connection")).click()
    expect(card).to_contain_text("Connected")
    room(page, "Catalogue")
    page.get_by_role("searchbox").first.fill("notion")
    page.get_by_role("searchbox").first.press("Enter")
    expect(page.get_by_role("listitem", name="Notion")).to_be_visible()
    room(page, "Tools")
    run_action(page, "get_current_time", "Approval: ask first")
    expect(page.get_by_text("1 tool asks first.")).to_be_visible()
    run_action(page, "get_current_time", "Approval: default")
    expect(page.get_by_text("1 tool follows the default again.")).to_be_visible()
    room(page, "Call rules")
    page.get_by_role("link", name="New rule").click()
    page.get_by_label("Name", exact=True).fill("No trials")
    page.get_by_label("Tools").fill("trial_*")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Edit").first.click()
    page.get_by_role("button", name="Delete the rule").click()
    confirm(page, "Delete")
    expect(page.get_by_text("“No trials” is deleted.")).to_be_visible()


def _log_of_others(page: Page) -> None:
    """Who sees the log reads what was called, and not what with."""
    room(page, "Audit log")
    page.goto("/w/demo/audit/?range=24h&action=tool_call.finished&tool=get_current_time")
    page.get_by_role("row").filter(has_text="get_current_time").first.get_by_role(
        "link"
    ).first.click()
    expect(page.get_by_text("shown to auditors", exact=False).first).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("Europe/Oslo")
    page.goto("/w/demo/audit/?range=24h")
    expect(page.get_by_role("link", name="Send this regularly")).to_have_count(0)
    tabs = page.get_by_role("navigation", name="Audit")
    expect(tabs.get_by_role("link", name="Schedules")).to_have_count(0)
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_text("Only auditors export the log")).to_be_visible()
    page.keyboard.press("Escape")
    tab(page, "Overview")
    tab(page, "Reports")
    expect(page.locator("canvas").first).to_be_visible()
    tab(page, "Alerts")
    expect(page.get_by_role("button", name=re.compile("Switch|recommended"))).to_have_count(0)
    tab(page, "Streams")
    expect(page.get_by_role("button", name="Add stream")).to_have_count(0)
    tab(page, "Settings")
    expect(page.get_by_text("Only owners of the workspace change these.")).to_be_visible()


def test_the_platforms_owner_goes_through_all_rooms(
    page: Page, people: None, tmp_path: Path
) -> None:
    """REL-1488: what a workspace's owner may do, and what is the platform's."""
    enter(page, ROOT, at="/admin/")
    _rules_and_file(page, tmp_path)
    _alerts_and_streams(page)
    _platform(page)


def _rules_and_file(page: Page, tmp_path: Path) -> None:
    room(page, "Rules of this workspace")
    for verb, other in (("Switch on", "Switch off"), ("Switch off", "Switch on")):
        rule = page.get_by_role("listitem").filter(has_text="Members can add servers of their own")
        rule.get_by_role("button", name=verb).click()
        expect(rule.get_by_role("button", name=other)).to_be_visible()
    room(page, "Settings as a file")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    stored = tmp_path / "demo.yaml"
    download.value.save_as(stored)
    text = stored.read_text()
    page.get_by_label("File", exact=True).set_input_files(stored)
    page.get_by_role("button", name="Show what would change").click()
    expect(page.get_by_text("Nothing: the workspace is as the file says.")).to_be_visible()
    for word in ("everywhere", "anywhere"):
        page.goto("/w/demo/file/")
        page.get_by_label("Or its text").fill(re.sub("is, anywhere", f"is, {word}", text))
        page.get_by_role("button", name="Show what would change").click()
        expect(page.locator("pre.diff-lines")).to_contain_text(f"is, {word}")
        page.get_by_role("button", name="Apply", exact=True).click()
        expect(page.get_by_text("The workspace is as the file says now.")).to_be_visible()


def _alerts_and_streams(page: Page) -> None:
    room(page, "Alerts")
    page.get_by_role("button", name="Add recommended rules").click()
    for verb, other in (("off", "on"), ("on", "off")):
        page.get_by_role("button", name=f"Switch {verb} Calls time out").click()
        expect(page.get_by_role("button", name=f"Switch {other} Calls time out")).to_be_visible()
    page.get_by_role("link", name="Settings of Calls time out").click()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("This rule would stay quiet")).to_be_visible()
    room(page, "Alerts")
    tab(page, "Streams")
    page.locator("summary", has_text="Add: Signed webhook").click()
    form = page.locator("#add-webhook")
    form.locator("[name=name]").fill("Garden logs")
    form.locator("[name=target]").fill(urljoin(page.url, "/collector"))
    form.get_by_role("button", name="Add stream").click()
    expect(page.get_by_text("Copy the signing secret now")).to_be_visible()
    page.get_by_role("link", name=re.compile("Settings of Garden logs")).click()
    page.get_by_role("button", name="Delete").first.click()
    confirm(page, "Delete")
    page.wait_for_url("**/audit/streams/")
    expect(page.get_by_role("link", name="Settings of Garden logs")).to_have_count(0)


def _platform(page: Page) -> None:
    room(page, "Users")
    add(page)
    for email in (MEMBER.upper(), NEWCOMER):
        page.locator("input[name=email]").fill(email)
        for name in ("password1", "password2"):
            page.locator(f"input[name={name}]").fill("a-long-enough-9417")
        page.get_by_role("button", name="Save", exact=True).click()
        if email != NEWCOMER:
            expect(page.get_by_text("Another account has this address.")).to_be_visible()
            expect(page.get_by_text("Constraint")).to_have_count(0)
    expect(page.get_by_text(re.compile("was added successfully"))).to_be_visible()
    room(page, "Users")
    run_action(page, re.escape(NEWCOMER), "Switch off")
    page.get_by_role("button", name="Switch off", exact=True).click()
    expect(page.get_by_text("1 account switched off.")).to_be_visible()
    room(page, "Workspaces")
    add(page)
    page.locator("input[name=name]").fill("Third garden")
    page.locator("input[name=slug]").fill("third-garden")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text(re.compile("was added successfully"))).to_be_visible()
    room(page, "Workspaces")
    run_action(page, "Third garden", "Suspend")
    page.get_by_role("button", name="Suspend", exact=True).click()
    expect(page.get_by_text("1 workspace suspended.")).to_be_visible()
    room(page, "Program catalogue")
    page.goto("/admin/mcp_servers/stdioprogram/add/?known=time")
    page.locator("input[name=title]").fill("Clock of the platform")
    page.locator("input[name=slug]").fill("clock-of-the-platform")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text(re.compile("was added successfully"))).to_be_visible()
    page.get_by_role("link", name="Clock of the platform").first.click()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text(re.compile("was deleted successfully"))).to_be_visible()
    room(page, "Shared model providers")
    page.get_by_role("link", name=re.compile("Share a provider")).first.click()
    expect(page.locator("input[name=default_model]")).to_be_visible()
    room(page, "State of the installation")
    expect(page.get_by_role("navigation", name="State of the installation")).to_be_visible()
    room(page, "Audit of the platform")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    screenshot(page, "roles-platform")


def test_an_auditor_goes_through_the_log(page: Page, call: None) -> None:
    """REL-1488: reads, exports, keeps and signs; no room of the admin is offered, and no setting of the log."""
    enter(page, AUDITOR, at="/w/demo/audit/?range=24h&tool=get_current_time&outcome=ok")
    expect(page.get_by_role("link", name="Admin", exact=True)).to_have_count(0)
    page.get_by_role("row").filter(has_text="get_current_time").first.get_by_role(
        "link"
    ).first.click()
    expect(page.locator("main")).to_contain_text("Europe/Oslo")
    page.goto("/w/demo/audit/?range=24h&tool=get_current_time&show=calls")
    page.locator("a[href*='/audit/calls/']").first.click()
    expect(page.get_by_role("heading", name="Who asked")).to_be_visible()
    page.get_by_role("link", name="The whole turn").click()
    expect(page.get_by_role("heading", name="One turn")).to_be_visible()
    expect(page.locator("main")).to_contain_text("What time is it in Oslo?")
    page.goto("/w/demo/audit/?range=24h&tool=get_current_time")
    page.get_by_role("button", name="Views").click()
    page.get_by_label("Keep these filters as").fill("Clocks")
    page.locator("#view-name").locator("xpath=ancestor::form").get_by_role(
        "button", name="Save"
    ).click()
    page.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="Delete the view Clocks").click()
    confirm(page, "Delete")
    expect(page.get_by_role("button", name="Delete the view Clocks")).to_have_count(0)
    tab(page, "Overview")
    tab(page, "Reports")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="PDF, this report to print").click()
    assert Path(download.value.path()).read_bytes().startswith(b"%PDF")
    page.keyboard.press("Escape")
    tab(page, "Reviews")
    page.get_by_label("Note").fill("Nothing odd today")
    page.get_by_role("button", name="I have reviewed this").click()
    expect(page.get_by_role("row").filter(has_text="Nothing odd today").first).to_be_visible()
    tab(page, "Schedules")
    page.get_by_role("button", name="Schedule", exact=True).click()
    expect(page.get_by_text(re.compile("is scheduled"))).to_be_visible()
    page.get_by_role("button", name=re.compile("^Delete ")).first.click()
    confirm(page, "Delete")
    expect(page.get_by_text("is deleted.")).to_be_visible()
    tab(page, "Alerts")
    expect(page.get_by_role("button", name=re.compile("Switch|recommended"))).to_have_count(0)
    tab(page, "Streams")
    expect(page.get_by_role("button", name="Add stream")).to_have_count(0)
    tab(page, "Settings")
    expect(page.get_by_text("Only owners of the workspace change these.")).to_be_visible()
    screenshot(page, "roles-auditor")
