"""A provider's key is changed while people ask: nothing stops, and a key that does not work is told before it is stored."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from django.urls import reverse

from audit.models import AuditEntry, Notice
from chat.models import ModelProvider, ModelRequest
from chat.providers.limits import LEASE
from chat.services.provider_check import rotate_key
from chat.values import TurnStatus
from config.admin import dashboard
from tests.chat.conftest import Chat
from tests.fakes.scripted_model import ScriptedModel
from tests.patience import wait_until
from workspaces.database import database_now
from workspaces.redaction import MASK

OLD, NEW = "sk-scripted-canary-0123456789", "sk-second-canary-0123456789"


@pytest.fixture
def provider(chat: Chat) -> ModelProvider:
    """The chat's provider, which takes only the key that is stored."""
    chat.model.keys = {OLD}
    assert chat.bud.provider is not None
    return chat.bud.provider


def change_key(chat: Chat, provider: ModelProvider) -> None:
    """As the key's form does, at a provider that takes both keys for a while."""
    chat.model.keys = {OLD, NEW}
    chat.model.say("Yes.")
    rotate_key(provider=provider, new_key=NEW, actor=chat.tenant.actor("admin"))


def stored_key(provider: ModelProvider) -> str:
    provider.refresh_from_db()
    return provider.api_key.reveal("test") if provider.api_key else ""


def page_of(chat: Chat, provider: ModelProvider) -> str:
    return reverse("chat:provider", args=[chat.tenant.workspace.slug, provider.pk])


def call(chat: Chat, method: str, path: str, **body: Any) -> Any:
    client = chat.tenant.client("admin")
    client.raise_request_exception = False  # it hears of every answer above 500
    return client.generic(
        method,
        f"/api/providers/{path}",
        json.dumps(body),
        content_type="application/json",
        headers={"X-Workspace": chat.tenant.workspace.slug},
    )


@pytest.mark.both_engines
def test_an_answer_that_streams_ends_well_and_the_next_one_takes_the_new_key(
    chat: Chat, provider: ModelProvider, hold: threading.Event
) -> None:
    """REL-528: also where the old key is revoked while the answer streams."""
    chat.model.say("The first answer", hold=hold)
    first = chat.send()
    chat.watching.until(lambda event: event["type"] == "text.delta")
    change_key(chat, provider)
    chat.model.keys = {NEW}
    hold.set()
    chat.watching.turn("completed")
    assert chat.answer() == "The first answer"
    assert chat.reload(first.turn).error_code == ""
    chat.watching.forget()
    chat.model.keys_sent.clear()
    chat.model.say("The second answer")
    assert chat.ask("again").status == TurnStatus.COMPLETED
    assert set(chat.model.keys_sent) == {NEW}


@pytest.mark.both_engines
def test_a_question_that_waited_while_the_key_changed_takes_the_new_one(
    chat: Chat, provider: ModelProvider, hold: threading.Event
) -> None:
    """REL-810: a request that was to be sent with a key that is revoked by now is sent with the stored one."""
    rows = ModelProvider.objects.for_workspace(chat.tenant.workspace)
    rows.filter(pk=provider.pk).update(most_at_once=1)
    now = database_now()
    blocking = ModelRequest.objects.create(
        workspace=chat.tenant.workspace, provider=provider, alive_until=now + LEASE, started_at=now
    )
    chat.send()
    requests = ModelRequest.objects.for_workspace(chat.tenant.workspace)
    wait_until(lambda: requests.filter(started_at=None).exists())
    change_key(chat, provider)
    chat.model.keys = {NEW}
    chat.model.keys_sent.clear()
    chat.model.say("It waited, and was answered.")
    blocking.delete()
    chat.watching.turn("completed")
    assert chat.answer() == "It waited, and was answered."
    assert chat.model.keys_sent[:2] == [OLD, NEW]


