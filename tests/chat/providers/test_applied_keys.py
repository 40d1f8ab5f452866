"""Keys of providers in a workspace's file: tested before anything of the file is applied."""

from __future__ import annotations

import json
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from chat.models import ModelProvider
from config.workspace_files import (
    KeysUntested,
    WorkspaceTarget,
    apply_file,
    providers,
    write_workspace,
)
from tests.chat.conftest import Chat
from tests.fakes.scripted_model import ScriptedModel
from tests.patience import PATIENCE, wait_until
from tests.threads import Threads
from workspaces.errors import InvalidInput
from workspaces.secret_memory import without_secrets

GOOD, BAD = "sk-good-canary-0123456789", "sk-bad-canary-0123456789"


@pytest.fixture
def place(chat: Chat) -> WorkspaceTarget:
    """The chat's workspace; its model takes the good key alone."""
    chat.model.keys = {GOOD}
    return WorkspaceTarget(chat.tenant.workspace, chat.tenant.actor("owner"))


def document(chat: Chat, key: str, name: str = "New", **more: Any) -> dict[str, Any]:
    provider = {"name": name, "base_url": chat.model.base_url, "default_model": "m", "api_key": key}
    return {"rules": {"approves_new_tools": True}, "providers": [{**provider, **more}]}


def test_a_key_that_works_is_stored_and_not_tested_again(
    chat: Chat, place: WorkspaceTarget
) -> None:
    """REL-836: the model is asked for one word; the same file is without effect the second time."""
    chat.model.say("Yes.")
    assert "New" in apply_file(place, document(chat, GOOD)).diff
    assert [one.removeprefix("Bearer ") for one in chat.model.keys_sent] == [GOOD]
    stored = ModelProvider.objects.for_workspace(place.pk).get(name="New")
    assert stored.api_key is not None
    assert stored.api_key.reveal("a test") == GOOD
    assert apply_file(place, document(chat, GOOD)).diff == ""
    assert len(chat.model.keys_sent) == 1
    chat.model.say("Yes.")
    moved = {"base_url": f"{chat.model.base_url}/"}
    apply_file(place, document(chat, GOOD, **moved), is_dry_run=True)
    assert len(chat.model.keys_sent) == 2


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_a_refused_key_is_told_at_its_place_and_nothing_is_applied(
    chat: Chat, place: WorkspaceTarget, is_dry_run: bool
) -> None:
    """REL-836: also of a provider that exists; the old key stays, and no rule of the file holds."""
    chat.model.say("never said")
    before = write_workspace(place)
    own = chat.bud.provider
    assert own is not None
    wanted = document(chat, BAD)
    wanted["providers"] += document(chat, BAD, own.name)["providers"]
    with pytest.raises(InvalidInput) as refused:
        apply_file(place, wanted, is_dry_run=is_dry_run)
    assert set(refused.value.fields) == {
        "providers.New.api_key",
        f"providers.{own.name}.api_key",
    }
    assert not isinstance(refused.value, KeysUntested)
    assert BAD not in str(refused.value.fields)
    assert write_workspace(place) == before
    own.refresh_from_db()
    assert own.api_key is not None
    assert own.api_key.reveal("a test") != BAD


def test_a_key_that_cannot_be_tested_is_stored_on_request_alone(
    chat: Chat, place: WorkspaceTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-836: over REST, in the terminal and on the page; a note says that it is untested."""
    away = ScriptedModel()
    away.stop()
    wanted = document(chat, GOOD, base_url=away.base_url)
    with pytest.raises(KeysUntested) as untested:
        apply_file(place, wanted)
    assert "could not test this key" in untested.value.fields["providers.New.api_key"][0]
    client = chat.tenant.client("owner")
    sent: dict[str, Any] = {"data": json.dumps(wanted), "content_type": "application/json"}
    refused = client.post("/api/config/", **sent)
    assert refused.status_code == 422
    assert "providers.New.api_key" in refused.content.decode()
    file = tmp_path / "w.yaml"
    file.write_text(json.dumps(wanted))
    command = ("apply", str(file), "--workspace", chat.tenant.workspace.slug)
    with pytest.raises(CommandError, match="--untested-keys"):
        call_command(*command, stdout=StringIO())
    home = f"/w/{chat.tenant.workspace.slug}/file/"
    page = client.post(home, {"text": json.dumps(wanted)})
    assert page.status_code == 422
    assert "Store new keys without a test" in page.content.decode()
    assert not ModelProvider.objects.for_workspace(place.pk).filter(name="New").exists()
    looked = client.post(home, {"text": json.dumps(wanted), "untested_keys": "1"})
    assert '<input type="hidden" name="untested_keys" value="1">' in looked.content.decode()
    applied = client.post("/api/config/?untested_keys=true", **sent).json()
    assert any("is not tested" in note for note in applied["notes"])
    assert ModelProvider.objects.for_workspace(place.pk).filter(name="New").exists()


def test_tests_of_keys_end_in_time(
    chat: Chat, place: WorkspaceTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-836: what was not tested by then is told so, and nothing is applied."""
    monkeypatch.setattr(providers, "KEYS_SECONDS", -1.0)
    with pytest.raises(KeysUntested) as untested:
        apply_file(place, document(chat, GOOD))
    assert "no time left" in untested.value.fields["providers.New.api_key"][0]
    assert chat.model.keys_sent == []


@pytest.mark.django_db(transaction=True)
def test_a_key_is_stored_for_no_address_at_which_it_was_not_tested(
    chat: Chat, place: WorkspaceTarget
) -> None:
    """REL-837: a file masks what is secret in an address, and somebody changes that part during the test."""
    own = chat.bud.provider
    assert own is not None
    old = f"{chat.model.base_url}?key=first-canary-0123456789"
    new = old.replace("first", "other")
    row = ModelProvider.objects.for_workspace(place.pk).filter(pk=own.pk)
    row.update(base_url=old)
    release = threading.Event()
    chat.model.say("Yes.", hold=release)
    wanted = document(chat, GOOD, own.name, base_url=without_secrets(old))
    with Threads(1) as pool:
        applying = pool.submit(apply_file, place, wanted)
        try:
            wait_until(lambda: chat.model.keys_sent)
            row.update(base_url=new)
        finally:
            release.set()
        with pytest.raises(InvalidInput) as refused:
            applying.result(PATIENCE)
    assert "Apply the file again" in refused.value.fields[f"providers.{own.name}.base_url"][0]
    kept = row.get()
    assert kept.api_key is None or kept.api_key.reveal("a test") != GOOD
    assert kept.base_url == new
