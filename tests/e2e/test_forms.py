"""Forms that hold much, choose among much, or do what cannot be undone: nothing is lost, and nothing is a surprise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings
from playwright.sync_api import FilePayload, Page, expect

from config.demo.people import PASSWORD
from tests.e2e.conftest import NewContext, RunningTrellis
from tests.e2e.looks import look_at
from tests.e2e.people import ADMIN, enter
from tests.e2e.screens import DESK
from tests.fakes.scripted_model import ScriptedModel

pytestmark = pytest.mark.screens(DESK, reason="sets its sizes and themes itself")

ADD_MODELS = """
from chat.models import ModelProvider, ProviderModel
provider = ModelProvider.objects.across_workspaces().get(name="Compared")
ProviderModel.objects.bulk_create(
    ProviderModel(workspace=provider.workspace, provider=provider, model=f"vendor/model-{at:03}") for at in range(300))
ModelProvider.objects.create(workspace=provider.workspace, name="Leaning", base_url=provider.base_url,
    default_model="main-model", fallback=provider)
print(provider.pk)
"""
REMOVE_MODELS = """
from chat.models import ModelProvider, ProviderModel
ModelProvider.objects.across_workspaces().filter(name="Leaning").delete()
ProviderModel.objects.across_workspaces().filter(model__startswith="vendor/model-").delete()
"""


@pytest.fixture
def admin(new_context: NewContext) -> Page:
    """A page of the demo's admin, who looks at it in both themes."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, ADMIN)
    return page


@pytest.fixture
def provider_id(trellis: RunningTrellis, keeper: ScriptedModel) -> Iterator[str]:
    """A provider with three hundred models, which a bud uses and another provider falls back to."""
    yield trellis.shell(ADD_MODELS).split()[-1]
    trellis.shell(REMOVE_MODELS)


def test_a_bud_that_is_saved_after_the_session_ended_is_still_there(admin: Page) -> None:
    """REL-1481: signed in again, all of it stands in the editor as it was typed, and can be saved."""
    admin.goto("/w/demo/buds/new/")
    admin.get_by_label("Name", exact=True).fill("Long work")
    instructions = admin.locator("[name=system_prompt]")
    instructions.fill("An hour of writing.\nIn two lines.")
    admin.get_by_role("radio", name="Pink").check(force=True)
    every = admin.locator("[name=takes_all_tools]")
    every.uncheck()
    notes = admin.locator("[data-tool-picker] details", has_text="notes").first
    notes.locator("summary").click()
    notes.get_by_label("Use notes").check()
    sent = admin.locator("[name=mcp_config]").input_value()
    admin.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    admin.get_by_role("button", name="Save", exact=True).click()
    expect(admin.get_by_text("You were signed out, so nothing was saved.")).to_be_visible()
    admin.locator("input[name=login]").fill(ADMIN)
    admin.locator("input[name=password]").fill(PASSWORD)
    admin.locator("form button[type=submit]").first.click()
    admin.wait_for_url("**/buds/new/")
    expect(admin.get_by_text("What you typed is back. It is not saved yet.")).to_be_visible()
    expect(admin.get_by_text("You have unsaved changes.")).to_be_visible()
    look_at(admin, "form-put-back")
    expect(admin.get_by_label("Name", exact=True)).to_have_value("Long work")
    expect(instructions).to_have_value("An hour of writing.\nIn two lines.")
    expect(admin.get_by_role("radio", name="Pink")).to_be_checked()
    expect(every).not_to_be_checked()
    expect(notes.get_by_label("Use notes")).to_be_checked()
    assert admin.locator("[name=mcp_config]").input_value() == sent
    admin.get_by_role("button", name="Save", exact=True).click()
    expect(admin.get_by_text("Long work is ready.")).to_be_visible()


