"""Secrets at rest open only in their place, and never show themselves."""

from __future__ import annotations

import copy
import io
import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.core import serializers
from django.core.management import call_command
from django.test import override_settings

from chat.models import ModelProvider
from config.doctor import examine
from config.env import EncryptionKey
from tests.factories import Tenant, TwoTenants
from workspaces.redaction import MASK, is_secret_key, redact, redact_text, remember_secret
from workspaces.secrets import (
    Secret,
    SecretUnreadable,
    count_by_key,
    find_unreadable,
    key_id_of,
)

CANARY = "canary-7f3a9b-secret-value"


def provider(tenant: Tenant, name: str = "p", key: str = CANARY) -> ModelProvider:
    return ModelProvider.objects.create(
        workspace=tenant.workspace,
        name=name,
        base_url="https://models.example/v1",
        default_model="m",
        api_key=key,
    )


def stored(row: ModelProvider) -> str:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT api_key FROM chat_modelprovider WHERE name = %s AND workspace_id = %s",
            [row.name, row.workspace_id.hex if connection.vendor == "sqlite" else row.workspace_id],
        )
        return str(cursor.fetchone()[0])


def test_a_secret_is_ciphertext_in_the_database_and_opens_in_its_place(tenant: Tenant) -> None:
    """SEC-91: sealed under a named key; the row reads it back."""
    row = provider(tenant)
    assert CANARY not in stored(row)
    assert key_id_of(stored(row)) == settings.TRELLIS.encryption_keys[0].id
    fresh = ModelProvider.objects.for_workspace(tenant.workspace).get()
    assert fresh.api_key.reveal("test") == CANARY


def test_a_moved_ciphertext_does_not_open(two_workspaces: TwoTenants) -> None:
    """SEC-91: copied to another row or another tenant, it is refused."""
    source = provider(two_workspaces.a)
    for target in (
        provider(two_workspaces.a, name="other"),
        provider(two_workspaces.b, name="theirs"),
    ):
        ModelProvider.unscoped.filter(pk=target.pk).update(api_key=stored(source))
        moved = ModelProvider.unscoped.get(pk=target.pk)
        with pytest.raises(SecretUnreadable):
            moved.api_key.reveal("test")
    # The same row in another workspace, by hand in the database.
    ModelProvider.unscoped.filter(pk=source.pk).update(workspace=two_workspaces.b.workspace)
    with pytest.raises(SecretUnreadable):
        ModelProvider.unscoped.get(pk=source.pk).api_key.reveal("test")


def test_a_plain_value_cannot_be_stored_past_the_field(tenant: Tenant) -> None:
    """SEC-91: a bulk update in the clear is refused."""
    row = provider(tenant)
    with pytest.raises(TypeError):
        ModelProvider.unscoped.filter(pk=row.pk).update(api_key=CANARY)


def test_a_secret_shows_as_a_mask_everywhere(tenant: Tenant) -> None:
    """SEC-93, SEC-96: str, repr, format, JSON, pickle, copies and dumps of rows."""
    secret = Secret(CANARY)
    row = provider(tenant)
    shown = [
        str(secret),
        repr(secret),
        f"{secret}",
        json.dumps({"key": secret}, default=str),
        serializers.serialize("json", [row]),
        repr(vars(copy.copy(row))),
    ]
    assert not any(CANARY in text for text in shown)
    with pytest.raises(TypeError):
        pickle.dumps(secret)


@pytest.mark.parametrize("key_id", ["2026.11", "v1.k_1", "K1"])
def test_a_key_may_have_any_id_that_the_settings_take(tenant: Tenant, key_id: str) -> None:
    """REL-794: what it encrypted opens, is counted under its id, and is rotated."""
    row = provider(tenant, key=CANARY)
    old = settings.TRELLIS.encryption_keys[0]
    odd = EncryptionKey(key_id, bytes(range(32)))
    for keys in ((odd, old), (old, odd), (replace(old, id=key_id.lower()), odd, old)):
        with override_settings(
            TRELLIS=settings.TRELLIS.model_copy(update={"encryption_keys": keys})
        ):
            call_command("rotate_keys", stdout=io.StringIO())
            assert set(count_by_key()) == {keys[0].id}
            assert not find_unreadable()
            assert ModelProvider.unscoped.get(pk=row.pk).api_key.reveal("test") == CANARY


