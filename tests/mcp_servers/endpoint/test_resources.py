"""Other MCP clients read resources: of the servers that their person may use, through the gate, on record."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.client.resource_addresses import may_be
from mcp_servers.client.values import (
    EmbeddedResourcePart,
    ImagePart,
    Outcome,
    ResourceOutcome,
    TextPart,
)
from mcp_servers.endpoint import paging, resources
from mcp_servers.endpoint.addresses import Address, Addresses
from mcp_servers.models import (
    ApprovalOverride,
    McpPrompt,
    McpResource,
    McpServer,
    McpTool,
    ServerScope,
)
from tests.factories import Tenant, TwoTenants
from tests.mcp_servers.endpoint.client import BEFORE, TODAYS, McpClient, token_for
from tests.mcp_servers.factories import shared_server, stored_tool

pytestmark = pytest.mark.django_db(transaction=True)

ALL = "trellis://notes/note://all"


def stored_resource(server: McpServer, uri: str, **fields: Any) -> McpResource:
    """A resource in the database alone."""
    return McpResource.objects.create(
        workspace_id=server.workspace_id,
        server=server,
        uri=uri,
        last_seen_at=timezone.now(),
        **fields,
    )


@pytest.mark.parametrize("revision", [BEFORE, TODAYS])
def test_a_client_lists_and_reads_the_resources_of_its_person(
    tenant: Tenant, notes: McpServer, revision: str
) -> None:
    """REL-1130: in both forms of the protocol, also with a token that only reads; the log has each read."""
    write = McpTool.objects.for_workspace(tenant.workspace).filter(name="write_note")
    write.update(approval_override=ApprovalOverride.AUTO)
    McpClient(tenant, token_for(tenant)).call("notes__write_note", name="welcome", text="Hello")
    client = McpClient(tenant, token_for(tenant, "mcp:read"), revision)
    listed = client.result("resources/list")["resources"]
    assert [(one["uri"], one["title"], one["mimeType"]) for one in listed] == [
        (ALL, "All notes", "text/markdown")
    ]
    (template,) = client.result("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "trellis://notes/note://named/{name}"
    for address in (ALL, template["uriTemplate"].replace("{name}", "welcome")):
        (content,) = client.result("resources/read", {"uri": address})["contents"]
        assert content["uri"] == address
        assert content["text"]
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(
        action__startswith="resource_read."
    )
    assert sorted(entries.values_list("action", "tool_name")) == sorted(
        (f"resource_read.{step}", uri)
        for step in ("requested", "finished")
        for uri in ("note://all", "note://named/welcome")
    )
    assert set(entries.values_list("source", "actor_label")) == {("gateway", tenant.member.email)}


@pytest.mark.parametrize(
    ("revision", "method"), [(BEFORE, "initialize"), (TODAYS, "server/discover")]
)
def test_what_is_offered_is_announced_and_nothing_else(
    tenant: Tenant, revision: str, method: str
) -> None:
    """REL-1131: nobody is told of changes, because no connection stays open."""
    params = {
        "protocolVersion": BEFORE,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    client = McpClient(tenant, token_for(tenant), revision)
    answer = client.result(method, params if revision == BEFORE else None)["capabilities"]
    offered = {name: about for name, about in answer.items() if about is not None}
    assert set(offered) == {"tools", "resources", "prompts", "completions"}
    assert not any(about.get("listChanged") for about in offered.values())
    assert not answer["resources"].get("subscribe")


@pytest.mark.parametrize(("revision", "code"), [(BEFORE, -32002), (TODAYS, -32602)])
def test_what_is_not_there_is_told_as_each_revision_has_it(
    tenant: Tenant, notes: McpServer, revision: str, code: int
) -> None:
    """REL-1131."""
    client = McpClient(tenant, token_for(tenant), revision)
    for address in ("trellis://other/note://all", "note://all", "trellis://notes/", "x"):
        answer = client.post("resources/read", {"uri": address}).json()["error"]
        assert (answer["code"], answer["data"]) == (code, {"uri": address})


def test_what_an_administrator_switched_off_is_not_read(tenant: Tenant, notes: McpServer) -> None:
    """SEC-560: it is not listed, and a read of its address is refused, on record."""
    McpResource.objects.for_workspace(tenant.workspace).filter(uri="note://all").update(
        is_enabled=False
    )
    client = McpClient(tenant, token_for(tenant))
    assert client.result("resources/list")["resources"] == []
    answer = client.post("resources/read", {"uri": ALL}).json()["error"]
    assert "switched this resource off" in answer["message"]
    refused = AuditEntry.objects.for_workspace(tenant.workspace).get(action="resource_read.refused")
    assert (refused.rule, refused.refused_by) == ("resource.disabled", "disabled")


def test_what_a_switched_off_template_leads_to_is_not_read(
    tenant: Tenant, notes: McpServer
) -> None:
    """SEC-560: unless it is listed by itself; and other spellings of a resource that is off help nobody."""
    rows = McpResource.objects.for_workspace(tenant.workspace)
    rows.filter(is_template=True).update(is_enabled=False)
    client = McpClient(tenant, token_for(tenant))

    def words(uri: str) -> str:
        body = client.post("resources/read", {"uri": f"trellis://notes/{uri}"}).json()
        return str(body.get("error", {}).get("message", ""))

    off = "switched this resource off"
    assert words("note://all") == ""
    assert off in words("note://named/ideas")
    stored_resource(notes, "note://named/ideas", name="Ideas")
    assert off not in words("note://named/ideas")
    rows.filter(is_template=False).update(is_enabled=False)
    for uri in (
        *("note://all", "NOTE://all", "note://%61ll", "note://All", "note://named/ideas"),
        *("note://./all", "note://named/../all/", "note://all?a=b", "note://all#c"),
    ):
        assert off in words(uri), uri
    stored_resource(notes, "note://all?a=b", name="Some of them")
    assert off not in words("note://all?a=b")
    assert "not a valid address" in words("note://all\x00")


@pytest.mark.parametrize(
    ("uri", "known", "is_template", "expected"),
    [
        ("file:///a%20b", "file:///a b", False, True),
        ("file:///a/b", "file:///a", False, False),
        ("file:///a/./b", "file:///a/b", False, True),
        ("file:///c/..//a/b/?", "file:///a/b", False, True),
        ("file:/a\\%2562", "file:///a/b", False, True),
        ("file:///a/b%00.txt", "file:///a/b", False, True),
        ("file:///a/b.txt", "file:///a/b", False, False),
        ("file:///a/../c", "file:///a/b", False, False),
        ("file:///a/b?c=1", "file:///a/b?c=2", False, False),
        ("file:///a/./b", "file:///a/{name}", True, True),
        ("file:///a/./b/c", "file:///a/{name}", True, False),
        ("x://{a}", "x://{a}", False, True),
        ("x://1/2", "x://{a}/{b}", True, True),
        ("X://1%2F2", "x://{a}", True, True),
        ("x://1/2", "x://{a}", True, False),
        ("x://1?q=2", "x://1{?q}", True, True),
        ("x://anything", "x://{broken", True, True),
        ("y://anything", "x://{broken", True, False),
    ],
)
def test_which_addresses_may_be_the_same(
    uri: str, known: str, is_template: bool, expected: bool
) -> None:
    """SEC-560: in doubt they are."""
    assert may_be(uri, known, is_template=is_template) is expected


def test_nobody_reads_of_anothers_server_or_workspace(two_workspaces: TwoTenants) -> None:
    """SEC-560: the servers are those of the tools: the workspace's that all buds use, and one's own."""
    ours, theirs = two_workspaces.a, two_workspaces.b
    ours.allow_personal_servers()
    shared, of_admin, unused = (shared_server(ours, name) for name in ("Shared", "Own", "Unused"))
    rows = McpServer.objects.for_workspace(ours.workspace)
    rows.filter(pk=of_admin.pk).update(owner=ours.admin, scope=ServerScope.PERSONAL)
    rows.filter(pk=unused.pk).update(is_used_everywhere=False)
    for server in (shared, of_admin, unused, shared_server(theirs, "B")):
        stored_resource(server, "x://1", name="One")
        stored_resource(server, "x://{a}", name="Any", is_template=True)
    member, admin = (McpClient(ours, token_for(ours, role=role)) for role in ("member", "admin"))
    for client, names in ((member, ["shared"]), (admin, ["own", "shared"])):
        listed = client.result("resources/list")["resources"]
        templates = client.result("resources/templates/list")["resourceTemplates"]
        assert sorted(one["uri"] for one in listed) == [f"trellis://{name}/x://1" for name in names]
        assert sorted(one["uriTemplate"] for one in templates) == [
            f"trellis://{name}/x://{{a}}" for name in names
        ]
    for name in ("own", "unused", "b"):
        body = member.post("resources/read", {"uri": f"trellis://{name}/x://1"}).json()
        assert body["error"]["code"] == -32002, name


def test_addresses_are_those_of_one_server(tenant: Tenant) -> None:
    """REL-1131: also where names differ in nothing but what an address cannot hold, and for very long names."""
    names = ("My notes", "my_notes!", "n" * 60, "42")
    servers = [McpServer(workspace=tenant.workspace, name=name) for name in names]
    addresses = Addresses(servers)
    for server in servers:
        for uri in ("note://all", "file:///a b/ä?x=1#y", "urn:x:{name}", "https://x.example//a"):
            outward = addresses.outward(server.pk, uri)
            assert addresses.inward(outward) == Address(server.pk, uri)
            assert addresses.inward(outward.replace("trellis", "Trellis", 1)) is not None
    outwards = {addresses.outward(server.pk, "x:y").rpartition("/")[0] for server in servers}
    assert len(outwards) == len(servers)
    assert "trellis://42" in outwards
    assert Addresses([servers[0]]).outward(servers[0].pk, "x:y") == "trellis://my_notes/x:y"


def test_many_resources_come_page_by_page(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1130: each once; a cursor that is none of ours is an error."""
    monkeypatch.setattr(paging, "PAGE", 2)
    server = shared_server(tenant, "S")
    for number in range(5):
        stored_resource(server, f"x://{number}", name="Same name")
    client = McpClient(tenant, token_for(tenant))
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = client.result("resources/list", {"cursor": cursor} if cursor else None)
        seen += [one["uri"] for one in page["resources"]]
        cursor = page.get("nextCursor")
    assert seen == [f"trellis://s/x://{number}" for number in range(5)]
    assert cursor is None
    assert client.post("resources/list", {"cursor": "nonsense"}).json()["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("method", "kind", "key"),
    [
        ("tools/list", "tools", "name"),
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ("prompts/list", "prompts", "name"),
    ],
    ids=["tools", "resources", "templates", "prompts"],
)
def test_an_answer_is_bounded_in_size(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, method: str, kind: str, key: str
) -> None:
    """REL-1136: a page ends where it gets too large, and the next one goes on; each entry comes once."""
    monkeypatch.setattr(paging, "MOST_BYTES", 3000)
    server = shared_server(tenant, "S")
    text = "x" * 1000
    for number in range(5):
        stored_tool(server, f"n{number}", description=text)
        stored_resource(server, f"x://{number}", name="N", description=text)
        stored_resource(server, f"x://{number}/{{a}}", is_template=True, description=text)
        McpPrompt.objects.create(
            workspace=tenant.workspace,
            server=server,
            name=f"n{number}",
            description=text,
            last_seen_at=timezone.now(),
        )
    client = McpClient(tenant, token_for(tenant))
    pages = [client.result(method)]
    while cursor := pages[-1].get("nextCursor"):
        pages.append(client.result(method, {"cursor": cursor}))
    assert [len(page[kind]) for page in pages] == [2, 2, 1]
    assert len({entry[key] for page in pages for entry in page[kind]}) == 5


