"""Browser sessions, in the database. A session takes rows of every workspace with it in which it was used."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session

from workspaces.row_security import everywhere


class SessionStore(db.SessionStore):
    """Django's; a session that ends also ends where its request does not reach."""

    def delete(self, session_key: str | None = None) -> None:
        """As its base."""
        with everywhere():
            super().delete(session_key)


def delete_sessions(keys: Iterable[str]) -> None:
    """Delete these sessions, with what belongs to them in every workspace."""
    with everywhere():
        Session.objects.filter(session_key__in=list(keys)).delete()
