"""Servers over REST, as their pages have them: trying one out, its checks, its trace as a file."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry
from mcp_servers.models import HealthCheck, McpServer, ServerScope, TraceMessage
from mcp_servers.registry.trace import download
from tests.factories import Tenant
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import http_server, zoo_program
from workspaces.errors import PermissionDenied
from workspaces.models import Membership

HEADERS = {"X-Workspace": "acme"}
SENT: Any = {"content_type": "application/json", "headers": HEADERS}


def body_of(answer: Any) -> str:
    return b"".join(answer.streaming_content).decode()


def personal_server(tenant: Tenant) -> McpServer:
    """The member's own."""
    tenant.allow_personal_servers()
    return McpServer.objects.create(
        workspace=tenant.workspace,
        name="mine",
        scope=ServerScope.PERSONAL,
        owner=tenant.member,
        url="https://mine.example.org/mcp",
    )


def test_a_server_is_tried_before_it_is_saved(tenant: Tenant, counting: CountingServer) -> None:
    """REL-1109: as the form's button does, and nothing is kept."""
    path, body = "/api/servers/try/", {"name": "counting", "url": counting.url}
    report = tenant.client("admin").post(path, body, **SENT).json()
    assert (report["ok"], report["tool_count"]) == (True, 7)
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()
    assert tenant.client("member").post(path, body, **SENT).status_code == 403
    faulty = tenant.client("admin").post(path, {"name": "x", "url": "ftp://x/"}, **SENT)
    assert faulty.status_code == 422


def test_a_program_is_tried_before_it_is_added(tenant: Tenant) -> None:
    """REL-1231: with its parameters; nothing is kept, also of its folder."""
    zoo_program()
    admin, path = tenant.client("admin"), "/w/acme/servers/try/?as=program"
    body = {"catalogue-name": "Zoo", "catalogue-program": "zoo", "catalogue-zoo-mode": "probe"}
    html = admin.post(path, body).content.decode()
    assert "Connected" in html, html
    missing = admin.post(path, {**body, "catalogue-name": ""}).content.decode()
    assert "Not tested yet" in missing
    assert "No connection" not in missing
    assert "Name:" in missing
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()
    assert tenant.client("member").post(path, body).status_code == 403
    page = admin.get("/w/acme/servers/catalogue/?program=zoo").content.decode()
    assert "Test connection" in page


def test_ones_own_server_is_tried_before_it_is_added(
    tenant: Tenant, counting: CountingServer
) -> None:
    """REL-1231: where the workspace allows servers of people's own, on the page and over REST; never a program."""
    member = tenant.client("member")
    page, rest = "/w/acme/servers/try/?as=personal", "/api/servers/personal/try/"
    form = {"personal-name": "mine", "personal-url": counting.url, "personal-auth_type": "none"}
    body = {"name": "mine", "url": counting.url}
    assert member.post(page, form).status_code == 403
    assert member.post(rest, body, **SENT).status_code == 403
    tenant.allow_personal_servers()
    shown = member.post(page, {**form, "personal-protocol": "auto"}).content.decode()
    assert "7 tools" in shown, shown
    report = member.post(rest, body, **SENT).json()
    assert (report["ok"], report["tool_count"]) == (True, 7)
    program = {"name": "mine", "transport": "stdio", "program": zoo_program().slug}
    assert member.post(rest, program, **SENT).status_code == 422
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()


def test_sessions_are_chosen_over_rest(tenant: Tenant, counting: CountingServer) -> None:
    """REL-1109: what the page's button sets is a field, and the settings show it."""
    server = http_server(tenant, counting.url)
    admin, path = tenant.client("admin"), f"/api/servers/{server.pk}/"
    changed = admin.patch(path, {"protocol": "legacy"}, **SENT).json()
    assert changed["protocol"] == "legacy"
    page = admin.get(f"/w/acme/servers/{server.pk}/settings/").content.decode()
    assert '<option value="legacy" selected>' in page


