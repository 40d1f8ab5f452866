"""The log of the whole installation over REST, for the platform's owner."""

from __future__ import annotations

from typing import Any

import pytest

from audit.actions import Action
from audit.models import AuditStream
from audit.services import EntryDraft, record
from audit.streams.services import StreamDraft, StreamStart, create_stream, pause_stream
from tests.factories import Tenant, TwoTenants
from tests.platform_api import Api, faults, with_token
from workspaces.actors import Actor, Source
from workspaces.errors import PermissionDenied
from workspaces.middleware import actor_for
from workspaces.models import ApiToken, User
from workspaces.people.tokens import PLATFORM_READ, PLATFORM_WRITE

pytestmark = pytest.mark.django_db

SINK = {"name": "SIEM", "kind": "webhook", "target": "https://sink.example.org/log"}


def test_the_owner_reads_how_the_log_is(root: Api, two_workspaces: TwoTenants) -> None:
    """REL-1060: the numbers of every workspace, entries of none, and never what was sent."""
    record(
        EntryDraft(
            action=Action.AUTH_FAILED,
            actor=Actor.anonymous(source=Source.WEB, ip_address="192.0.2.7", request_id=""),
            workspace_id=None,
            details={"account": "nobody@example.org"},
        )
    )
    record(
        EntryDraft(
            action=Action.CONFIG_CHANGED,
            actor=two_workspaces.a.actor(),
            workspace_id=two_workspaces.a.workspace.pk,
            details={},
        )
    )
    log = root.get("audit/").json()
    assert log["is_key_missing"] is False
    assert log["platform"]["calls"] == 0
    rows = root.get("audit-workspaces/").json()["results"]
    assert {one["slug"] for one in rows} >= {
        two_workspaces.a.workspace.slug,
        two_workspaces.b.workspace.slug,
    }
    assert rows[0]["numbers"] == {
        "entries": 0,
        "calls": 0,
        "failed": 0,
        "refused": 0,
        "last": None,
    }
    entries = root.get("audit-entries/?action=auth.failed").json()["results"]
    assert [(one["ip_address"], one["details"]) for one in entries] == [
        ("192.0.2.7", {"account": "nobody@example.org"})
    ]
    assert not root.get("audit-entries/?action=config.changed").json()["results"]
    for query in ("action=none", "since=yesterday", "actor=x", "server=x"):
        assert root.get(f"audit-entries/?{query}").status_code == 400, query


def test_streams_of_the_platform_are_managed(root: Api, tenant: Tenant) -> None:
    """REL-1060: like those of a workspace, and apart from them. A secret is shown once."""
    made = root.post("audit-streams/", SINK, **{"Idempotency-Key": "once"})
    assert made.status_code == 201
    assert made.json()["secret"]
    again = root.post("audit-streams/", SINK, **{"Idempotency-Key": "once"})
    assert (again.json()["secret"], again["Idempotency-Replayed"]) == (None, "true")
    path = f"audit-streams/{made.json()['stream']['id']}/"
    assert root.patch(path, {"is_paused": True}).json()["is_paused"] is True
    assert root.post(f"{path}restart/", {"start": "beginning"}).status_code == 200
    assert root.post(f"{path}renew-secret/").json()["secret"] != made.json()["secret"]
    refused = root.post("audit-streams/", {**SINK, "target": "ftp://x", "kind": "none"})
    assert (refused.status_code, set(faults(refused))) == (400, {"kind"})
    assert root.post("audit-streams/", {**SINK, "target": "x"}).status_code == 422
    of_workspace, _ = create_stream(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        kind="webhook",
        draft=StreamDraft(name="Theirs", target="https://sink.example.org/"),
        start=StreamStart.NOW,
    )
    assert root.get(f"audit-streams/{of_workspace.pk}/").status_code == 404
    names = [one["name"] for one in root.get("audit-streams/").json()["results"]]
    assert names == ["SIEM"]
    assert root.delete(path).status_code == 204
    assert AuditStream.objects.across_workspaces().get() == of_workspace


def test_no_token_says_where_the_log_of_all_goes(
    root: Api, superuser: User, tenant: Tenant
) -> None:
    """SEC-502: the service itself refuses it. A token sees the stream and sends a test entry."""
    made = root.post("audit-streams/", SINK).json()["stream"]
    api = with_token(superuser, tenant.workspace, PLATFORM_READ, PLATFORM_WRITE)
    path = f"audit-streams/{made['id']}/"
    assert api.get(path).json()["target"] == SINK["target"]
    assert api.post(f"{path}test/").json()["took_it"] is False
    assert api.patch(path, {"is_paused": True}).status_code == 403
    stream = AuditStream.objects.across_workspaces().get()
    token = ApiToken.objects.for_workspace(tenant.workspace).get()
    actor: Any = actor_for(superuser, None, source=Source.API, token=token)
    with pytest.raises(PermissionDenied):
        pause_stream(stream=stream, actor=actor, is_paused=True)
