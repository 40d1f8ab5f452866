"""Two-step verification as a person meets it: turning it on, signing in with it, and without the phone."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from config.demo.people import PASSWORD
from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.people import go_to_settings, member_of_demo
from tests.e2e.screens import Screen
from tests.workspaces.people.authenticator_app import code_of


def give_password(page: Page, email: str) -> None:
    """Fill the first form of signing in."""
    page.goto("/accounts/login/")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def give_code(page: Page, code: str) -> None:
    """Fill the second one."""
    expect(page.get_by_role("heading", name="Enter your code")).to_be_visible()
    page.get_by_label("Code", exact=True).fill(code)
    page.get_by_role("button", name="Sign in").click()


def test_a_person_turns_it_on_and_signs_in_with_it(
    new_context: NewContext, trellis: RunningTrellis, screen: Screen, tmp_path: Path
) -> None:
    """REL-3283: Who has never read of it turns on two-step verification, signs in with it, and without the phone."""
    email = f"tove-{screen.name}@demo.example"
    trellis.shell(member_of_demo(email, "Tove Steps"))
    page = new_context().new_page()
    give_password(page, email)
    page.wait_for_url("**/w/demo/**")

    page.goto("/account/")
    go_to_settings(page, "Two-step verification")
    page.get_by_role("link", name="Turn on").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("img", name="QR code")).to_be_visible()
    screenshot(page, "two-step-key")
    key = page.locator("#app-key").inner_text()
    page.get_by_label("Code", exact=True).fill("000000")
    page.get_by_role("button", name="Turn on").click()
    expect(page.get_by_text("This code is not right.")).to_be_visible()
    page.get_by_label("Code", exact=True).fill(code_of(key))
    page.get_by_role("button", name="Turn on").click()
    expect(page.get_by_text("Keep these recovery codes before you go on.")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    kept = tmp_path / "codes.txt"
    download.value.save_as(kept)
    codes = re.findall(r"\b\d{8}\b", kept.read_text())
    assert len(codes) == 10
    page.get_by_role("link", name="Done").click()
    expect(page.get_by_text("You have 10 unused codes.")).to_be_visible()

    with_phone = new_context().new_page()
    give_password(with_phone, email)
    give_code(with_phone, "000000")
    expect(with_phone.get_by_text("This code is not right.")).to_be_visible()
    give_code(with_phone, code_of(key))
    with_phone.wait_for_url("**/w/demo/**")

    without = new_context().new_page()
    give_password(without, email)
    give_code(without, codes[0])
    without.wait_for_url("**/w/demo/**")
    page.reload()
    expect(page.get_by_text("You have 9 unused codes.")).to_be_visible()
    screenshot(page, "two-step-on")

    page.get_by_role("link", name="Turn off…").click()
    page.get_by_role("button", name="Turn off").click()
    expect(page.get_by_text("Two-step verification is off.")).to_be_visible()
