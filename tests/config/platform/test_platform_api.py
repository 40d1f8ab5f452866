"""The state of the installation over REST, for the platform's owner."""

from __future__ import annotations

import pytest

from audit.actions import Action
from audit.models import AuditEntry
from config.doctor import examine
from tests.platform_api import Api
from workspaces.database import database_now
from workspaces.models import Installation, User

pytestmark = pytest.mark.django_db


def test_the_owner_reads_what_the_page_shows(root: Api) -> None:
    """REL-1060: every part, and what to do."""
    shown = root.get("state/").json()
    assert [one["part"] for one in shown["findings"]] == [one.part for one in examine()]
    assert shown["restored_at"] is None
    Installation.objects.update_or_create(defaults={"restored_at": database_now()})
    worse = root.get("state/").json()
    assert worse["restored_at"] is not None
    assert worse["unwell"] == sum(one["state"] != "ok" for one in worse["findings"]) > 0
    found = next(one for one in worse["findings"] if one["part"] == "restores")
    assert (found["state"], "confirm_restore" in found["advice"]) == ("look", True)


def test_the_owner_confirms_a_restore(root: Api, superuser: User) -> None:
    """REL-1060: once, and the log says who did."""
    Installation.objects.update_or_create(defaults={"restored_at": database_now()})
    assert [root.post("state/confirm-restore/").json()["was_open"] for _ in range(2)] == [
        True,
        False,
    ]
    entry = AuditEntry.objects.across_workspaces().get(action=Action.RESTORE_CONFIRMED)
    assert (entry.actor_label, entry.workspace_id) == (superuser.email, None)
    assert root.get("state/confirm-restore/").status_code == 405
