"""The session of a request."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.utils import timezone

from workspaces.people.session_store import SessionStore

pytestmark = pytest.mark.django_db


@pytest.fixture
def key() -> str:
    """Of a session that holds a word."""
    store = SessionStore()
    store["word"] = "apple"
    store.create()
    assert store.session_key is not None
    return store.session_key


def test_what_was_put_into_a_session_is_read_by_the_next_request(key: str) -> None:
    """Ours: by the same table as Django's, so that its commands and other stores find it too."""
    assert SessionStore(key)["word"] == "apple"
    assert Session.objects.get(pk=key).get_decoded()["word"] == "apple"


def test_a_session_that_is_over_or_unknown_is_empty_and_gets_a_new_key(key: str) -> None:
    """SEC-21: nothing of it is read, and its key is not used again."""
    Session.objects.filter(pk=key).update(expire_date=timezone.now() - timedelta(seconds=1))
    for stored in (key, "a" * 32):
        store = SessionStore(stored)
        assert store.get("word") is None
        assert store.session_key is None


def test_a_session_that_the_database_does_not_take_is_not_taken_for_a_deleted_one(key: str) -> None:
    """REL-2883: else a page that is asked for while the database is away is a bad request (400), and not a 503."""

    def be_away(*_about: object) -> None:
        raise OperationalError("the connection is lost")

    store = SessionStore(key)
    store["word"] = "pear"
    with pytest.raises(OperationalError), connection.execute_wrapper(be_away):
        store.save()
    Session.objects.all().delete()
    with pytest.raises(UpdateError):
        store.save()
