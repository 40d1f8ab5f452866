"""Suggestions for the arguments of prompts and resource templates. Reads nothing and does nothing, so it is not gated.

Source: MCP specification, "Completion".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.requests import perform
from mcp_servers.client.inputs import CallLimits
from mcp_servers.client.sdk import mcp_types
from workspaces.redaction import redact_known

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from mcp_servers.client.connections.connection import Connection
    from mcp_servers.client.spec import ConnectionSpec

MAX_VALUES: Final = 100
"""The specification's own limit."""
MAX_VALUE_LENGTH: Final = 1000


async def complete(
    spec: ConnectionSpec,
    *,
    ref: Literal["prompt", "resource"],
    name: str,
    argument: str,
    value: str,
    context: Mapping[str, str] | None = None,
    seconds: float = 5.0,
) -> list[str]:
    """What the server suggests; nothing if it makes no suggestions.

    Args:
        ref: "prompt" with the prompt's name, or "resource" with the template's URI.
        context: arguments that are filled in already.

    Raises:
        ConnectionFailed, Busy, CallFailed, RpcError: it could not be asked.
        TimeoutError: it did not answer in time.
    """
    reference: mcp_types.PromptReference | mcp_types.ResourceTemplateReference = (
        mcp_types.PromptReference(name=name)
        if ref == "prompt"
        else mcp_types.ResourceTemplateReference(uri=name)
    )
    params = mcp_types.CompleteRequestParams(
        ref=reference,
        argument=mcp_types.CompletionArgument(name=argument, value=value),
        context=mcp_types.CompletionContext(arguments=dict(context)) if context else None,
    )

    async def ask(connection: Connection, session: ClientSession) -> list[str]:
        if connection.facts is None or "completions" not in connection.facts.capabilities:
            return []
        result = await session.send_request(
            mcp_types.CompleteRequest(params=params), mcp_types.CompleteResult
        )
        values = result.completion.values[:MAX_VALUES]
        return [
            redact_known(text, workspace_id=spec.workspace_id)[:MAX_VALUE_LENGTH] for text in values
        ]

    limits = CallLimits(seconds=seconds, hard_seconds=seconds)
    return await runtime.run(
        perform(spec, ask, limits=limits, call=None, repeats_in_new_session=True)
    )
