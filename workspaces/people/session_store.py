"""Browser sessions, in the database. A session takes rows of every workspace with it in which it was used."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from workspaces.database.prepared import PreparedRows
from workspaces.database.row_security import everywhere

_BY_KEY = PreparedRows[Session](lambda key: Session.objects.filter(session_key=key), str)


class SessionStore(db.SessionStore):
    """Django's; found by a statement that is compiled once, and a session that ends does so in every workspace."""

    def delete(self, session_key: str | None = None) -> None:
        """As its base, also where the request does not reach."""
        with everywhere():
            super().delete(session_key)

    def _get_session_from_db(self) -> Session | None:
        session = _BY_KEY.first(self.session_key) if self.session_key else None
        if session is None or session.expire_date <= timezone.now():
            self._session_key = None
            return None
        return session


def delete_sessions(keys: Iterable[str]) -> None:
    """Delete these sessions, with what belongs to them in every workspace."""
    with everywhere():
        Session.objects.filter(session_key__in=list(keys)).delete()
