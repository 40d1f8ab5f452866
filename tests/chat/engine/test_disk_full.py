"""The disk is full: what cannot be stored is refused whole, and it goes on when there is room."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.test import Client

from chat.models import Message, Turn
from config import health
from tests.chat.conftest import Chat
from tests.factories import signed_in
from workspaces.models import User

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
    client = signed_in(chat.tenant.member, raise_request_exception=False)
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


@pytest.mark.sqlite
def test_readiness_proves_a_write(chat: Chat, superuser: User) -> None:
    """REL-263, REL-31: while the disk is full the process is not ready, its owner reads why, and it recovers by itself."""
    client = signed_in(superuser)

    def ask(by: Client) -> tuple[int, dict[str, Any]]:
        health.database_writes.forget()
        answer = by.get("/readyz")
        return answer.status_code, answer.json()

    status, body = ask(client)
    assert (status, body["checks"]["database_writes"], body["problems"]) == (200, "ok", [])
    with full_disk():
        status, body = ask(client)
        assert (status, body["status"]) == (503, "unavailable")
        assert body["checks"]["database"] == "ok"
        assert body["checks"]["database_writes"] == "failed"
        assert "disk is full" in body["problems"][0]
        status, body = ask(Client())
        assert status == 503
        assert "problems" not in body
    assert ask(client)[0] == 200
    assert not Session.objects.filter(session_key__startswith="write-proof").exists()


def test_a_data_folder_that_takes_nothing_is_told(
    db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-263: files are proven as well, and at most once in a few seconds."""
    folder = tmp_path / "gone"
    config = settings.TRELLIS.model_copy(update={"data_dir": folder})
    settings.TRELLIS = config
    monkeypatch.setattr(health, "PROOF_SECONDS", 60.0)
    health.data_folder_writes.forget()
    assert Client().get("/readyz").json()["checks"]["data_folder"] == "failed"
    folder.mkdir()
    assert Client().get("/readyz").status_code == 503
    health.data_folder_writes.forget()
    assert Client().get("/readyz").json()["checks"]["data_folder"] == "ok"
    assert not list(folder.iterdir())
