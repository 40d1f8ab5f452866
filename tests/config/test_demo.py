"""The demo workspace."""

from __future__ import annotations

import io
from functools import partial

import pytest
from django.conf import settings

from chat.models import Bud
from config.demo import CONTENT, seed_demo
from config.demo.people import seed_people
from config.doctor import FindingState, examine_part
from config.management.commands import up
from config.workspace_files import WorkspaceTarget, apply_file
from mcp_servers.models import McpServer, ServerStatus
from mcp_servers.registry.demo.programs import TIME_SERVER
from mcp_servers.registry.services import ensure_program
from tests.factories import Tenant
from workspaces.actors import Actor, Source
from workspaces.models import Membership, User, Workspace
from workspaces.yaml_text import read_yaml

pytestmark = pytest.mark.django_db


def test_the_demo_is_made_of_a_file_and_made_whole_again() -> None:
    """REL-642: what is missing comes back, and what people changed stays as they changed it."""
    workspace = seed_demo()
    servers = McpServer.objects.for_workspace(workspace)
    assert {one.name: one.state.status for one in servers} == {
        "time": ServerStatus.CONNECTED,
        "notes": ServerStatus.CONNECTED,
    }
    buds = Bud.objects.for_workspace(workspace)
    assert set(buds.values_list("slug", flat=True)) == {"clock", "notes", "writer", "companion"}
    assert len(buds.get(slug="companion").mcp.servers) == 2
    buds.filter(slug="clock").update(name="Our clock")
    buds.filter(slug="writer").delete()
    seed_demo()
    assert buds.get(slug="clock").name == "Our clock"
    assert buds.get(slug="writer").makes_artifacts


def test_whatever_people_changed_of_the_demo_trellis_starts() -> None:
    """REL-2754, SEC-1121: whatever a server is called, and wherever its administrator is now. Nobody comes again."""
    workspace = seed_people()
    platform = Actor.system(label="test", source=Source.COMMAND, workspace_id=workspace.pk)
    program = ensure_program(seed=TIME_SERVER, actor=platform)
    make = partial(McpServer.objects.create, workspace=workspace)
    make(name="our time", transport="stdio", program=program)
    theirs = make(name="notes", transport="streamable_http", is_active=False)
    seed_demo()
    servers, buds = McpServer.objects.for_workspace(workspace), Bud.objects.for_workspace(workspace)
    assert set(servers.values_list("name", flat=True)) == {"our time", "notes"}
    theirs.refresh_from_db()
    assert theirs.transport == "streamable_http"
    assert set(buds.values_list("slug", flat=True)) == {"notes", "writer"}
    buds.filter(slug="writer").delete()
    Membership.objects.for_workspace(workspace).filter(user__email="admin@demo.example").delete()
    seed_demo()
    assert not buds.filter(slug="writer").exists()
    User.objects.filter(email="admin@demo.example").update(email="ann@example.org")
    seed_demo()
    assert not User.objects.filter(email="admin@demo.example").exists()


PUBLIC = "https://chat.example.org"
LEFT_OUT = "There is no demo workspace: others can reach this address"


def start(
    monkeypatch: pytest.MonkeyPatch,
    origin: str,
    *,
    host: str = "127.0.0.1",
    demo: bool | None = None,
) -> str:
    """What `up` writes before it serves a new installation."""
    config = settings.TRELLIS.model_copy(update={"public_origins": (origin,)})
    monkeypatch.setattr(settings, "TRELLIS", config)
    monkeypatch.setattr(up, "is_new", lambda connection: True)
    heard = io.StringIO()
    up.Command(stdout=heard, stderr=heard)._prepare(host, wants_demo=demo)
    return heard.getvalue()


def test_others_are_given_no_password_that_everybody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-1111: the demo comes by itself only where this machine alone reaches Trellis."""
    assert LEFT_OUT in start(monkeypatch, "http://localhost:8000", host="0.0.0.0")
    assert LEFT_OUT in start(monkeypatch, PUBLIC)
    assert LEFT_OUT not in start(monkeypatch, PUBLIC, demo=False)
    assert not Workspace.objects.filter(slug="demo").exists()


def test_a_demo_that_others_reach_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-1111: by `up` and by the doctor, for as long as its people can sign in with that password."""
    warning = "the demo's password is known to all. Switch off"
    assert warning not in start(monkeypatch, "http://localhost:8000")
    assert Workspace.objects.filter(slug="demo").exists()
    assert examine_part("demo").state is FindingState.OK
    assert warning in start(monkeypatch, PUBLIC)
    assert examine_part("demo").state is FindingState.LOOK
    User.objects.filter(email__endswith="@demo.example").update(is_active=False)
    assert warning not in start(monkeypatch, PUBLIC)
    assert examine_part("demo").state is FindingState.OK


def test_any_workspace_takes_the_demos_file(tenant: Tenant) -> None:
    """REL-642: its servers and buds are a workspace's file like any other."""
    seed_demo()
    target = WorkspaceTarget(tenant.workspace, tenant.actor("owner"))
    applied = apply_file(target, read_yaml(CONTENT.read_text()))
    assert "+- name: Companion" in applied.diff
    assert not applied.notes
