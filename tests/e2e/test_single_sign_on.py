"""Single sign-on as a person meets it: to the provider's page, and back."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.people import member_of_demo
from tests.e2e.screens import Screen
from tests.fakes.authorization import Issuer


def test_a_person_signs_in_with_the_provider(
    new_context: NewContext, trellis: RunningTrellis, provider: Issuer, screen: Screen
) -> None:
    """REL-3308: Who has never read of it signs in with the provider, and reads why not where they do not get in."""
    email = f"ida-{screen.name}@sso.example"
    trellis.shell(member_of_demo(email, "Ida Provided"))
    page = new_context().new_page()
    page.goto("/accounts/login/?next=/account/")
    screenshot(page, "sign-in-with-a-provider")

    page.get_by_role("link", name="Continue with Acme").click()
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()

    provider.accounts.name = "nobody@sso.example"
    page.get_by_role("link", name="Continue with Acme").click()
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_text("nobody has invited this address")).to_be_visible()
    screenshot(page, "refused-by-a-provider")

    provider.accounts.name = email
    page.goto("/accounts/login/?next=/account/")
    page.get_by_role("link", name="Continue with Acme").click()
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_label("Your name")).to_have_value("Ida Provided")