@pytest.mark.parametrize(("revision", "code"), [(BEFORE, -32002), (TODAYS, -32602)])
@pytest.mark.parametrize("expected", [-32002, -32602])
def test_what_a_server_does_not_have_is_not_found(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, revision: str, code: int, expected: int
) -> None:
    """REL-2118: a template leads to addresses that are not there; the code is that of the client's revision."""
    shared_server(tenant, "S")

    async def refused(_request: object) -> ResourceOutcome:
        return ResourceOutcome(
            outcome=Outcome.TOOL_ERROR, message="Not there.", details={"rpc_code": expected}
        )

    monkeypatch.setattr(resources, "read_resource", refused)
    answer = McpClient(tenant, token_for(tenant), revision).post(
        "resources/read", {"uri": "trellis://s/x://1"}
    )
    error = answer.json()["error"]
    assert (error["code"], error["message"]) == (code, "Resource not found")


def test_each_kind_of_content_is_told_as_the_protocol_has_it(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1132: text as it is, bytes in base64, with the addresses that the client knows; what was cut off says so."""
    server = shared_server(tenant, "S")
    data = base64.b64encode(b"\x00\x01").decode()
    outcome = ResourceOutcome(
        outcome=Outcome.OK,
        truncated=True,
        content=(
            EmbeddedResourcePart(uri="x://1", mime_type="text/plain", text="words"),
            EmbeddedResourcePart(uri="x://1/b", mime_type="application/zip", data=data),
            EmbeddedResourcePart(uri="x://1/c", mime_type="application/zip"),
            ImagePart(mime_type="image/png", data=data),
            TextPart(text="[image left out: too large]"),
        ),
    )

    async def given(_request: object) -> ResourceOutcome:
        return outcome

    monkeypatch.setattr(resources, "read_resource", given)
    client = McpClient(tenant, token_for(tenant))
    own = "trellis://s/x://1"
    assert server.name == "S"
    assert client.result("resources/read", {"uri": own})["contents"] == [
        {"uri": own, "mimeType": "text/plain", "text": "words"},
        {"uri": f"{own}/b", "mimeType": "application/zip", "blob": data},
        {"uri": f"{own}/c", "text": resources.NOT_GIVEN},
        {"uri": own, "mimeType": "image/png", "blob": data},
        {"uri": own, "text": "[image left out: too large]"},
        {"uri": own, "text": resources.CUT_OFF},
    ]
