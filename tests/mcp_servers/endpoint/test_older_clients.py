"""Clients of revisions that lack what servers of today answer with."""

from __future__ import annotations

import pytest

from audit.actions import Outcome
from mcp_servers.client.values import (
    PromptMessage,
    PromptOutcome,
    ResourceLinkPart,
    ToolCallOutcome,
)
from mcp_servers.endpoint import calling, prompts
from mcp_servers.models import McpServer
from tests.factories import Tenant
from tests.mcp_servers.endpoint.client import BEFORE, TODAYS, McpClient, token_for
from tests.mcp_servers.endpoint.test_prompts import stored_prompt
from tests.mcp_servers.factories import shared_server

pytestmark = pytest.mark.django_db(transaction=True)

LINK = ResourceLinkPart(uri="note://all", name="All notes")


@pytest.mark.parametrize(
    ("revision", "kind"),
    [
        ("", "text"),
        ("2025-03-26", "text"),
        ("2025-06-18", "resource_link"),
        (BEFORE, "resource_link"),
        (TODAYS, "resource_link"),
    ],
)
def test_a_client_that_knows_no_links_reads_them_as_words(
    tenant: Tenant,
    notes: McpServer,
    monkeypatch: pytest.MonkeyPatch,
    revision: str,
    kind: str,
) -> None:
    """REL-2192: it refuses a result with content of a kind that it does not know. Before 2025-06-18, clients did not name their revision."""
    stored_prompt(shared_server(tenant, "S"), "ask")

    async def called(*_: object, **__: object) -> ToolCallOutcome:
        return ToolCallOutcome(outcome=Outcome.OK, content=(LINK,))

    async def given(_: object) -> PromptOutcome:
        messages = (PromptMessage(role="user", content=LINK),)
        return PromptOutcome(outcome=Outcome.OK, messages=messages)

    monkeypatch.setattr(calling, "call_tool", called)
    monkeypatch.setattr(prompts, "get_prompt", given)
    client = McpClient(tenant, token_for(tenant), revision)
    [content] = client.call("notes__list_notes")["content"]
    [message] = client.result("prompts/get", {"name": "S__ask"})["messages"]
    for block, address in (
        (content, "trellis://notes/note://all"),
        (message["content"], "trellis://s/note://all"),
    ):
        assert block["type"] == kind
        if kind == "text":
            assert block["text"] == f"All notes: {address}"
        else:
            assert (block["name"], block["uri"]) == ("All notes", address)
