"""Other MCP clients use a workspace's tools: by the gate, on record, and no further than their token says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx2
import mcp_types
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.live_server_helper import LiveServer

from audit.models import AuditEntry
from mcp_servers.endpoint import offering
from mcp_servers.endpoint.callers import EndpointCaller
from mcp_servers.endpoint.calling import NOBODY_ASKED
from mcp_servers.models import McpServer, McpTool, ServerScope
from mcp_servers.registry.services.call_rules import CallRuleDraft, create_call_rule
from tests.factories import Tenant, TwoTenants
from tests.mcp_servers.endpoint.client import BEFORE, TODAYS, McpClient, token_for
from tests.mcp_servers.endpoint.official import use_notes
from tests.mcp_servers.factories import http_server, stored_tool
from tests.patience import PATIENCE
from workspaces.errors import InvalidInput

pytestmark = pytest.mark.django_db(transaction=True)


def caller_for(tenant: Tenant) -> EndpointCaller:
    """A member's client that may use all tools."""
    return EndpointCaller(
        actor=tenant.actor("member"),
        user_id=tenant.member.pk,
        workspace_id=tenant.workspace.pk,
        workspace_name=tenant.workspace.name,
        reads_only=False,
    )


@pytest.mark.parametrize("mode", ["legacy", TODAYS])
def test_the_official_client_uses_it(
    tenant: Tenant, notes: McpServer, live_server: LiveServer, mode: Any
) -> None:
    """Ours: over HTTP, as an MCP client on somebody's laptop does, in both forms of the protocol."""
    url = f"{live_server.url}/w/{tenant.workspace.slug}/mcp/"
    headers = {"Authorization": f"Bearer {token_for(tenant)}"}

    use_notes(url, httpx2.AsyncClient(headers=headers, timeout=PATIENCE), mode)


@pytest.mark.parametrize("revision", [BEFORE, TODAYS])
def test_a_client_lists_and_calls_the_tools_of_its_person(
    tenant: Tenant, notes: McpServer, revision: str
) -> None:
    """SEC-108, SEC-104: in both forms of the protocol; the log names the person, the token and the door."""
    client = McpClient(tenant, token_for(tenant), revision)
    if revision == BEFORE:
        begun = client.result(
            "initialize",
            {
                "protocolVersion": BEFORE,
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        )
        assert begun["serverInfo"]["name"] == "trellis"
    assert "notes__list_notes" in client.names()
    answer = client.call("notes__list_notes")
    assert not answer["isError"], answer
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="tool_call.finished")
    assert (entry.source, entry.actor_label) == ("gateway", tenant.member.email)
    assert entry.token_id is not None


def test_what_needs_approval_is_refused_with_its_reason(tenant: Tenant, notes: McpServer) -> None:
    """SEC-111: the client is told of the tool and why it does not run; the server never hears of the call."""
    client = McpClient(tenant, token_for(tenant))
    (tool,) = [
        one for one in client.result("tools/list")["tools"] if one["name"] == "notes__delete_note"
    ]
    assert "approves each call" in tool["description"]
    answer = client.call("notes__delete_note", name="old")
    assert answer["isError"]
    assert "approves each call" in answer["content"][0]["text"]
    refused = AuditEntry.objects.for_workspace(tenant.workspace).get(action="tool_call.refused")
    assert (refused.source, refused.refused_by) == ("gateway", "approval")


def test_call_rules_hold_for_clients(tenant: Tenant, notes: McpServer) -> None:
    """SEC-548: what a rule blocks whatever it is given is not offered; what asks, or is blocked by arguments, is refused."""
    admin = tenant.actor("admin")

    def rule(name: str, tool: str, **fields: Any) -> None:
        draft = CallRuleDraft(**{"name": name, "servers": ["notes"], "tools": [tool], **fields})
        create_call_rule(workspace=tenant.workspace, draft=draft, actor=admin)

    rule("No list", "list_notes", effect="deny")
    rule("Four eyes", "read_note", effect="confirm", approver="second_person")
    secret = {"path": "name", "operator": "contains", "value": "secret"}
    rule("No secrets", "write_note", effect="deny", conditions=[secret])
    rule("Free notes", "write_note", effect="auto")
    client = McpClient(tenant, token_for(tenant))
    offered = {one["name"]: one for one in client.result("tools/list")["tools"]}
    assert "notes__list_notes" not in offered
    assert "approves each call" in offered["notes__read_note"]["description"]
    assert "approves each call" not in offered["notes__write_note"].get("description", "")
    for name, words in (
        ("list_notes", "“No list” blocks"),
        ("read_note", "“Four eyes” asks for a second person"),
    ):
        answer = client.call(f"notes__{name}", **({"name": "a"} if name == "read_note" else {}))
        assert answer["isError"]
        assert words in answer["content"][0]["text"]
    answer = client.call("notes__write_note", name="my SECRET", text="x")
    assert "“No secrets” blocks" in answer["content"][0]["text"]
    assert not client.call("notes__write_note", name="plain", text="x")["isError"]


