"""A server that repeats its workspace's secret wherever it may say something; nothing of it is stored, shown or sent on."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import Completion, ToolAnnotations
from pydantic import BaseModel, Field
from uuid_utils.compat import uuid7

from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.completion import complete
from mcp_servers.client.connections.hooks import hooks
from mcp_servers.client.connections.tracing import buffer
from mcp_servers.client.inputs import InputAction
from mcp_servers.client.self_description import clean_offers, clean_schema
from mcp_servers.client.values import Progress, PromptRequest, Protocol, ResourceRequest
from mcp_servers.gate import call_tool, get_prompt, read_resource
from mcp_servers.models import InputRequest, McpPrompt, McpServer, McpTool, TraceMessage
from mcp_servers.registry import elicitation, services
from mcp_servers.registry.services import ServerDraft
from mcp_servers.registry.specs import connection_spec
from mcp_servers.registry.trace.sink import keep_batch
from tests.factories import Tenant
from tests.fakes.mcp_server import Listening
from tests.mcp_servers.factories import ListeningCaller, a_request, actor_of, http_server, tool_of
from tests.patience import PATIENCE
from workspaces.redaction import MASK, remember_secret

SECRET = "s3cret-of.the-server-77"


class Form(BaseModel):
    """A form that says too much."""

    name: str = Field(title=f"Name {SECRET}", description=SECRET, default=SECRET)


class Talkative:
    """The SDK's server, which says the secret in every text that it has."""

    def __init__(self) -> None:
        self.server = MCPServer(
            f"name {SECRET}",
            title=f"title {SECRET}",
            version=f"v{SECRET}",
            instructions=f"Say {SECRET}.",
            log_level="ERROR",
        )
        self._add_offers()
        self._listening = Listening(self.server.streamable_http_app())
        self.url = f"{self._listening.origin}/mcp"

    def stop(self) -> None:
        self._listening.stop()

    def _add_offers(self) -> None:
        server, reads = self.server, ToolAnnotations(read_only_hint=True, title=f"a {SECRET}")

        @server.tool(title=f"t {SECRET}", description=f"d {SECRET}", annotations=reads)
        async def talk(
            ctx: Context, text: str = Field(description=f"is {SECRET}", default=SECRET)
        ) -> str:
            with warnings.catch_warnings(action="ignore"):
                await ctx.info(f"log {SECRET}")
            await ctx.report_progress(1, 2, f"progress {SECRET}")
            result = await ctx.elicit(f"question {SECRET}", Form)
            await ctx.elicit_url(f"sign {SECRET}", f"https://sign.example/?x={SECRET}", SECRET)
            return f"{result.action} {SECRET}"

        @server.tool(annotations=reads)
        def fail() -> str:
            raise ToolError(f"failed with {SECRET}")

        @server.tool(annotations=reads)
        def refuse() -> str:
            raise MCPError(code=-32000, message=f"refused with {SECRET}")

        def named() -> str:
            """Its name is the secret."""
            return ""

        server.add_tool(named, name=f"{SECRET}-tool")

        @server.resource("note://talk", title=f"r {SECRET}", description=f"d {SECRET}")
        def note() -> str:
            return SECRET

        @server.prompt(title=f"p {SECRET}", description=f"d {SECRET}")
        def ask(about: str = Field(description=f"d {SECRET}", default="")) -> str:
            if about == "error":
                raise MCPError(code=-32000, message=f"refused with {SECRET}")
            return SECRET

        @server.completion()
        async def completion(ref: Any, argument: Any, context: Any) -> Completion:
            return Completion(values=[f"value {SECRET}"])


@pytest.fixture
def talkative() -> Iterator[Talkative]:
    server = Talkative()
    yield server
    server.stop()


