"""Sessions in the database, as Django keeps them; a request finds its own by a statement that is compiled once."""

from __future__ import annotations

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from workspaces.prepared import PreparedRows

_BY_KEY = PreparedRows[Session](lambda key: Session.objects.filter(session_key=key), str)


class SessionStore(db.SessionStore):
    """Django's, which every signed-in request reads once."""

    def _get_session_from_db(self) -> Session | None:
        session = _BY_KEY.first(self.session_key) if self.session_key else None
        if session is None or session.expire_date <= timezone.now():
            self._session_key = None
            return None
        return session