@pytest.mark.parametrize("revision", [BEFORE, TODAYS])
def test_a_token_that_reads_calls_nothing_else(
    tenant: Tenant, notes: McpServer, revision: str
) -> None:
    """SEC-113, REL-3214: it hears of no other tools; a call of one is 403, says why, and stands in the log."""
    client = McpClient(tenant, token_for(tenant, "mcp:read"), revision)
    assert "notes__list_notes" in client.names()
    assert "notes__write_note" not in client.names()
    assert not client.call("notes__list_notes")["isError"]
    answer = client.post(
        "tools/call", {"name": "notes__write_note", "arguments": {"name": "a", "text": "b"}}
    )
    assert answer.status_code == 403
    assert answer.json()["error"]["message"].startswith("Only tools that just read")
    challenge = answer["WWW-Authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert challenge.endswith('scope="mcp:call"')
    assert (
        AuditEntry.objects.for_workspace(tenant.workspace)
        .filter(action="tool_call.refused", source="gateway")
        .exists()
    )


def test_only_a_token_for_mcp_clients_of_this_workspace_opens_it(
    two_workspaces: TwoTenants,
) -> None:
    """SEC-108: neither a token for REST, nor another workspace's, nor a session; and it opens nothing of REST."""
    ours, theirs = two_workspaces.a, two_workspaces.b
    mine = token_for(ours)
    for wrong in (token_for(ours, "chat", "servers:write"), token_for(theirs), "trl_nonsense", ""):
        answer = McpClient(ours, wrong).post("tools/list")
        assert (answer.status_code, "Bearer" in answer["WWW-Authenticate"]) == (401, True)
    assert McpClient(theirs, mine).post("tools/list").status_code == 401
    signed_in = ours.client("member")
    assert signed_in.post(McpClient(ours, "").url, b"{}", "application/json").status_code == 401
    for path in ("/api/servers/", "/api/conversations/", "/api/tools/"):
        rest = Client().get(path, headers={"Authorization": f"Bearer {mine}"})
        assert rest.status_code == 403, path


def test_a_token_is_for_mcp_clients_or_for_rest(tenant: Tenant) -> None:
    """SEC-108."""
    with pytest.raises(InvalidInput) as refused:
        token_for(tenant, "mcp:call", "chat")
    assert "opens nothing else" in str(refused.value.fields)


def test_headers_methods_and_origins_are_checked(tenant: Tenant, notes: McpServer) -> None:
    """SEC-109, SEC-110: a session's id means nothing, and none is given."""
    old, new = (McpClient(tenant, token_for(tenant), one) for one in (BEFORE, TODAYS))
    assert Client().get(old.url).status_code == 405
    assert Client().delete(old.url).status_code == 405
    for client in (old, new):
        foreign = client.post("tools/list", Origin="https://evil.example")
        assert foreign.status_code == 403
        own = client.post("tools/list", Origin="http://testserver", **{"Mcp-Session-Id": "a" * 32})
        assert own.status_code == 200, own.content
        assert "Mcp-Session-Id" not in own
    another = new.post(
        "tools/call", {"name": "notes__list_notes"}, **{"Mcp-Name": "notes__delete_note"}
    )
    assert another.status_code == 400
    assert another.json()["error"]["code"] == -32020
    assert old.post("tools/list", **{"Mcp-Protocol-Version": "1999-01-01"}).status_code == 400


def test_what_an_endpoint_does_not_announce_is_no_method(tenant: Tenant) -> None:
    """REL-1131: also what would be answered with a stream."""
    client = McpClient(tenant, token_for(tenant), TODAYS)
    answer = client.post("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == mcp_types.METHOD_NOT_FOUND


def test_nobody_is_told_of_anothers_server_or_workspace(two_workspaces: TwoTenants) -> None:
    """SEC-111: servers of the workspace that all buds use, and one's own; an unknown name is an error."""
    ours, theirs = two_workspaces.a, two_workspaces.b
    ours.allow_personal_servers()
    shared = http_server(ours, "https://tools.example/mcp", name="Shared", is_used_everywhere=True)
    of_admin = http_server(ours, "https://own.example/mcp", name="Own", is_used_everywhere=True)
    McpServer.objects.for_workspace(ours.workspace).filter(pk=of_admin.pk).update(
        owner=ours.admin, scope=ServerScope.PERSONAL
    )
    elsewhere = http_server(theirs, "https://b.example/mcp", name="B", is_used_everywhere=True)
    for server in (shared, of_admin, elsewhere):
        stored_tool(server)
    member, admin = (McpClient(ours, token_for(ours, role=role)) for role in ("member", "admin"))
    assert member.names() == ["Shared__echo"]
    assert admin.names() == ["Own__echo", "Shared__echo"]
    body = member.post("tools/call", {"name": "B__echo", "arguments": {}}).json()
    assert body["error"]["code"] == -32602


def test_many_tools_come_page_by_page(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offering, "PAGE", 2)
    server = http_server(tenant, "https://tools.example/mcp", name="S", is_used_everywhere=True)
    for name in "edcba":
        stored_tool(server, name)
    client = McpClient(tenant, token_for(tenant))
    names: list[str] = []
    cursor = None
    for _ in range(3):
        page = client.result("tools/list", {"cursor": cursor} if cursor else None)
        names += [tool["name"] for tool in page["tools"]]
        cursor = page.get("nextCursor")
    assert names == [f"S__{name}" for name in "abcde"]
    assert cursor is None


@pytest.mark.parametrize("others", [0, 30])
def test_a_call_finds_its_tool_without_listing_the_others(tenant: Tenant, others: int) -> None:
    """REL-1135: with two statements, however many tools there are; a list takes five."""
    server = http_server(tenant, "https://tools.example/mcp", name="S", is_used_everywhere=True)
    for number in range(others):
        stored_tool(server, f"other_{number}")
    meant = stored_tool(server, "meant")
    caller = caller_for(tenant)
    with CaptureQueriesContext(connection) as asked:
        found = offering.find(caller, "S__meant")
    assert found is not None
    assert found.tool_id == meant.pk
    assert len(asked) == 2
    with CaptureQueriesContext(connection) as asked:
        assert len(offering.offers_for(caller)) == others + 1
    assert len(asked) == 5


def test_a_tool_has_the_same_name_in_lists_and_calls(tenant: Tenant) -> None:
    """REL-1135: also if names are long or alike, and whatever its token and rules leave out of a list."""
    first, second, third = (
        http_server(tenant, f"https://{host}.example/mcp", name=name, is_used_everywhere=True)
        for host, name in (("a", "a"), ("b", "a__b"), ("c", "Long " * 12))
    )
    known = {
        stored_tool(server, name, annotations={"readOnlyHint": True}).pk
        for server, name in (
            *((first, "b__c"), (second, "c"), (first, "x.y"), (first, "x_y"), (first, "X_Y")),
            *((third, "t"), (third, "u" * 60), (first, "v" * 64), (first, "plain")),
        )
    }
    caller = caller_for(tenant)
    offers = offering.offers_for(caller)
    found = {offer.name: offering.find(caller, offer.name) for offer in offers}
    assert {name: one.tool_id for name, one in found.items() if one} == {
        offer.name: offer.tool.pk for offer in offers
    }
    assert {offer.tool.pk for offer in offers} == known
    assert "a__plain" in found
    assert offering.find(caller, "a__b__c") is None
    McpServer.objects.for_workspace(tenant.workspace).update(trusts_annotations=True)
    McpTool.objects.for_workspace(tenant.workspace).filter(name="c").update(annotations={})
    names = [offer.name for offer in offering.offers_for(replace(caller, reads_only=True))]
    assert len(names) == len(known) - 1
    assert set(names) < set(found)


def test_a_question_that_nobody_can_answer_holds_nothing_up(
    tenant: Tenant, notes: McpServer
) -> None:
    """REL-2932: a server that asks back is told at once that nobody answers, and whoever called reads where it can ask."""
    McpTool.objects.for_workspace(tenant.workspace).update(cache_seconds=60)
    client = McpClient(tenant, token_for(tenant))
    for _ in range(2):
        first, note = client.call("notes__plan_garden_day")["content"]
        assert "was not answered" in first["text"]
        assert note["text"] == NOBODY_ASKED
    # Kept, the result would also serve whoever can be asked.
    ends = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="tool_call.finished")
    assert ["cached_at" in end.details for end in ends] == [False, False]


def test_the_words_of_a_tool_come_first(tenant: Tenant, notes: McpServer) -> None:
    """REL-2112: some clients show the first text of an error, and nothing else of it."""
    result = McpClient(tenant, token_for(tenant)).call("notes__read_note", name="nowhere")
    assert result["isError"]
    (text,) = result["content"]
    assert "no note called 'nowhere'" in text["text"]


def test_a_workspace_lets_no_clients_in_unless_its_owner_says_so(tenant: Tenant) -> None:
    """SEC-531, REL-2851: who had a token is refused from that moment on, and clients can show why."""
    client = McpClient(tenant, token_for(tenant))
    assert client.names() == []
    tenant.workspace.allows_mcp_clients = False
    tenant.workspace.save()
    refused = client.post("tools/list")
    assert refused.status_code == 403
    # As the official client reads it.
    read = mcp_types.jsonrpc_message_adapter.validate_json(refused.content, by_name=False)
    assert isinstance(read, mcp_types.JSONRPCError)
    assert read.error.message == "This workspace does not let other MCP clients in."


def test_a_client_that_asks_for_a_stream_reads_that_there_is_none(tenant: Tenant) -> None:
    """REL-1893: by 405. Source: MCP specification, "Transports": Listening for Messages from the Server."""
    token = token_for(tenant)
    seen = Client().get(
        f"/w/{tenant.workspace.slug}/mcp/",
        headers={"Authorization": f"Bearer {token}", "Accept": "text/event-stream"},
    )
    assert (seen.status_code, seen["Allow"]) == (405, "POST")


def test_the_address_in_a_browser_and_without_its_slash(tenant: Tenant) -> None:
    """REL-1567: a person reads what it is for, and a client that leaves the slash out still arrives."""
    url = f"/w/{tenant.workspace.slug}/mcp/"
    seen = tenant.client("member").get(url)
    assert (seen.status_code, seen["Allow"]) == (405, "POST")
    assert "MCP client" in seen.json()["errors"][0]["detail"]
    sent = Client().post(url.rstrip("/"), "{}", content_type="application/json")
    assert (sent.status_code, sent["Location"]) == (308, url)


def test_words_are_no_page(tenant: Tenant) -> None:
    """REL-1567: what the protocol's library refuses in words is plain text."""
    client = McpClient(tenant, token_for(tenant))
    answer = Client().post(
        client.url,
        "{}",
        content_type="text/html",
        headers={"Authorization": f"Bearer {client.token}"},
    )
    assert (answer.status_code, answer["Content-Type"]) == (400, "text/plain; charset=utf-8")


@pytest.mark.parametrize("revision", [BEFORE, TODAYS])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("[]", "Send each message in a request of its own."),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', "in a request of its own."),
        ("{}", "This is no message of JSON-RPC."),
        ("5", "This is no message of JSON-RPC."),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', "no message of JSON-RPC."),
    ],
)
def test_what_is_no_message_is_refused_in_words(
    tenant: Tenant, revision: str, body: str, text: str
) -> None:
    """REL-3292: by an error of the protocol that says what is taken, and nothing of our library's classes."""
    client = McpClient(tenant, token_for(tenant), revision)
    headers, _ping = client.message("ping")
    answer = Client().post(client.url, body, content_type="application/json", headers=headers)
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/json")
    refused = answer.json()
    assert (refused["jsonrpc"], refused["id"]) == ("2.0", None)
    assert refused["error"]["code"] == mcp_types.INVALID_REQUEST
    assert text in refused["error"]["message"]
    broken = Client().post(client.url, "nope", content_type="application/json", headers=headers)
    assert broken.json()["error"]["code"] == mcp_types.PARSE_ERROR
