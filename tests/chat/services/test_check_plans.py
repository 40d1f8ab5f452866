"""Checks that run by themselves: every day or week, with the rights of whoever chose it."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit.models import AuditEntry, Notice, OutsideWrite
from chat.models import CheckRun, Repeat
from chat.services import check_plans
from chat.services.check_plans import Schedule, change_plan, plan_of, run_due
from tests.chat.conftest import Chat
from tests.chat.services.check_plans import come_due, plan
from tests.chat.services.checking import check, finish
from workspaces.errors import PermissionDenied
from workspaces.models import Membership

pytestmark = pytest.mark.django_db


def runs(chat: Chat) -> list[CheckRun]:
    return list(CheckRun.objects.for_workspace(chat.tenant.workspace).order_by("id"))


def notices(chat: Chat) -> list[tuple[str, str]]:
    rows = Notice.objects.for_workspace(chat.tenant.workspace).filter(user=chat.tenant.admin)
    return [(row.title, row.text) for row in rows.order_by("id")]


@pytest.mark.both_engines
def test_checks_run_when_their_time_has_come_and_once(chat: Chat) -> None:
    """REL-651: the first time after one interval; two schedulers begin one run, and the next is an interval later."""
    check(chat)
    made = plan(chat)
    assert made.next_at is not None
    assert timedelta(hours=23) < made.next_at - timezone.now() <= timedelta(days=1)
    assert run_due() == 0
    come_due(chat)
    chat.model.say("hi")
    assert [run_due(), run_due()] == [1, 0]
    (run,) = runs(chat)
    assert finish(chat, run).passed == 1
    assert (run.is_scheduled, run.person, run.version) == (True, chat.tenant.admin, 1)
    assert notices(chat) == []
    made.refresh_from_db()
    assert made.next_at > timezone.now() + timedelta(hours=23)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError])
def test_checks_whose_process_died_before_they_began_run_soon(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    """REL-1647: within minutes, not a day or a week later; and once."""
    check(chat)
    made = plan(chat, Repeat.WEEK)
    come_due(chat)

    def dies(**_given: Any) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(check_plans, "start_run", dies)
        with nullcontext() if fault is ValueError else pytest.raises(fault):
            assert run_due() == 0
    assert run_due() == 0
    made.refresh_from_db()
    assert made.next_at is not None
    assert made.next_at < timezone.now() + timedelta(minutes=11)
    come_due(chat)
    chat.model.say("hi")
    assert [run_due(), run_due()] == [1, 0]
    (run,) = runs(chat)
    finish(chat, run)
    made.refresh_from_db()
    assert made.next_at > timezone.now() + timedelta(days=6)


def test_a_failed_check_is_told_to_whoever_chose_the_schedule(chat: Chat) -> None:
    """REL-651: in their notices, with a link to the checks; a run that they began themselves tells nothing."""
    check(chat)
    plan(chat, Repeat.WEEK)
    come_due(chat)
    chat.model.say("good day")
    run_due()
    finish(chat, runs(chat)[0])
    assert notices(chat) == [("Checks of Bud", "1 of 1 checks failed when they ran on schedule.")]
    notice = Notice.objects.for_workspace(chat.tenant.workspace).get()
    assert notice.url.endswith(f"/{chat.bud.pk}/#checks")


def test_a_schedule_that_cannot_run_says_why_once(chat: Chat) -> None:
    """REL-651: in the editor and in a notice; when it runs again, that is gone."""
    plan(chat)
    for _ in range(2):
        come_due(chat)
        assert run_due() == 0
    assert "no checks yet" in plan_of(chat.bud).trouble
    assert len(notices(chat)) == 1
    check(chat)
    come_due(chat)
    chat.model.say("hi")
    assert run_due() == 1
    assert plan_of(chat.bud).trouble == ""
    finish(chat, runs(chat)[0])


def test_nothing_runs_with_the_rights_of_somebody_who_lost_them(chat: Chat) -> None:
    """SEC-412: the rights of now count; somebody else chooses the schedule anew, with their own."""
    check(chat)
    plan(chat)
    members = Membership.objects.for_workspace(chat.tenant.workspace)
    members.filter(user=chat.tenant.admin).update(role="member")
    come_due(chat)
    assert run_due() == 0
    assert runs(chat) == []
    assert "may no longer edit the bud" in plan_of(chat.bud).trouble
    with pytest.raises(PermissionDenied):
        plan(chat)
    owner = chat.tenant.owner
    actor = chat.tenant.actor("owner")
    made = change_plan(bud=chat.bud, actor=actor, before_saving=True)
    assert made.person != owner, "another setting gives nobody's rights away"
    assert made.trouble
    made = change_plan(bud=chat.bud, actor=actor, schedule=Schedule(Repeat.DAY, owner))
    assert (made.person, made.trouble) == (owner, "")


def test_an_archived_bud_is_left_alone(chat: Chat) -> None:
    """REL-651: its schedule stays for the day that it is used again."""
    check(chat)
    plan(chat)
    chat.bud.is_archived = True
    chat.bud.save()
    come_due(chat)
    assert run_due() == 0
    assert plan_of(chat.bud).trouble == ""


def test_a_schedule_is_read_and_changed_over_rest(chat: Chat) -> None:
    """REL-651: by those who may edit the bud; each change is in the log."""
    OutsideWrite.objects.all().delete()
    url = f"/api/buds/{chat.bud.pk}/check-plan/"
    headers = {"X-Workspace": chat.tenant.workspace.slug}

    def change(role: str, **values: Any) -> Any:
        return chat.tenant.client(role).patch(
            url, json.dumps(values), content_type="application/json", headers=headers
        )

    client = chat.tenant.client("admin")
    body = client.get(url, headers=headers).json()
    assert (body["every"], body["before_saving"], body["next_at"]) == ("", False, None)
    assert change("member", every="day").status_code == 403
    assert change("admin", every="hour").status_code == 400
    body = change("admin", every="week", before_saving=True).json()
    assert (body["every"], body["before_saving"]) == ("week", True)
    assert body["person"] == chat.tenant.admin.email
    # Another setting leaves the time of the next run and its person as they are.
    again = change("owner", before_saving=False).json()
    assert (again["next_at"], again["person"]) == (body["next_at"], body["person"])
    assert change("admin", every="").json()["next_at"] is None
    entries = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    assert entries.filter(details__kind="schedule of checks").count() == 4
    assert not OutsideWrite.objects.exists()
