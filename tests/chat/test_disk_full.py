"""The disk is full: what cannot be stored is refused whole, and it goes on when there is room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.test import Client

from chat.models import Message, Turn
from tests.chat.conftest import Chat


@contextmanager
def full_disk() -> Iterator[None]:
    """SQLite itself says so: its file may not grow by one page more."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA max_page_count = 1")  # clamped to what there is
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA max_page_count = 1073741823")


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="SQLite's disk")
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
