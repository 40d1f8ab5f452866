"""Servers and tools over REST."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.models import AuditEntry
from mcp_servers.client.connections import calls
from mcp_servers.client.values import Outcome, TextPart, ToolCallOutcome
from mcp_servers.models import McpServer, McpTool, StdioProgram
from mcp_servers.pages.api.tools import OutcomeOutput, outcome_in_json
from mcp_servers.registry.services.call_rules import (
    CallRuleDraft,
    change_call_rule,
    create_call_rule,
)
from mcp_servers.registry.specs import connection_spec
from tests.factories import Tenant, make_tenant
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import (
    http_server,
    stored_tool,
    tool_of,
    zoo_program,
    zoo_server,
)
from workspaces.people.tokens import issue_token


class Api:
    """A signed-in person's REST calls in one workspace."""

    def __init__(self, tenant: Tenant, role: str = "admin") -> None:
        self._client: Client = tenant.client(role)
        self._slug = tenant.workspace.slug

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        response = self._client.generic(
            method,
            f"/api/{path}",
            data=json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"X-Workspace": self._slug},
        )
        return response.status_code, json.loads(response.content) if response.content else None


@pytest.fixture
def api(tenant: Tenant) -> Api:
    return Api(tenant)


def test_a_server_is_added_tested_changed_and_deleted(
    api: Api, tenant: Tenant, counting: CountingServer
) -> None:
    """The whole life of a server, as an administrator's program sees it."""
    status, server = api(
        "POST", "servers/", {"name": "counting", "url": counting.url, "trusts_annotations": True}
    )
    assert (status, server["status"]) == (201, "disconnected")
    status, report = api("POST", f"servers/{server['id']}/test/")
    assert (status, report["ok"], report["tool_count"]) == (200, True, 7)
    assert report["protocol_revision"] == "2026-07-28"
    status, tools = api("GET", f"tools/?server={server['id']}")
    assert {tool["name"] for tool in tools["results"]} == {
        "echo",
        "destroy",
        "plain",
        "slow",
        "fail",
        "big",
        "announce",
    }
    status, listed = api("GET", "servers/")
    assert [row["status"] for row in listed["results"]] == ["connected"]
    status, changed = api(
        "PATCH", f"servers/{server['id']}/", {"name": "renamed", "is_active": False}
    )
    assert (status, changed["name"], changed["status"]) == (200, "renamed", "disconnected")
    assert api("DELETE", f"servers/{server['id']}/")[0] == 204
    assert api("GET", f"servers/{server['id']}/")[0] == 404


