"""Other MCP clients use prompts: of the servers that their person may use, through the gate, on record."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.client.values import (
    EmbeddedResourcePart,
    Outcome,
    PromptMessage,
    PromptOutcome,
    ResourceLinkPart,
    ResourceOutcome,
    TextPart,
    ToolCallOutcome,
)
from mcp_servers.endpoint import calling, prompts, resources
from mcp_servers.models import McpPrompt, McpServer, McpTool, ServerScope
from tests.factories import Tenant, TwoTenants
from tests.mcp_servers.endpoint.client import BEFORE, TODAYS, McpClient, token_for
from tests.mcp_servers.factories import shared_server

pytestmark = pytest.mark.django_db(transaction=True)


def stored_prompt(server: McpServer, name: str, **fields: Any) -> McpPrompt:
    """A prompt in the database alone."""
    return McpPrompt.objects.create(
        workspace_id=server.workspace_id,
        server=server,
        name=name,
        last_seen_at=timezone.now(),
        **fields,
    )


def fault(client: McpClient, method: str, **params: Any) -> Any:
    """The error that a request comes to."""
    return client.post(method, params).json()["error"]


@pytest.mark.parametrize("revision", [BEFORE, TODAYS])
def test_a_client_lists_and_fills_in_the_prompts_of_its_person(
    tenant: Tenant, notes: McpServer, revision: str
) -> None:
    """REL-1133: in both forms of the protocol, also with a token that only reads; the log has each."""
    client = McpClient(tenant, token_for(tenant, "mcp:read"), revision)
    (listed,) = client.result("prompts/list")["prompts"]
    assert (listed["name"], listed["title"]) == ("notes__tidy_up", "Tidy up a note")
    assert [(one["name"], one.get("required")) for one in listed["arguments"]] == [
        ("name", True),
        ("tone", False),
    ]
    given = {"name": "notes__tidy_up", "arguments": {"name": "Milk"}}
    (message,) = client.result("prompts/get", given)["messages"]
    assert message["role"] == "user"
    assert "Milk" in message["content"]["text"]
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(
        action__startswith="prompt_get."
    )
    assert sorted(entries.values_list("action", "tool_name", "source")) == [
        ("prompt_get.finished", "tidy_up", "gateway"),
        ("prompt_get.requested", "tidy_up", "gateway"),
    ]


def test_what_does_not_fit_is_refused(tenant: Tenant, notes: McpServer) -> None:
    """REL-1133: an unknown name, a missing and an unknown argument."""
    client = McpClient(tenant, token_for(tenant))
    for name, arguments, words in (
        ("notes__other", {}, "Unknown prompt"),
        ("notes__tidy_up", {}, "Please fill in name"),
        ("notes__tidy_up", {"name": "a", "colour": "red"}, "no argument named 'colour'"),
    ):
        refusal = fault(client, "prompts/get", name=name, arguments=arguments)
        assert (refusal["code"], words in refusal["message"]) == (-32602, True), refusal


def test_a_client_suggests_values(tenant: Tenant, notes: McpServer) -> None:
    """REL-1134: for arguments of prompts and of templates, as the server says; no others are asked for."""
    client = McpClient(tenant, token_for(tenant))
    prompt = {"type": "ref/prompt", "name": "notes__tidy_up"}
    template = {"type": "ref/resource", "uri": "trellis://notes/note://named/{name}"}
    tone = {"name": "tone", "value": "br"}
    answer = client.result("completion/complete", {"ref": prompt, "argument": tone})
    assert answer["completion"]["values"] == ["brief"]
    answer = client.result("completion/complete", {"ref": template, "argument": tone})
    assert answer["completion"]["values"] == ["brief"]
    for ref in ({**prompt, "name": "x"}, {**template, "uri": "trellis://x/note://named/{name}"}):
        assert fault(client, "completion/complete", ref=ref, argument=tone)["code"] == -32602


def test_nothing_is_suggested_for_an_address_that_no_database_can_hold(
    tenant: Tenant, notes: McpServer
) -> None:
    """SEC-770: with a NUL in it, as for any other unknown address; on PostgreSQL it was an error of ours."""
    ref = {"type": "ref/resource", "uri": "trellis://notes/note://\x00named/{name}"}
    argument = {"name": "tone", "value": "b"}
    client = McpClient(tenant, token_for(tenant))
    assert fault(client, "completion/complete", ref=ref, argument=argument)["code"] == -32602


@pytest.mark.parametrize("revision", [BEFORE, TODAYS])
def test_a_failure_of_ours_tells_a_client_nothing(
    tenant: Tenant, notes: McpServer, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    """SEC-771: what a database says of itself stays in our log; the SDK sent it to clients of before."""

    def fail(*_given: object) -> None:
        raise OperationalError('connection to server at "10.0.0.5" failed: password of "trellis"')

    monkeypatch.setattr(prompts, "list_prompts", fail)
    refusal = fault(McpClient(tenant, token_for(tenant), revision), "prompts/list")
    assert (refusal["code"], refusal["message"]) == (-32603, "Internal server error")


def test_nothing_reaches_a_client_that_people_do_not_see(
    tenant: Tenant, notes: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-772: by a schema, a result and its structure, a resource, a prompt or a suggestion."""
    seen, sly = "Be kind 👩\u200d👧.", "Be \U000e0041\u202ekind\u200b 👩\u200d👧.\x1b[31m"
    tools = McpTool.objects.for_workspace(tenant.workspace)
    schema = {"type": "object", "properties": {"a": {"description": sly}}}
    tools.filter(name="list_notes").update(input_schema=schema)
    part = TextPart(text=sly)
    embedded = EmbeddedResourcePart(uri="note://a", text=sly)

    async def call(_request: object, **_more: object) -> ToolCallOutcome:
        outcome = ToolCallOutcome(outcome=Outcome.OK, content=(part, embedded))
        return replace(outcome, structured={sly: [sly]}, message=sly)

    async def read(_request: object) -> ResourceOutcome:
        return ResourceOutcome(outcome=Outcome.OK, content=(part, embedded))

    async def prompt(_request: object) -> PromptOutcome:
        messages = (PromptMessage(role="user", content=part),)
        return PromptOutcome(outcome=Outcome.OK, messages=messages)

    async def suggest(_spec: object, **_more: object) -> list[str]:
        return [sly]

    monkeypatch.setattr(calling, "call_tool", call)
    monkeypatch.setattr(resources, "read_resource", read)
    monkeypatch.setattr(prompts, "get_prompt", prompt)
    monkeypatch.setattr(prompts, "complete", suggest)
    client = McpClient(tenant, token_for(tenant))
    ref, argument = {"type": "ref/prompt", "name": "notes__tidy_up"}, {"name": "tone", "value": ""}
    for words in (
        client.result("tools/list"),
        client.call("notes__list_notes"),
        client.result("resources/read", {"uri": "trellis://notes/note://all"}),
        client.result("prompts/get", {"name": "notes__tidy_up"}),
        client.result("completion/complete", {"ref": ref, "argument": argument}),
    ):
        text = json.dumps(words, ensure_ascii=False)
        assert seen in text
        assert not {"\U000e0041", "\u202e", "\u200b"} & set(text), text
        assert "[31m" not in text