def dump() -> str:
    """Every table as text."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found += [f"{table}: {row}" for row in cursor.fetchall()]
    return "\n".join(found)


def bodies(tenant: Tenant) -> str:
    """What was kept of the messages of all servers, decrypted."""
    rows = TraceMessage.objects.for_workspace(tenant.workspace).exclude(body=None)
    return "\n".join(row.body.reveal("looking", is_credential=False) for row in rows)


async def test_what_a_server_says_about_itself_is_masked_everywhere(
    tenant: Tenant, talkative: Talkative, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-224: names, descriptions, instructions, log lines, progress, questions, suggestions and errors."""
    monkeypatch.setattr(hooks, "traced", keep_batch)
    seen: list[str] = []

    @sync_to_async
    def look() -> tuple[McpServer, dict[str, McpTool], McpPrompt]:
        server = http_server(
            tenant,
            talkative.url,
            protocol=Protocol.LEGACY,
            trusts_annotations=True,
            headers={"X-Key": SECRET},
            log_level="debug",
        )
        report = services.test_connection(server=server, actor=tenant.actor())
        assert report.ok
        seen.append(str(report))
        seen.append(str(services.try_connection(**_try(tenant, talkative))))
        server = McpServer.objects.for_workspace(tenant.workspace).get()
        tools = {name: tool_of(server, name) for name in ("talk", "fail", "refuse")}
        return server, tools, McpPrompt.objects.for_workspace(tenant.workspace).get(server=server)

    server, tools, prompt = await look()
    assert server.state.server_info["name"] == f"name {MASK}"
    assert server.state.instructions == f"Say {MASK}."
    assert tools["talk"].description == f"d {MASK}"
    assert tools["talk"].input_schema["properties"]["text"]["default"] == MASK

    progress: list[Progress] = []
    caller = ListeningCaller(on_progress=progress.append)
    request = a_request(tenant, tools["talk"], can_ask=True)
    call = asyncio.create_task(call_tool(request, caller=caller))
    assert await asyncio.wait_for(caller.waits.get(), PATIENCE) is True

    @sync_to_async
    def answer() -> None:
        row = InputRequest.objects.for_workspace(tenant.workspace).get()
        seen.append(json.dumps(elicitation.input_json(row), ensure_ascii=False))
        assert row.message == f"question {MASK}"
        elicitation.answer_input(
            input_request=row,
            action=InputAction.ACCEPT,
            content={"name": "Ada"},
            actor=actor_of(tenant, "member"),
        )

    await answer()
    outcome = await asyncio.wait_for(call, PATIENCE)
    assert outcome.as_model_text() == f"accept {MASK}"
    assert [one.message for one in progress] == [f"progress {MASK}"]
    seen += [str(await call_tool(a_request(tenant, tools[name]))) for name in ("fail", "refuse")]
    seen += [
        str(await get_prompt(_prompt(tenant, prompt, {"about": about}))) for about in ("x", "error")
    ]
    seen.append(
        str(
            await read_resource(
                ResourceRequest(
                    call_id=request.call_id,
                    server_id=server.pk,
                    uri="note://talk",
                    workspace_id=tenant.workspace.pk,
                    actor=actor_of(tenant, "member"),
                )
            )
        )
    )
    spec = await sync_to_async(connection_spec)(server)
    seen += await complete(spec, ref="prompt", name="ask", argument="about", value="x")
    await runtime.run(buffer.close())
    everything = await sync_to_async(dump)()
    assert MASK in everything
    messages = await sync_to_async(bodies)(tenant)
    assert f"log {MASK}" in messages
    for text in (*seen, everything, messages):
        assert SECRET not in text
    assert [text for text in seen if MASK not in text] == []


def _prompt(tenant: Tenant, prompt: McpPrompt, arguments: dict[str, str]) -> PromptRequest:
    return PromptRequest(
        call_id=uuid7(),
        workspace_id=tenant.workspace.pk,
        prompt_id=prompt.pk,
        arguments=arguments,
        actor=actor_of(tenant, "member"),
    )


def _try(tenant: Tenant, talkative: Talkative) -> dict[str, Any]:
    return {
        "workspace_id": tenant.workspace.pk,
        "draft": ServerDraft(name="tried", url=talkative.url, headers={"X-Key": SECRET}),
        "actor": tenant.actor(),
    }


def test_what_is_used_by_name_keeps_its_name_or_is_left_out() -> None:
    """SEC-223, SEC-224: a schema means the same after masking; words of the standard and names of fields stay."""
    for secret in ("object", "customer", "search_docs", "k3y-4711-abc"):
        remember_secret(secret, workspace_id="names")
    schema = {
        "type": "object",
        "properties": {"customer": {"type": ["object", "null"], "description": "a customer"}},
        "required": ["customer"],
        "default": "k3y-4711-abc",
    }
    offers = [
        {"name": "search_docs", "description": "search_docs", "inputSchema": schema},
        {"name": "k3y-4711-abc-tool"},
        {"uri": "note://k3y-4711-abc"},
        {"name": "ask", "arguments": [{"name": "customer", "description": "the customer"}]},
    ]
    kept, left_out = clean_offers(offers, "names")  # type: ignore[arg-type]
    assert left_out == 2
    assert kept[0]["name"] == "search_docs"
    assert kept[0]["description"] == MASK
    assert kept[0]["inputSchema"] == {
        "type": "object",
        "properties": {"customer": {"type": ["object", "null"], "description": f"a {MASK}"}},
        "required": ["customer"],
        "default": MASK,
    }
    assert kept[1]["arguments"] == [{"name": "customer", "description": f"the {MASK}"}]
    assert clean_schema({"format": "k3y-4711-abc"}, "names") == {"format": MASK}  # type: ignore[arg-type]
