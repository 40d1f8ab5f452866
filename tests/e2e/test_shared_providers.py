"""The platform's owner shares a model provider, a member is answered by it, and it is taken back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.people import ADMIN, MEMBER, enter, expect_idle, open_chat, say
from tests.e2e.platform_owner import check, owner_page
from tests.fakes.scripted_model import ScriptedModel

OWNER = "platform@demo.example"
KEY = "sk-shared-journey-0123456789"

LOOK = """
from datetime import timedelta
from django.db.models import F
from chat.models import SharedProviderList
from chat.services.model_list_updates import look_at_lists
from workspaces.database.row_security import everywhere
with everywhere():
    SharedProviderList.objects.update(asked_at=F("asked_at") - timedelta(days=1))
look_at_lists()
"""
"""What happens once a day."""


@pytest.fixture
def owner(trellis: RunningTrellis, new_context: NewContext) -> Iterator[Page]:
    """A page of the platform's owner."""
    with owner_page(trellis, new_context, email=OWNER, name="Pia Platform") as page:
        yield page


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A provider that takes the shared key alone."""
    scripted = ScriptedModel()
    scripted.keys = {KEY}
    yield scripted
    scripted.stop()


def test_a_provider_is_shared_used_and_taken_back(
    trellis: RunningTrellis, owner: Page, new_context: NewContext, model: ScriptedModel
) -> None:
    """REL-938, REL-939, REL-930, REL-933, REL-1030, REL-1031, REL-1036: the key is entered once, and the workspace never sees it."""
    owner.goto("/platform/providers/")
    expect(owner.get_by_text("You share no provider yet")).to_be_visible()
    check(owner, "shared-providers")
    owner.get_by_role("link", name="Share a provider").click()
    owner.get_by_label("Name", exact=True).fill("Company model")
    owner.get_by_label("Base URL").fill(model.base_url)
    owner.get_by_label("Default model", exact=True).fill("shared-model")
    owner.get_by_label("API key").fill("sk-mistyped-0123456789")
    owner.get_by_role("button", name="Save").click()
    expect(owner.get_by_text("did not accept this key")).to_be_visible()
    check(owner, "shared-provider-form")
    owner.get_by_label("API key").fill(KEY)
    model.say("Yes.")
    owner.get_by_role("button", name="Save").click()
    expect(owner.get_by_text("Choose the workspaces that may use it.")).to_be_visible()
    owner.get_by_role("searchbox", name="Name").fill("demo")
    owner.get_by_role("searchbox", name="Name").press("Enter")
    owner.get_by_role("button", name="Give it to Demo workspace").click()
    expect(owner.get_by_text("“Demo workspace” may use “Company model” now.")).to_be_visible()

    page = new_context().new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Oslo?")
    expect(page.locator("article.answer").last).to_contain_text("it is now")
    expect_idle(page)
    composer = page.locator(".composer")
    composer.get_by_role("button", name=re.compile("^Bud and model: ")).click()
    page.get_by_role("dialog").get_by_role("option", name=re.compile("shared-model")).click()
    chosen = re.compile("^Bud and model: .*shared-model")
    expect(composer.get_by_role("button", name=chosen)).to_be_visible()
    model.say("Time for a shared tea.")
    say(page, "And now?")
    expect(page.locator("article.answer").last).to_contain_text("Time for a shared tea.")
    expect_idle(page)

    admin = new_context(bypass_csp=True).new_page()
    enter(admin, ADMIN, "/admin/chat/modelprovider/")
    expect(admin.get_by_role("cell", name="Shared by the platform")).to_be_visible()
    admin.get_by_role("link", name="Test and models").click()
    expect(admin.get_by_text("Whoever runs Trellis has entered its address")).to_be_visible()
    assert model.base_url not in admin.content()
    check(admin, "shared-provider-in-workspace")

    for names in (("shared-model", "small-model"), ("small-model", "fresh-model")):
        model.models = {"data": [{"id": name} for name in names]}
        trellis.shell(LOOK)
    admin.reload()
    expect(admin.get_by_text(re.compile("fresh-model, in the list since"))).to_be_visible()
    check(admin, "provider-list-news")
    admin.get_by_role("button", name="Add fresh-model").click()
    expect(admin.get_by_role("button", name="Add fresh-model")).to_have_count(0)
    expect(admin.get_by_role("rowheader", name="fresh-model")).to_be_visible()

    owner.reload()
    expect(owner.get_by_text(re.compile("shared-model, not in the list since"))).to_be_visible()
    check(owner, "shared-provider")
    owner.get_by_role("link", name="Models and limits of Demo workspace").click()
    expect(owner.get_by_role("heading", name="Company model in Demo workspace")).to_be_visible()
    owner.get_by_label("Names of the chosen models").fill("small-model")
    owner.get_by_role("radio", name="Chosen models").check()
    owner.get_by_label("Requests a minute").fill("30")
    owner.get_by_role("button", name="Save").click()
    expect(
        owner.get_by_text("Models that you take away are used by 1 chat of 1 workspace")
    ).to_be_visible()
    check(owner, "shared-provider-part")
    owner.get_by_label("Take these models away all the same").check()
    owner.get_by_role("button", name="Save").click()
    expect(owner.get_by_text("What “Demo workspace” may use is saved.")).to_be_visible()
    expect(owner.get_by_text("of 30 a minute")).to_be_visible()
    say(page, "And this one?")
    expect(
        page.get_by_text("no longer lets this workspace use “shared-model”").first
    ).to_be_visible()
    expect_idle(page)
    composer.get_by_role("button", name=chosen).click()
    notice = page.get_by_role("dialog").get_by_text("“shared-model” no longer answers")
    expect(notice).to_be_visible()
    screenshot(page, "model-taken-away")
    expect_no_faults(page, "choice of a model that was taken away")
    page.keyboard.press("Escape")
    admin.reload()
    expect(admin.get_by_text("use the default model “shared-model”")).to_be_visible()
    check(admin, "shared-provider-limited")

    owner.get_by_role("button", name="Withdraw it from Demo workspace").click()
    dialog = owner.get_by_role("alertdialog").or_(owner.get_by_role("dialog"))
    expect(dialog).to_contain_text("It is used there by 1 chat.")
    dialog.get_by_role("button", name="Withdraw").click()
    expect(owner.get_by_text("can no longer use “Company model”")).to_be_visible()
    say(page, "Still there?")
    expect(page.get_by_text("no longer shared with this workspace").first).to_be_visible()

    owner.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(owner.get_by_text("“Company model” is deleted.")).to_be_visible()
    expect(owner.get_by_text("You share no provider yet")).to_be_visible()