def test_doctor_says_how_far_a_rotation_is(tenant: Tenant) -> None:
    """REL-794: what is left, and which key can go; on the page of the installation too."""
    provider(tenant, key=CANARY)
    old = settings.TRELLIS.encryption_keys[0]
    keys = (EncryptionKey("new", bytes(range(32))), old)
    with override_settings(TRELLIS=settings.TRELLIS.model_copy(update={"encryption_keys": keys})):

        def progress_of_keys() -> str:
            return next(one.text for one in examine() if one.part == "keys")

        assert progress_of_keys() == "1 of 1 stored secrets are still under an old key"
        call_command("rotate_keys", stdout=io.StringIO())
        assert progress_of_keys().startswith(
            f"every stored secret is under new; no secret needs {old.id}: "
        )


def test_a_new_key_opens_before_it_seals(tenant: Tenant) -> None:
    """REL-1625, REL-3043: processes that have it behind the old one read what those that have it first write meanwhile."""
    row = provider(tenant, key=CANARY)
    old, new = settings.TRELLIS.encryption_keys[0], EncryptionKey("new", bytes(range(32)))

    def having(*keys: EncryptionKey) -> override_settings:
        return override_settings(
            TRELLIS=settings.TRELLIS.model_copy(update={"encryption_keys": keys})
        )

    with having(old, new):
        out = io.StringIO()
        call_command("rotate_keys", stdout=out)
        # Whoever has just put it there must not be told to take either of them away.
        for advice in (next(one.text for one in examine() if one.part == "keys"), out.getvalue()):
            assert "no secret needs new: " in advice
            assert "a new one waits to be put first" in advice
    with having(new, old):
        row.api_key = f"{CANARY}-2"
        row.save()
    with having(old, new):
        fresh = ModelProvider.unscoped.get(pk=row.pk)
        assert key_id_of(fresh.api_key.sealed) == "new"
        assert fresh.api_key.reveal("test") == f"{CANARY}-2"


def test_keys_rotate_and_the_old_one_can_go(tenant: Tenant) -> None:
    """SEC-92: sealed anew in batches; resumable, since what is done is skipped; a report says when it is over."""
    rows = [provider(tenant, name=f"p{number}", key=f"{CANARY}-{number}") for number in range(5)]
    old = settings.TRELLIS.encryption_keys
    new = EncryptionKey("new", bytes(range(32)))
    with override_settings(
        TRELLIS=settings.TRELLIS.model_copy(update={"encryption_keys": (new, *old)})
    ):
        # Interrupted: one row is done already.
        first = ModelProvider.unscoped.get(pk=rows[0].pk)
        first.api_key = first.api_key.reveal("test")
        first.save()
        out = io.StringIO()
        call_command("rotate_keys", stdout=out)
        assert "4 secrets encrypted anew" in out.getvalue()
        assert f"no secret needs {', '.join(key.id for key in old)}: an old key" in out.getvalue()
    with override_settings(TRELLIS=settings.TRELLIS.model_copy(update={"encryption_keys": (new,)})):
        for number, row in enumerate(rows):
            fresh = ModelProvider.unscoped.get(pk=row.pk)
            assert key_id_of(fresh.api_key.sealed) == "new"
            assert fresh.api_key.reveal("test") == f"{CANARY}-{number}"


CODED: dict[str, Any] = {
    "plain": CANARY,
    "in a sentence": f"it is {CANARY}, is it not",
    "base64": "Y2FuYXJ5LTdmM2E5Yi1zZWNyZXQtdmFsdWU",
    "hex": CANARY.encode().hex(),
    "JSON": json.dumps({"x": CANARY}),
    "bearer": f"Bearer {CANARY}",
    "basic": "Basic dXNlcjpwYXNzd29yZDEyMzQ=",
    "URL": f"https://user:{CANARY}@host.example/",
    "query": f"?a=1&b={CANARY}",
}


@pytest.mark.parametrize("form", CODED)
def test_what_was_revealed_is_masked_in_every_coding(form: str) -> None:
    """SEC-94, SEC-95: known values by themselves, unknown ones by their shape."""
    remember_secret(CANARY, workspace_id=None)
    masked = redact_text(CODED[form], workspace_id=None)
    assert CANARY not in masked
    assert MASK in masked
    if form != "basic":
        assert CODED["base64"] not in masked
        assert CODED["hex"] not in masked


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "api_key",
        "X-Api-Key",
        "apiKey",
        "client_secret",
        "password",
        "refreshToken",
        "set-cookie",
    ],
)
def test_values_under_telling_names_are_masked(name: str) -> None:
    """SEC-94: whatever the value looks like, at any depth."""
    assert is_secret_key(name)
    assert redact({"a": [{name: "short"}]}, workspace_id=None) == {"a": [{name: MASK}]}


@pytest.mark.parametrize(
    "name", ["prompt_tokens", "max_tokens", "keyboard", "monkey", "author", "tokenizer"]
)
def test_harmless_names_stay_readable(name: str) -> None:
    """Ours: a log that masks everything says nothing."""
    assert not is_secret_key(name)
