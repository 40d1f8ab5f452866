"""The disk is full: what cannot be stored is refused whole, and it goes on when there is room."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from django.db import OperationalError, connection
from django.test import Client

from chat.models import Message, Turn
from tests.chat.conftest import Chat

MOST_FILLED: Final = 10_000
"""Rows of one size; more than any test's file has room for."""


@contextmanager
def full_disk() -> Iterator[None]:
    """SQLite itself says so: its file may not grow by one page more, and the pages that earlier rows left are taken."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE filler (bytes BLOB)")
        cursor.execute("PRAGMA max_page_count = 1")  # clamped to what there is
        for size in (1_000_000, 30_000, 1_000):
            with contextlib.suppress(OperationalError):
                for _ in range(MOST_FILLED):
                    cursor.execute("INSERT INTO filler VALUES (zeroblob(%s))", [size])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA max_page_count = 1073741823")
            cursor.execute("DROP TABLE filler")


@pytest.mark.sqlite
def test_what_does_not_fit_is_refused_whole(chat: Chat) -> None:
    """REL-31, REL-28: 503 and the time to ask again, nothing half stored, and the next one is taken."""
    client = Client(raise_request_exception=False)
    client.force_login(
        chat.tenant.member, backend="allauth.account.auth_backends.AuthenticationBackend"
    )
    path = f"/api/conversations/{chat.conversation.pk}/messages/"
    headers = {"X-Workspace": chat.tenant.workspace.slug}
    body = {"client_id": "large", "text": "x" * 90_000}
    with full_disk():
        refused = client.post(path, body, content_type="application/json", headers=headers)
    assert refused.status_code == 503
    assert refused.headers["Retry-After"]
    assert refused.json()["errors"][0]["code"] == "unavailable"
    assert Message.objects.for_workspace(chat.tenant.workspace).count() == 0
    assert Turn.objects.for_workspace(chat.tenant.workspace).count() == 0
    assert chat.model.requests == []
    chat.model.say("there is room")
    taken = client.post(path, body, content_type="application/json", headers=headers)
    assert taken.status_code == 202
    chat.watching.turn("completed")