def test_a_tool_is_switched_and_tried(
    api: Api, tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-63, REL-1563: the tester passes the gate; a destructive tool needs an explicit yes, and says how to give it."""
    echo, destroy = tool_of(trusted, "echo"), tool_of(trusted, "destroy")
    status, outcome = api("POST", f"tools/{echo.pk}/test/", {"arguments": {"text": "hi"}})
    assert (status, outcome["outcome"], outcome["content"]) == (
        200,
        "ok",
        [{"type": "text", "text": "hi"}],
    )
    status, refused = api("POST", f"tools/{destroy.pk}/test/", {"arguments": {"what": "x"}})
    assert (status, refused["errors"][0]["code"]) == (409, "approval_missing")
    assert "“confirm”: true" in refused["errors"][0]["detail"]
    assert counting.names() == ["echo"]
    status, outcome = api(
        "POST", f"tools/{destroy.pk}/test/", {"arguments": {"what": "x"}, "confirm": True}
    )
    assert (status, outcome["outcome"]) == (200, "ok")
    assert api("PATCH", f"tools/{echo.pk}/", {"is_enabled": False})[1]["is_enabled"] is False
    status, refused = api("POST", f"tools/{echo.pk}/test/", {"arguments": {"text": "hi"}})
    assert (status, refused["errors"][0]["code"]) == (403, "call_refused")
    assert counting.names() == ["echo", "destroy"]
    sources = set(
        AuditEntry.objects.for_workspace(tenant.workspace)
        .filter(call_id__isnull=False)
        .values_list("source")
    )
    assert sources == {("api",)}


def test_call_rules_hold_for_the_tester(
    api: Api, tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-548: one's own yes is enough where a rule asks, and not where it asks for a second person."""
    draft = CallRuleDraft(name="Ask", effect="confirm", servers=[trusted.name], tools=["echo"])
    rule = create_call_rule(workspace=tenant.workspace, draft=draft, actor=tenant.actor())
    path = f"tools/{tool_of(trusted, 'echo').pk}/test/"
    body: dict[str, Any] = {"arguments": {"text": "hi"}}
    assert api("POST", path, body)[0] == 409
    assert api("POST", path, {**body, "confirm": True})[0] == 200
    stricter: tuple[dict[str, Any], ...] = ({"approver": "second_person"}, {"effect": "deny"})
    for fields in stricter:
        change_call_rule(rule=rule, draft=replace(draft, **fields), actor=tenant.actor())
        status, outcome_in_json = api("POST", path, {**body, "confirm": True})
        assert (status, outcome_in_json["errors"][0]["code"]) == (403, "call_refused")
        assert "Ask" in outcome_in_json["errors"][0]["detail"]
    assert counting.names() == ["echo"]


def test_unfit_arguments_are_told(api: Api, trusted: McpServer, counting: CountingServer) -> None:
    """SEC-76: 422 with the place, never 500."""
    echo = tool_of(trusted, "echo")
    for arguments in ({}, {"text": 1}, {"text": ["\u0001"]}):
        status, answer = api("POST", f"tools/{echo.pk}/test/", {"arguments": arguments})
        assert (status, answer["errors"][0]["code"]) == (422, "invalid_arguments")
    assert counting.calls == []


def test_whoever_is_refused_for_now_reads_when_to_ask_again(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """REL-2672: a server with all its slots taken."""
    trusted.connection_config = {
        "max_concurrent_calls": 1,
        "max_queued_calls": 1,
        "queue_seconds": 0,
    }
    trusted.save()
    slots = calls.slots_of(connection_spec(trusted))
    assert slots.try_take()
    answer = tenant.client("admin").post(
        f"/api/tools/{tool_of(trusted, 'echo').pk}/test/",
        {"arguments": {"text": "hi"}},
        content_type="application/json",
        headers={"X-Workspace": tenant.workspace.slug},
    )
    slots.give_back()
    assert (answer.status_code, answer["Retry-After"]) == (429, "5")
    assert answer.json()["errors"][0]["code"] == "server_busy"


@pytest.mark.parametrize("role", ["member", "auditor"])
def test_members_may_look_but_not_touch(
    tenant: Tenant, trusted: McpServer, counting: CountingServer, role: str
) -> None:
    """SEC-24: roles hold on every route."""
    api = Api(tenant, role)
    echo = tool_of(trusted, "echo")
    assert api("GET", "servers/")[0] == 200
    assert api("GET", f"tools/{echo.pk}/")[0] == 200
    attempts = [
        ("POST", "servers/", {"name": "x", "url": "https://example.org/"}),
        ("PATCH", f"servers/{trusted.pk}/", {"name": "x", "trusts_annotations": True}),
        ("DELETE", f"servers/{trusted.pk}/", None),
        ("POST", f"servers/{trusted.pk}/test/", None),
        ("POST", f"servers/{trusted.pk}/refresh/", None),
        ("PATCH", f"tools/{echo.pk}/", {"is_enabled": False}),
        ("POST", f"tools/{echo.pk}/accept/", {"definition_hash": echo.definition_hash}),
        ("POST", f"tools/{echo.pk}/test/", {"arguments": {"text": "x"}}),
    ]
    for method, path, body in attempts:
        assert api(method, path, body)[0] == 403, (method, path)
    assert counting.calls == []


def test_rows_of_another_workspace_are_not_found(tenant: Tenant, trusted: McpServer) -> None:
    """SEC-01, SEC-02: another workspace's ids answer like missing ones."""
    other = Api(make_tenant("other"))
    echo = tool_of(trusted, "echo")
    attempts: list[tuple[str, str, Any]] = [
        ("GET", f"servers/{trusted.pk}/", None),
        ("PATCH", f"servers/{trusted.pk}/", {"name": "x"}),
        ("DELETE", f"servers/{trusted.pk}/", None),
        ("POST", f"servers/{trusted.pk}/test/", None),
        ("GET", f"tools/{echo.pk}/", None),
        ("POST", f"tools/{echo.pk}/test/", {"arguments": {}}),
    ]
    for method, path, body in attempts:
        assert other(method, path, body)[0] == 404, (method, path)
    assert other("GET", f"tools/?server={trusted.pk}")[1]["results"] == []
    assert McpServer.objects.for_workspace(tenant.workspace).get().name == "counting"


@pytest.mark.parametrize("word", ["command", "args", "argv", "cwd"])
def test_no_field_of_a_request_becomes_a_program(api: Api, tenant: Tenant, word: str) -> None:
    """SEC-37, SEC-38: programs are the catalogue's, for owners and administrators too; extra keys are refused."""
    zoo_program()
    body: dict[str, Any] = {
        "name": "x",
        "transport": "stdio",
        "program": "zoo",
        "parameters": {"mode": "probe"},
        word: "/bin/sh",
    }
    for caller in (api, Api(tenant, "owner"), Api(tenant, "member")):
        assert caller("POST", "servers/", body)[0] == 403
    assert McpServer.objects.for_workspace(tenant.workspace).count() == 0
    assert (
        api("POST", "servers/", {"name": "x", "url": "https://example.org/", "scope": "global"})[0]
        == 400
    )


def test_parameters_are_one_word_each(api: Api, tenant: Tenant) -> None:
    """SEC-39: nothing that could be read as an option, a shell's syntax or several arguments."""
    zoo_program()
    for value in (
        "--upload-pack=x",
        "-c",
        "a b",
        "$(id)",
        "a\nb",
        "x" * 10_000,
        "`id`",
        ";ls",
        "a|b",
    ):
        body = {"name": "x", "transport": "stdio", "program": "zoo", "parameters": {"mode": value}}
        assert api("POST", "servers/", body)[0] in (400, 422), value
    body = {
        "name": "x",
        "transport": "stdio",
        "program": "zoo",
        "parameters": {"mode": "probe", "extra": "y"},
    }
    assert api("POST", "servers/", body)[0] == 422
    assert McpServer.objects.for_workspace(tenant.workspace).count() == 0


def test_a_server_keeps_a_program_that_is_offered_no_more(api: Api, tenant: Tenant) -> None:
    """REL-3202: its row comes back over REST, and its form in the admin still chooses it; no other server gets it."""
    server = zoo_server(tenant, "probe")
    StdioProgram.objects.filter(slug="zoo").update(is_enabled=False)
    row = api("GET", f"servers/{server.pk}/")[1]
    status, answer = api("PATCH", f"servers/{server.pk}/", {**row, "name": "renamed"})
    assert (status, answer["name"], answer["program"]) == (200, "renamed", "zoo")
    added = {"name": "x", "transport": "stdio", "program": "zoo", "parameters": {"mode": "probe"}}
    status, answer = api("POST", "servers/", added)
    assert (status, answer["errors"][0]["attr"]) == (422, "program")
    page = tenant.client("admin").get(f"/admin/mcp_servers/mcpserver/{server.pk}/change/")
    chosen = f'<option value="{server.program_id}" selected>'
    assert chosen in page.content.decode()


def test_secrets_are_written_and_never_read(
    api: Api, tenant: Tenant, counting: CountingServer
) -> None:
    """SEC-93: no answer, no entry and no error holds a stored secret."""
    canary = "canary-7f3a-secret"
    body = {
        "name": "s",
        "url": counting.url,
        "headers": {"X-Key": canary},
        "auth_type": "bearer",
        "auth": {"token": canary + "-token"},
    }
    status, server = api("POST", "servers/", body)
    assert status == 201
    assert (server["has_headers"], server["has_credentials"]) == (True, True)
    answers = [
        api("POST", f"servers/{server['id']}/test/"),
        api("GET", f"servers/{server['id']}/"),
        api("PATCH", f"servers/{server['id']}/", {"name": "t"}),
        api("PATCH", f"servers/{server['id']}/", {"headers": {"Bad Name": canary}}),
    ]
    assert canary not in json.dumps(answers)
    assert {headers.get("x-key") for headers in counting.headers} == {canary}
    assert {headers.get("authorization") for headers in counting.headers} == {
        f"Bearer {canary}-token"
    }
    rows = AuditEntry.objects.for_workspace(tenant.workspace).values()
    assert canary not in json.dumps(list(rows), default=str)


def test_bad_servers_are_told_where(api: Api) -> None:
    """Bad input gets a clear message in the right place."""
    cases = [
        ({"name": "x", "url": "ftp://example.org"}, "url"),
        ({"name": "x", "url": "http://user:pw@example.org/"}, "url"),
        ({"name": "", "url": "https://example.org/"}, "name"),
        ({"name": "x", "url": "https://example.org/", "headers": {"Host": "y"}}, "headers"),
        ({"name": "x", "url": "https://example.org/", "headers": {"X": "a\r\nb"}}, "headers"),
        ({"name": "x", "url": "https://example.org/", "auth_type": "bearer"}, "auth"),
        (
            {"name": "x", "url": "https://example.org/", "connection_config": {"call_seconds": -1}},
            "connection_config",
        ),
        (
            {"name": "x", "url": "https://example.org/", "connection_config": {"odd": 1}},
            "connection_config",
        ),
        ({"name": "x", "transport": "stdio", "program": "missing"}, "program"),
        ({"name": "x", "transport": "pigeon"}, "transport"),
    ]
    for body, field in cases:
        status, answer = api("POST", "servers/", body)
        assert status in (400, 422), body
        assert any((error["attr"] or "").startswith(field) for error in answer["errors"]), answer
    assert api("POST", "servers/", {"name": "x", "url": "https://example.org/"})[0] == 201
    status, answer = api("POST", "servers/", {"name": "x", "url": "https://example.org/"})
    assert (status, answer["errors"][0]["attr"]) == (422, "name")


def test_accepting_names_the_definition_that_was_seen(api: Api, trusted: McpServer) -> None:
    """SEC-57: a definition that changed under the reader's eyes is not accepted."""
    echo = tool_of(trusted, "echo")
    McpTool.objects.for_workspace(trusted.workspace_id).filter(pk=echo.pk).update(
        definition_hash="3" * 64
    )
    assert api("POST", f"tools/{echo.pk}/accept/", {"definition_hash": "4" * 64})[0] == 409
    status, tool = api("POST", f"tools/{echo.pk}/accept/", {"definition_hash": "3" * 64})
    assert (status, tool["is_quarantined"]) == (200, False)


def test_a_programs_call_asks_the_database_little(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """REL-472: the token with its member at once, and the tool; then the gate's own read and entries."""
    _, token = issue_token(
        workspace=tenant.workspace,
        user=tenant.admin,
        name="program",
        scopes=["servers:write"],
        expires_at=timezone.now() + timedelta(days=1),
        actor=tenant.actor(),
    )
    client = Client(headers={"Authorization": f"Bearer {token}"})
    address = f"/api/tools/{tool_of(trusted, 'echo').pk}/test/"

    def call() -> None:
        body = {"arguments": {"text": "hi"}}
        assert client.post(address, body, content_type="application/json").status_code == 200

    call()
    with CaptureQueriesContext(connection) as captured:
        call()
    reads = [one["sql"] for one in captured if one["sql"].startswith("SELECT")]
    tables = [sql.split(' FROM "')[-1].split('"')[0] for sql in reads if "JOIN" in sql]
    assert sum("workspaces_apitoken" in sql for sql in reads) == 1
    assert tables.count("mcp_servers_mcptool") <= 2
    assert tables.count("workspaces_membership") == 0


def test_an_answer_is_what_the_schema_says() -> None:
    """REL-472: an outcome is written without the serializer that describes it, and is the same."""
    outcome = ToolCallOutcome(
        outcome=Outcome.TOOL_ERROR,
        content=(TextPart(text="x"),),
        structured={"a": [1, None]},
        message="No.",
        duration_ms=7,
        truncated=True,
    )
    assert outcome_in_json(outcome) == OutcomeOutput(outcome).data


@pytest.mark.both_engines
def test_a_page_of_tools_is_read_in_the_order_of_an_index(tenant: Tenant) -> None:
    """REL-568: 50 of 3,000 tools are read, and not all of them sorted."""
    one = stored_tool(http_server(tenant, "https://example.org/mcp"), "one")
    rows = [copy(one) for _ in range(3_000)]
    for number, row in enumerate(rows):
        row.pk, row.name = uuid7(), f"tool_{number}"
    McpTool.objects.bulk_create(rows, batch_size=500)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        with CaptureQueriesContext(connection) as captured:
            assert tenant.client("member").get("/api/tools/").status_code == 200
        order = 'ORDER BY "mcp_servers_mcptool"."name"'
        [asked] = [one["sql"] for one in captured if order in one["sql"]]
        is_sqlite = connection.vendor == "sqlite"
        cursor.execute(f"{'EXPLAIN QUERY PLAN' if is_sqlite else 'EXPLAIN'} {asked}")
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert "mcp_tool_list" in plan
    assert "TEMP B-TREE" not in plan