def test_pasted_text_and_a_file_are_not_mixed_up(admin: Page) -> None:
    """REL-1482: the page asks for one of the two, and the text stays."""
    admin.goto("/w/demo/buds/import/")
    admin.get_by_label("Or its text").fill("name: Mine\nslug: mine")
    file = FilePayload(name="bud.yaml", mimeType="application/yaml", buffer=b"name: F\nslug: f")
    admin.get_by_label("File", exact=True).set_input_files(file)
    admin.get_by_role("button", name="Import").click()
    expect(admin.get_by_text("Empty the field, or send the text")).to_be_visible()
    expect(admin.get_by_label("Or its text")).to_have_value("name: Mine\nslug: mine")
    look_at(admin, "form-file-or-text")


def test_a_join_link_for_everybody_is_confirmed_first(admin: Page) -> None:
    """SEC-675: the form says what it means, and makes it once that is wanted."""
    admin.goto("/w/demo/people/link/")
    admin.get_by_label("Mail domain").fill("gmail.com")
    admin.get_by_role("button", name="Make the link").click()
    expect(admin.get_by_text("Anybody can get an address at gmail.com")).to_be_visible()
    look_at(admin, "form-join-link")
    admin.get_by_label("Make the link all the same: anybody may join").check()
    admin.get_by_role("button", name="Make the link").click()
    expect(admin.get_by_text("Copy the link now")).to_be_visible()
    admin.goto("/w/demo/people/invite/")
    admin.get_by_role("button", name="Revoke the link for gmail.com").click()


def test_one_of_many_models_is_found_and_a_provider_in_use_is_told(
    admin: Page, provider_id: str
) -> None:
    """REL-1483, REL-1484: by typing, in the editor and on the provider's page; then who would miss it."""
    admin.goto("/w/demo/buds/new/")
    find = admin.get_by_label("Find a model")
    find.fill("compared 299")
    options = admin.locator("#id_model option")
    expect(admin.get_by_text("1 of ")).to_be_visible()
    expect(options).to_have_count(2)  # and what is chosen
    look_at(admin, "form-find-a-model")
    find.press("Enter")
    expect(admin.locator("#id_model")).to_have_value(f"{provider_id}|vendor/model-299")
    admin.get_by_label("Name", exact=True).fill("")  # nothing is to be kept
    admin.once("dialog", lambda dialog: dialog.accept())
    admin.goto(f"/w/demo/providers/{provider_id}/")
    admin.get_by_label("Find a model").fill("model-29")
    rows = admin.get_by_role("region", name="Table of models and prices").locator("tbody tr")
    expect(rows.filter(visible=True)).to_have_count(10)
    look_at(admin, "form-models-of-a-provider")
    admin.goto(f"/admin/chat/modelprovider/{provider_id}/delete/")
    expect(admin.get_by_role("heading", name="“Compared” is still in use")).to_be_visible()
    expect(admin.get_by_role("link", name="Keeper")).to_be_visible()
    expect(admin.get_by_text("“Leaning” asks it when it fails.")).to_be_visible()
    expect(admin.get_by_role("button", name="Delete")).to_have_count(0)
    look_at(admin, "form-provider-in-use")
    admin.keyboard.press("Escape")
    admin.wait_for_url("**/change/")


def test_what_a_judge_said_stands_with_the_result(admin: Page, keeper: ScriptedModel) -> None:
    """REL-1485: in the editor, with the check that it was about. REL-2721: the list leads to a chat with a bud, too."""
    keeper.clear()
    keeper.say("Good day.")
    keeper.say("NO\nThe answer greets, and gives no opening hours.")
    admin.goto("/w/demo/buds/")
    admin.get_by_role("link", name="Start a chat with Keeper", exact=True).click()
    expect(admin.get_by_role("textbox", name="Message Keeper")).to_be_visible()
    admin.go_back()
    admin.get_by_role("link", name="Keeper", exact=True).click()
    checks = admin.get_by_role("region", name="Checks")
    checks.get_by_role("button", name="Add a check").click()
    checks.get_by_label("Question").fill("When are you open?")
    checks.get_by_label("Judged by a model").fill("It names the opening hours")
    checks.get_by_role("button", name="Save check").click()
    checks.get_by_role("button", name="Run checks").click()
    expect(checks.get_by_text("The answer greets, and gives no opening hours.")).to_be_visible()
    checks.scroll_into_view_if_needed()
    look_at(admin, "form-judged")
