"""Passkeys as a person meets them: adding one, and signing in with it. Chromium brings the device."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Page, expect

from config.demo.people import PASSWORD
from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.people import go_to_settings, member_of_demo
from tests.e2e.screens import Screen
from tests.e2e.test_two_step import give_password

DEVICE: Final = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def give_device(page: Page) -> None:
    """Have the browser's device answer, as its owner would. Source: the WebAuthn domain of Chrome's DevTools protocol."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})


def sign_out(page: Page) -> None:
    """Lose the session, once nothing of the page can bring it back."""
    page.goto("about:blank")
    page.context.clear_cookies()


def test_a_person_adds_a_passkey_and_signs_in_with_it(
    new_context: NewContext, trellis: RunningTrellis, screen: Screen
) -> None:
    """REL-3311: Who has never read of it adds a passkey, signs in with it alone, and after the password."""
    email = f"pia-{screen.name}@demo.example"
    trellis.shell(member_of_demo(email, "Pia Keys"))
    page = new_context().new_page()
    give_device(page)
    give_password(page, email)
    page.wait_for_url("**/w/demo/**")

    page.goto("/account/")
    go_to_settings(page, "Passkeys")
    screenshot(page, "passkeys-none")
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Go on").click()
    page.get_by_label("Name").fill("My phone")
    screenshot(page, "passkey-add")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    page.goto("/accounts/2fa/passkeys/")
    expect(page.get_by_text("My phone Added")).to_be_visible()
    screenshot(page, "passkeys")

    sign_out(page)
    page.goto("/accounts/login/?next=/account/")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_label("Your name")).to_be_visible()

    sign_out(page)
    give_password(page, email)
    expect(page.get_by_role("heading", name="Use your passkey")).to_be_visible()
    screenshot(page, "passkey-second-step")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url("**/w/demo/**")

    page.goto("/accounts/2fa/passkeys/")
    page.get_by_role("link", name="Remove My phone").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("The passkey is removed.")).to_be_visible()
