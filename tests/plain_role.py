"""The role that tests have in the database where row-level security is on: it owns nothing, and policies hold for it.

``TRELLIS_TEST_ROW_SECURITY=1`` has every test run so. The services' own user is a superuser, which no policy stops.
"""

from __future__ import annotations

from typing import Any, Final

from django.db import connection

from workspaces import row_security

NAME: Final = "trellis_plain"
_GRANTS: Final = f"""
DO $$ BEGIN CREATE ROLE {NAME}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
GRANT USAGE ON SCHEMA public TO {NAME};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {NAME};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {NAME};
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
        cursor.execute(_GRANTS)


def leave() -> None:
    """Be the database's owner again."""
    if connection.settings_dict["OPTIONS"].pop("assume_role", None) is not None:
        _begin_anew()


def assume(cursor: Any) -> None:
    """Become this role again after something that only an owner may do."""
    if connection.settings_dict["OPTIONS"].get("assume_role"):
        cursor.execute(f"SET ROLE {NAME}")


def _begin_anew() -> None:
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's alone