def test_checks_of_servers_are_listed(tenant: Tenant) -> None:
    """REL-1109, SEC-552: page by page; of somebody's own server for nobody else."""
    server = http_server(tenant, "https://plain.example.org/mcp")
    own = personal_server(tenant)
    now = timezone.now()
    for number in range(3):
        HealthCheck.objects.create(
            workspace=tenant.workspace,
            server=server,
            checked_at=now - timedelta(minutes=number),
            is_ok=number != 1,
            latency_ms=12,
            error="down" if number == 1 else "",
        )
    HealthCheck.objects.create(
        workspace=tenant.workspace, server=own, checked_at=now, is_ok=False, error="secret"
    )
    admin, member = tenant.client("admin"), tenant.client("member")
    path = "/api/health-checks/"
    first = admin.get(f"{path}?page_size=2", headers=HEADERS).json()
    rest = admin.get(first["next"], headers=HEADERS).json()
    times = [one["checked_at"] for one in first["results"] + rest["results"]]
    assert (len(times), times) == (3, sorted(times, reverse=True))
    query = f"{path}?server={server.pk}&is_ok=false"
    [failed] = admin.get(query, headers=HEADERS).json()["results"]
    assert failed["error"] == "down"
    [mine] = member.get(path, headers=HEADERS).json()["results"]
    assert mine["server_id"] == str(own.pk)
    assert admin.get(f"{path}?is_ok=maybe", headers=HEADERS).status_code == 400
    shown = admin.get("/admin/mcp_servers/healthcheck/").content.decode()
    assert "down" in shown
    assert "secret" not in shown


def test_the_trace_comes_as_a_file(tenant: Tenant) -> None:
    """REL-1108, SEC-550, SEC-552: what the page's button gives, with the same filters; taking it is an entry."""
    server = http_server(tenant, "https://plain.example.org/mcp")
    own = personal_server(tenant)
    for row, method in ((server, "tools/call"), (server, "ping"), (own, "tools/call")):
        TraceMessage.objects.create(
            workspace=tenant.workspace,
            server=row,
            at=timezone.now(),
            principal="workspace",
            connection="a",
            direction="sent",
            kind="request",
            method=method,
            outline={"method": method},
        )
    admin, path = tenant.client("admin"), f"/api/servers/{server.pk}/trace-file/"
    answer = admin.get(f"{path}?method=tools/call", headers=HEADERS)
    assert answer["Content-Type"] == "application/x-ndjson"
    [line] = body_of(answer).splitlines()
    assert json.loads(line)["method"] == "tools/call"
    page = admin.get(f"/w/acme/servers/{server.pk}/trace/download/?method=tools/call")
    assert body_of(page).splitlines() == [line]
    taken = AuditEntry.objects.for_workspace(tenant.workspace).filter(
        action=Action.EXPORT_CREATED.value
    )
    assert [one.details["filters"] for one in taken] == [{"method": "tools/call"}] * 2
    for query in ("direction=up", "errors_only=maybe", "call_id=x", "colour=red"):
        assert admin.get(f"{path}?{query}", headers=HEADERS).status_code == 400
    assert tenant.client("member").get(path, headers=HEADERS).status_code == 403
    foreign = f"/api/servers/{own.pk}/trace-file/"
    assert admin.get(foreign, headers=HEADERS).status_code in {403, 404}
    assert tenant.client("member").get(foreign, headers=HEADERS).status_code == 200
    assert taken.all().count() == 3


def test_the_trace_ends_with_the_right_to_see_it(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-1213: in the middle of the file. Nothing more is given, and the download fails."""
    monkeypatch.setattr(download, "_BATCH", 1)
    server = http_server(tenant, "https://plain.example.org/mcp")
    for method in ("ping", "tools/call"):
        TraceMessage.objects.create(
            workspace=tenant.workspace,
            server=server,
            at=timezone.now(),
            principal="workspace",
            connection="a",
            direction="sent",
            kind="request",
            method=method,
        )
    answer: Any = tenant.client("admin").get(f"/w/acme/servers/{server.pk}/trace/download/")
    pieces = iter(answer)
    assert json.loads(next(pieces))["method"] == "ping"
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.people["admin"]).update(
        role="member"
    )
    with pytest.raises(PermissionDenied):
        next(pieces)
