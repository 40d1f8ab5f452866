"""Several rows of a list in the admin, and what is done with them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import NewContext, RunningTrellis
from tests.e2e.looks import look_at
from tests.e2e.people import ADMIN, enter

LIST = "/admin/workspaces/membership/?q=temp"
ADD_PEOPLE = """
from workspaces.models import Membership, User, Workspace
for name in ("Tara", "Tim", "Tom"):
    user = User.objects.create_user(f"{name.lower()}@temp.example", name=f"{name} Temp", is_confirmed=True)
    Membership.objects.create(workspace=Workspace.objects.get(slug="demo"), user=user)
"""
REMOVE_PEOPLE = """
from workspaces.models import Membership, User
Membership.unscoped.filter(user__email__endswith="@temp.example").delete()
User.objects.filter(email__endswith="@temp.example").update(is_active=False)
"""


@pytest.fixture
def people(trellis: RunningTrellis) -> Iterator[None]:
    """Three members more, who are gone afterwards."""
    trellis.shell(ADD_PEOPLE)
    yield
    trellis.shell(REMOVE_PEOPLE)


def choose(page: Page, *names: str) -> None:
    """Choose rows by their boxes, by keyboard."""
    for name in names:
        box = page.get_by_role("row", name=re.compile(name)).get_by_role("checkbox")
        box.focus()
        page.keyboard.press("Space")
        expect(box).to_be_checked()


def run(page: Page, action: str) -> None:
    """Choose an action and run it, by keyboard."""
    menu = page.get_by_role("combobox", name="Action")
    menu.focus()
    menu.select_option(label=action)
    button = page.get_by_role("button", name="Run")
    expect(button).to_be_visible()
    page.keyboard.press("Tab")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")


def test_three_members_are_suspended_at_once(new_context: NewContext, people: None) -> None:
    """REL-1190, REL-1191: by keyboard; Escape, Cancel and the way back change nothing."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, ADMIN, at=LIST)
    heading = page.get_by_role("heading", name="Suspend 3 members?")
    for leave in ("Escape", "Enter", "back"):  # the focus is on Cancel
        choose(page, "tara@", "tim@", "tom@")
        if leave == "Escape":
            look_at(page, "row-actions-chosen", always_all=True)
        run(page, "Suspend")
        expect(heading).to_be_visible()
        expect(page.get_by_role("link", name="Cancel")).to_be_focused()
        if leave == "Escape":
            look_at(page, "row-actions-asked", always_all=True)
        if leave == "back":
            page.go_back()
        else:
            page.keyboard.press(leave)
        expect(heading).to_have_count(0)
        expect(page).to_have_url(re.compile(r"membership/\?q=temp$"))
        page.goto(LIST)
        expect(page.locator("#result_list")).not_to_contain_text("suspended")
    choose(page, "tara@", "tim@", "tom@")
    run(page, "Suspend")
    expect(page.get_by_text("They can no longer enter this workspace.")).to_be_visible()
    for name in ("Tara", "Tim", "Tom"):
        expect(page.get_by_text(f"{name} Temp ({name.lower()}@temp.example)")).to_be_visible()
    page.get_by_label("Reason (optional)").focus()
    page.keyboard.type("The fair is over")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Suspend", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("3 members suspended.")).to_be_visible()
    expect(page.locator("#result_list")).to_contain_text("suspended")
    choose(page, "tara@", "tom@")
    run(page, "Let in again")
    expect(page.get_by_text("2 members may enter again.")).to_be_visible()
    choose(page, "tara@", "tim@")
    run(page, "Let in again")
    expect(page.get_by_text("1 member may enter again.")).to_be_visible()
    expect(page.get_by_text("tara@temp.example is not suspended.")).to_be_visible()
    look_at(page, "row-actions-told", always_all=True)


def test_a_folded_section_of_a_form_opens_with_its_fault(new_context: NewContext) -> None:
    """REL-1193: by keyboard; a section is folded again once nothing in it is wrong."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, ADMIN, at="/admin/chat/modelprovider/add/")
    limit = page.get_by_label("Requests at once")
    expect(limit).to_be_hidden()
    look_at(page, "form-folded", always_all=True)
    page.locator("summary", has_text="Advanced").press("Enter")
    expect(limit).to_be_visible()
    look_at(page, "form-opened", always_all=True)
    limit.fill("0")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Enter 1 or more.")).to_be_visible()
    expect(page.get_by_label("Requests at once")).to_have_value("0")
    look_at(page, "form-faulty", always_all=True)