def test_a_key_that_the_provider_refuses_is_told_at_its_field_and_not_stored(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-811: on the provider's page, in the admin's form and over REST; also where anybody may list its models."""
    chat.model.lists_for_everybody = True
    client = chat.tenant.client("admin")
    text = "did not accept this key, so nothing was changed"
    wrong = "sk-wrong-canary-0123456789"

    page = client.post(page_of(chat, provider), {"api_key": wrong})
    assert (page.status_code, text in page.context["key_fault"]) == (422, True)
    assert 'aria-invalid="true"' in page.content.decode()
    assert "Store the key without a test" not in page.content.decode()

    form = client.post(edit_page(provider), {**draft_of(provider), "new_api_key": wrong})
    assert text in str(form.context["adminform"].form.errors["new_api_key"])
    assert wrong not in form.content.decode()

    for answer in (
        call(chat, "POST", f"{provider.pk}/rotate-key/", api_key=wrong),
        call(chat, "PATCH", f"{provider.pk}/", api_key=wrong),
    ):
        assert answer.status_code == 422
        assert [one["attr"] for one in answer.json()["errors"]] == ["api_key"]
        assert text in answer.content.decode()
    assert stored_key(provider) == OLD


def test_a_key_that_works_is_stored_by_every_form_and_logged_without_it(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-811: each way asks the default model for a word with the new key first."""
    chat.model.keys = None
    client = chat.tenant.client("admin")
    ways: list[Any] = [
        lambda key: client.post(page_of(chat, provider), {"api_key": f" {key} "}),
        lambda key: client.post(edit_page(provider), {**draft_of(provider), "new_api_key": key}),
        lambda key: call(chat, "POST", f"{provider.pk}/rotate-key/", api_key=key),
        lambda key: call(chat, "PATCH", f"{provider.pk}/", api_key=key),
    ]
    for number, way in enumerate(ways):
        key = f"sk-canary-number-{number}-0123456789"
        chat.model.say("Yes.")
        assert way(key).status_code in (200, 302)
        assert stored_key(provider) == key
        assert chat.model.keys_sent.pop() == key
    entries = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    assert "canary-number" not in str(list(entries.values()))
    changes = entries.filter(action="config.changed").order_by("-pk")[:4]
    assert [row.details["after"] for row in changes] == [{"api_key": MASK}] * 4


def test_the_same_key_again_is_told(chat: Chat, provider: ModelProvider) -> None:
    """REL-811: whoever pastes the old key by mistake would believe that it was changed."""
    page = chat.tenant.client("admin").post(page_of(chat, provider), {"api_key": OLD})
    assert "stored already" in page.context["key_fault"]
    assert chat.model.keys_sent == []


def test_while_the_provider_is_down_a_key_is_stored_only_on_request(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-812: a key that must not be used any more can be replaced also then, and people are told that it is untested."""
    away = ScriptedModel()
    away.stop()
    rows = ModelProvider.objects.for_workspace(chat.tenant.workspace)
    rows.filter(pk=provider.pk).update(base_url=away.base_url)
    provider.refresh_from_db()
    client = chat.tenant.client("admin")
    text = "connect to the model provider at 127.0.0.1"

    page = client.post(page_of(chat, provider), {"api_key": NEW})
    assert text in page.context["key_fault"]
    assert "Store the key without a test" in page.content.decode()
    form = client.post(edit_page(provider), {**draft_of(provider), "new_api_key": NEW})
    assert text in str(form.context["adminform"].form.errors["new_api_key"])
    assert "Store the key without a test" in form.content.decode()
    refused = call(chat, "POST", f"{provider.pk}/rotate-key/", api_key=NEW)
    assert (refused.status_code, text in refused.content.decode()) == (502, True)
    assert stored_key(provider) == OLD

    page = client.post(page_of(chat, provider), {"api_key": NEW, "untested": "1"})
    assert "Nobody knows yet whether it works" in page.content.decode()
    assert stored_key(provider) == NEW
    given = {**draft_of(provider), "new_api_key": f"{NEW}-a", "untested_key": "on"}
    assert client.post(edit_page(provider), given).status_code == 302
    assert stored_key(provider) == f"{NEW}-a"
    call(chat, "PATCH", f"{provider.pk}/", api_key=f"{NEW}-b", untested_key=True)
    assert stored_key(provider) == f"{NEW}-b"


def test_a_key_that_was_revoked_too_early_is_told_in_words_with_what_to_do(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-813: people read whose key it is, and who can change it where."""
    chat.model.keys = {NEW}
    turn = chat.ask()
    assert turn.error_code == "provider_key_refused"
    assert "“scripted” refused the API key that is stored for it" in turn.error_message
    assert "A workspace admin can enter a working key under “Change the key”" in turn.error_message
    chat.model.say("Yes.")
    page = chat.tenant.client("admin").post(page_of(chat, provider), {"api_key": NEW})
    assert "The new key works" in page.content.decode()
    chat.watching.forget()
    chat.model.say("All is well again.")
    assert chat.ask("again").status == TurnStatus.COMPLETED


def test_a_key_that_is_missing_is_told_as_missing(chat: Chat, provider: ModelProvider) -> None:
    """REL-813."""
    rows = ModelProvider.objects.for_workspace(chat.tenant.workspace)
    rows.filter(pk=provider.pk).update(api_key=None)
    turn = chat.ask()
    assert "“scripted” wants an API key, and none is stored." in turn.error_message
    page = chat.tenant.client("admin").get(page_of(chat, provider))
    assert "Add a key" in page.content.decode()


@pytest.mark.both_engines
def test_those_who_can_change_a_refused_key_are_told_once(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-819: with the way to the key's field; again only where a changed key is refused, too."""
    chat.model.keys = set()
    chat.ask()
    chat.watching.forget()
    chat.ask("again")
    notices = Notice.objects.for_workspace(chat.tenant.workspace).filter(kind="model.key_refused")
    recipients = notices.values_list("user__email", "title", "url")
    title, url = "“scripted” refused its API key", f"{page_of(chat, provider)}#key-heading"
    people = (chat.tenant.owner, chat.tenant.admin)
    assert sorted(recipients) == sorted((person.email, title, url) for person in people)
    assert 'id="key-heading"' in chat.tenant.client("admin").get(url).content.decode()
    actor = chat.tenant.actor("admin")
    rotate_key(provider=provider, new_key=NEW, actor=actor, is_tested=False)
    chat.watching.forget()
    chat.ask("and again")
    assert notices.count() == 2 * len(people)


def test_the_first_step_of_a_workspace_is_not_done_while_its_key_is_refused(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-3290: it says so, and leads to the key's field. Another key, or an answer, makes it done again."""
    tenant = chat.tenant

    def to_do() -> list[dashboard.Step]:
        steps = dashboard.read(tenant.workspace, tenant.actor("admin")).steps
        return [step for step in steps if not step.is_done]

    assert to_do() == []
    chat.model.keys = set()
    chat.ask()
    [step] = to_do()
    assert step.url == f"{page_of(chat, provider)}#key-heading"
    assert step.text.startswith("“scripted” refused its API key. It cannot answer until")
    page = tenant.client("admin").get("/admin/").content.decode()
    assert f'href="{step.url}"' in page
    assert tenant.client("admin").get(step.url).status_code == 200

    chat.model.keys = {OLD}
    chat.watching.forget()
    chat.model.say("The account is paid for.")
    chat.ask("again")
    assert to_do() == []

    chat.model.keys = set()
    Notice.objects.for_workspace(tenant.workspace).delete()
    chat.watching.forget()
    chat.ask("and again")
    assert to_do() != []
    rotate_key(provider=provider, new_key=NEW, actor=tenant.actor("admin"), is_tested=False)
    assert to_do() == []


def test_a_new_address_without_a_new_key_says_that_the_key_is_gone(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-813: a key is sent to the address that it was stored for, and to no other."""
    client = chat.tenant.client("admin")
    given = {**draft_of(provider), "base_url": "https://models.example.org/v1"}
    page = client.post(edit_page(provider), given, follow=True)
    assert "The stored key was for the old address" in page.content.decode()
    assert stored_key(provider) == ""


def edit_page(provider: ModelProvider) -> str:
    return reverse("admin:chat_modelprovider_change", args=[provider.pk])


def draft_of(provider: ModelProvider) -> dict[str, str]:
    """The form as it stands."""
    return {
        "name": provider.name,
        "base_url": provider.base_url,
        "default_model": provider.default_model,
        "is_active": "on",
        "known_models-TOTAL_FORMS": "0",
        "known_models-INITIAL_FORMS": "0",
    }
