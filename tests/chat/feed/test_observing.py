"""A turn as one trace, from the model to the MCP server and into the log; and the ids that log lines carry."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import structlog
from opentelemetry.trace import StatusCode

from audit.models import AuditEntry
from mcp_servers.gate import passing
from tests.chat.conftest import Chat
from tests.config.telemetry.tracing import collecting

CANARY = "canary-of-a-turn"


def test_a_turn_is_one_trace_down_to_the_server(chat: Chat) -> None:
    """SEC-104, SEC-94: one trace id in spans, at the server and in the entries; nothing of what was said in any span."""
    chat.model.call(("counting__echo", {"text": CANARY}))
    chat.model.call(("counting__fail", {"text": CANARY}))
    chat.model.say(CANARY)
    with collecting() as collected:
        chat.ask(CANARY)
        turn = collected.awaited("invoke_agent")
        asked = collected.named("chat ")
        called = collected.named("execute_tool")
        sent = collected.named("MCP send tools/call")
        everything = "\n".join(span.to_json() for span in collected.spans())
    assert turn.context is not None
    trace_id = f"{turn.context.trace_id:032x}"
    assert len(asked) == 3
    assert len(called) == len(sent) == 2
    ids = {span.context.span_id for span in called if span.context}
    for span in (*asked, *called):
        assert span.parent is not None
        assert span.parent.span_id == turn.context.span_id, span.name
    assert {span.parent.span_id for span in sent if span.parent} == ids
    assert asked[0].attributes is not None
    assert asked[0].attributes["gen_ai.usage.input_tokens"] == 7
    assert asked[0].attributes["gen_ai.request.model"]
    assert called[1].status.status_code is StatusCode.ERROR
    assert called[1].status.description is None
    assert CANARY not in everything
    bodies = [json.loads(body) for body in chat.server.bodies if b'"tools/call"' in body]
    parents = [body["params"]["_meta"]["traceparent"] for body in bodies]
    assert [parent.split("-")[1] for parent in parents] == [trace_id, trace_id]
    entries = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    found = entries.filter(action__startswith="tool_call").values_list("trace_id", flat=True)
    assert list(found) == [trace_id] * 4


def test_without_a_collector_nothing_is_traced_and_ids_are_known_all_the_same(chat: Chat) -> None:
    """Log lines of a call name request, turn, call and workspace; servers are sent no trace."""
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("done")
    seen: list[dict[str, Any]] = []
    real = passing._record_end

    async def look(*args: Any, **kwargs: Any) -> None:
        seen.append(dict(structlog.contextvars.get_contextvars()))
        await real(*args, **kwargs)

    with patch.object(passing, "_record_end", look):
        turn = chat.ask()
    (call,) = chat.calls()
    assert seen[0]["turn_id"] == str(turn.pk)
    assert seen[0]["call_id"] == str(call.pk)
    assert seen[0]["workspace_id"] == str(chat.tenant.workspace.pk)
    assert b"traceparent" not in b"".join(chat.server.bodies)
    assert "call_id" not in structlog.contextvars.get_contextvars()