def test_nobody_uses_prompts_of_anothers_server_or_workspace(two_workspaces: TwoTenants) -> None:
    """SEC-561: the servers are those of the tools; a prompt that is switched off is none."""
    ours, theirs = two_workspaces.a, two_workspaces.b
    ours.allow_personal_servers()
    shared, of_admin, unused = (shared_server(ours, name) for name in ("Shared", "Own", "Unused"))
    rows = McpServer.objects.for_workspace(ours.workspace)
    rows.filter(pk=of_admin.pk).update(owner=ours.admin, scope=ServerScope.PERSONAL)
    rows.filter(pk=unused.pk).update(is_used_everywhere=False)
    for server in (shared, of_admin, unused, shared_server(theirs, "B")):
        stored_prompt(server, "ask")
        stored_prompt(server, "off", is_enabled=False)
    member, admin = (McpClient(ours, token_for(ours, role=role)) for role in ("member", "admin"))
    for client, names in ((member, ["Shared__ask"]), (admin, ["Own__ask", "Shared__ask"])):
        assert [one["name"] for one in client.result("prompts/list")["prompts"]] == names
    for name in ("Own__ask", "Unused__ask", "B__ask", "Shared__off"):
        assert "Unknown prompt" in fault(member, "prompts/get", name=name)["message"]
        ref = {"type": "ref/prompt", "name": name}
        argument = {"name": "a", "value": ""}
        assert fault(member, "completion/complete", ref=ref, argument=argument)["code"] == -32602


def test_many_prompts_come_page_by_page(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1133."""
    monkeypatch.setattr(prompts, "PAGE", 2)
    server = shared_server(tenant, "S")
    for name in ("b", "a", "a.b", "a_b", "c"):
        stored_prompt(server, name)
    client = McpClient(tenant, token_for(tenant))
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = client.result("prompts/list", {"cursor": cursor} if cursor else None)
        seen += [one["name"] for one in page["prompts"]]
        cursor = page.get("nextCursor")
    assert cursor is None
    assert len(set(seen)) == 5
    assert {"S__a", "S__b", "S__c"} < set(seen)


def test_links_in_a_prompt_lead_to_resources(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1131: by the address that the client can read; what stands on the web stays as it is."""
    stored_prompt(shared_server(tenant, "S"), "ask")
    links = ("note://all", "https://example.com/a")

    async def given(_request: object) -> PromptOutcome:
        parts = [ResourceLinkPart(uri=uri, name="x") for uri in links]
        messages = tuple(PromptMessage(role="user", content=part) for part in parts)
        return PromptOutcome(outcome=Outcome.OK, messages=messages, truncated=True)

    monkeypatch.setattr(prompts, "get_prompt", given)
    client = McpClient(tenant, token_for(tenant))
    listed = [
        one["content"] for one in client.result("prompts/get", {"name": "S__ask"})["messages"]
    ]
    assert [one["uri"] for one in listed[:2]] == ["trellis://s/note://all", links[1]]
    assert listed[2]["text"] == prompts.CUT_OFF
