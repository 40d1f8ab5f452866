"""Browser sessions, in the database. A session takes rows of every workspace with it in which it was used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from workspaces.database import is_unavailable
from workspaces.database.prepared import PreparedRows
from workspaces.database.row_security import everywhere

if TYPE_CHECKING:
    from workspaces.models import User

_BY_KEY = PreparedRows[Session](lambda key: Session.objects.filter(session_key=key), str)


class SessionStore(db.SessionStore):
    """Django's; found by a statement that is compiled once, and a session that ends does so in every workspace."""

    def save(self, must_create: bool = False) -> None:
        """As its base, which takes a database that is away for a session that was deleted, and that for a bad request."""
        try:
            super().save(must_create)
        except UpdateError as error:
            cause = error.__context__
            if cause is not None and is_unavailable(cause):
                raise cause from error
            raise

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


def is_session_of(session_key: str, user: User) -> bool:
    """Whether a session lives in which this person is signed in, with the password of now."""
    session = SessionStore(session_key)
    is_theirs = session.get(SESSION_KEY) == str(user.pk)
    kept = str(session.get(HASH_SESSION_KEY, ""))
    return is_theirs and constant_time_compare(kept, user.get_session_auth_hash())


def delete_sessions(keys: Iterable[str]) -> None:
    """Delete these sessions, with what belongs to them in every workspace."""
    with everywhere():
        Session.objects.filter(session_key__in=list(keys)).delete()
