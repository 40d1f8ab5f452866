"""What an installation says whose encryption keys were replaced by others: nothing opens, and nothing is lost."""

from __future__ import annotations

import io
from dataclasses import replace
from unittest.mock import patch

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from chat.models import ModelProvider
from config.doctor import FindingState, examine_part
from config.env import EncryptionKey
from config.management.commands.up import Command
from tests.factories import Tenant
from tests.other_keys import NEW, having
from workspaces.secrets import SecretUnreadable

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(tenant: Tenant) -> ModelProvider:
    return ModelProvider.objects.create(
        workspace=tenant.workspace, name="p", base_url="https://m.example.org", api_key="sk-kept"
    )


@pytest.fixture
def old() -> EncryptionKey:
    key: EncryptionKey = settings.TRELLIS.encryption_keys[0]
    return key


def rotated(*options: str) -> tuple[str, str]:
    """What the command writes, and how it ends."""
    out = io.StringIO()
    try:
        call_command("rotate_keys", *options, stdout=out)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


def sealed(row: ModelProvider) -> str | None:
    fresh: str | None = ModelProvider.unscoped.get(pk=row.pk).api_key.sealed
    return fresh


def test_doctor_says_which_key_is_missing(row: ModelProvider, old: EncryptionKey) -> None:
    """REL-2095: its name, what it opens, and that another key of that name is not it."""
    with having(NEW):
        found = examine_part("keys")
        assert found.state is FindingState.FAILED
        assert found.text == (
            f"stored secrets do not open: those under key {old.id}, which is not in the settings (model provider)"
        )
        assert "They stay as they are until then." in found.advice
    with having(replace(NEW, id=old.id)):
        assert examine_part("keys").text == (
            f"stored secrets do not open: those under key {old.id}, which was another key when they were stored"
            " (model provider)"
        )


@pytest.mark.parametrize("options", [(), ("--report",)])
def test_rotating_without_the_old_key_says_so_and_changes_nothing(
    row: ModelProvider, old: EncryptionKey, options: tuple[str, ...]
) -> None:
    """REL-2095: it ended with a traceback, and a report called every other key unused."""
    before = sealed(row)
    for keys in ((NEW,), (replace(NEW, id=old.id),)):
        with having(*keys):
            output, fault = rotated(*options)
            assert f"key {old.id}" in output
            assert "can be removed" not in output
            assert "Run manage.py rotate_keys" not in output
            assert "do not open" in fault
            assert "Put back the keys" in fault
    assert sealed(row) == before


def test_rotating_goes_on_behind_what_does_not_open(
    row: ModelProvider, old: EncryptionKey, tenant: Tenant
) -> None:
    """REL-2095: secrets that open are encrypted anew."""
    second = EncryptionKey("second", bytes(reversed(range(32))))
    with having(second, old):
        other = ModelProvider.objects.create(
            workspace=tenant.workspace, name="q", base_url="https://m.example.org", api_key="sk-2"
        )
    with having(NEW, second):
        output, fault = rotated()
        assert "1 secret encrypted anew." in output
        assert old.id in fault
        assert ModelProvider.unscoped.get(pk=other.pk).api_key.reveal("test") == "sk-2"
    with having(old):
        assert ModelProvider.unscoped.get(pk=row.pk).api_key.reveal("test") == "sk-kept"


def test_up_warns_of_secrets_that_do_not_open(row: ModelProvider) -> None:
    """REL-2095: it served on without a word."""

    def started() -> str:
        errors = io.StringIO()
        command = Command(stdout=io.StringIO(), stderr=errors)
        with patch("config.management.commands.up.call_command"):
            command._prepare("127.0.0.1", wants_demo=False)
        return errors.getvalue()

    assert started() == ""
    with having(NEW):
        assert "Warning: stored secrets do not open" in started()


def test_the_words_say_why_and_what_to_do() -> None:
    """REL-2095: no answer of a page or of REST fails as a fault of the server."""
    error = SecretUnreadable()
    assert error.status == 409
    assert "encryption key" in error.message
    assert "Put that key back" in error.message
