"""The role that tests have in the database where row-level security is on: it owns nothing, and policies hold for it.

``TRELLIS_TEST_ROW_SECURITY=1`` has every test run so. The services' own user is a superuser, which no policy stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from asgiref.sync import SyncToAsync
from django.conf import settings
from django.db import connection
from django.test import override_settings

from workspaces.database import row_security
from workspaces.database.postgresql import policies

NAME: Final = "trellis_plain"
_SECONDS: Final = 10.0


def grants_for(name: str) -> str:
    """The statements that make a role, and let it read and write what is there."""
    return f"""
DO $$ BEGIN CREATE ROLE {name} LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
GRANT USAGE ON SCHEMA public TO {name};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name};
"""


def take() -> None:
    """From now on every connection is this role's, if row-level security is on."""
    if row_security.is_on():
        grant()
        connection.settings_dict["OPTIONS"]["assume_role"] = NAME
        _begin_anew()


def grant() -> None:
    """Make the role, and let it read and write what is there."""
    with connection.cursor() as cursor:
        cursor.execute(grants_for(NAME))


def leave() -> None:
    """Be the database's owner again."""
    if connection.settings_dict["OPTIONS"].pop("assume_role", None) is not None:
        _begin_anew()


def assume(cursor: Any) -> None:
    """Become this role again after something that only an owner may do."""
    if connection.settings_dict["OPTIONS"].get("assume_role"):
        cursor.execute(f"SET ROLE {NAME}")


def _close() -> None:
    connection.close()  # this thread's own


def _begin_anew() -> None:
    _close()
    # Channels' tests keep the connection of the thread that async code asks: the next test would be its old user there.
    SyncToAsync.single_thread_executor.submit(_close).result(_SECONDS)
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's alone


@contextmanager
def walled() -> Iterator[None]:
    """Have row-level security on, and be the plain role, in the middle of a run without."""
    if row_security.is_on():
        yield
        return
    owner = connection.settings_dict
    on = settings.TRELLIS.model_copy(update={"row_security": True})
    with override_settings(TRELLIS=on):
        policies.install()
        owner["DISABLE_SERVER_SIDE_CURSORS"] = True
        take()
        try:
            yield
        finally:
            leave()
    owner["DISABLE_SERVER_SIDE_CURSORS"] = False
    _begin_anew()
    policies.install()
