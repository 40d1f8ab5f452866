"""A server has the model write something for it, as far as the workspace lets it.

The models live above this app: whoever has them registers one function here. A request sees its own messages and
nothing else: no conversation, no other server's data, no tools.

Source: MCP specification 2025-11-25, "Sampling".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Sum

from mcp_servers.client.canonical import JsonValue, clean_text
from mcp_servers.client.hidden_text import strip_hidden
from mcp_servers.client.inputs import InputKind
from mcp_servers.models import InputRequest, McpServer
from workspaces.database import database_now

if TYPE_CHECKING:
    from audit.services import Ref
    from workspaces.actors import Actor

MAX_MESSAGES: Final = 50
MAX_TEXT_LENGTH: Final = 100_000
MAX_TOKENS: Final = 4_000
SECONDS: Final = 120.0
"""For the model to answer."""


class SamplingRefused(ValueError):
    """A request that is not fulfilled, with the reason in plain words for the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingMessage:
    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingTask:
    """What a server wants written."""

    workspace_id: UUID
    server_id: UUID
    server_name: str
    bud: Ref | None
    provider_id: UUID | None
    """Whom to ask; None: the bud's provider."""
    model: str
    """Which of its models; empty: its usual one."""
    messages: tuple[SamplingMessage, ...]
    system_prompt: str = ""
    max_tokens: int = MAX_TOKENS
    temperature: float | None = None
    stop_sequences: tuple[str, ...] = ()
    actor: Actor | None = None
    """For whom the call was made during which the server asks."""
    conversation_id: UUID | None = None
    turn_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingResult:
    """What the model wrote, and what it cost."""

    text: str
    model: str
    stop_reason: str = "endTurn"
    tokens: int = 0
    """Of prompt and completion."""

    def as_wire(self) -> dict[str, JsonValue]:
        """A `CreateMessageResult`."""
        return {
            "role": "assistant",
            "content": {"type": "text", "text": self.text},
            "model": self.model,
            "stopReason": self.stop_reason,
        }


AskModel = Callable[[SamplingTask], Awaitable[SamplingResult]]

_ask_model: AskModel | None = None


def register_model(ask: AskModel) -> None:
    """Set who answers: an async function that may be awaited on any loop.

    It raises a DomainError, whose message is not passed on to the server, if no model answers.
    """
    global _ask_model
    _ask_model = ask


def model() -> AskModel:
    """Who answers.

    Raises:
        SamplingRefused: nobody does.
    """
    if _ask_model is None:
        raise SamplingRefused("No model is available.")
    return _ask_model


def read_task(
    params: Mapping[str, JsonValue], *, server: McpServer, bud: Ref | None
) -> SamplingTask:
    """The parameters of `sampling/createMessage` as a task, read without trust.

    Raises:
        SamplingRefused: what is asked for cannot be given.
    """
    if params.get("tools"):
        raise SamplingRefused("Tools are not available in sampling.")
    system_prompt = params.get("systemPrompt")
    wanted = params.get("maxTokens")
    temperature = params.get("temperature")
    stops = params.get("stopSequences")
    return SamplingTask(
        workspace_id=server.workspace_id,
        server_id=server.pk,
        server_name=server.name,
        bud=bud,
        provider_id=server.sampling_provider_id,
        model=server.sampling_model,
        messages=_messages(params.get("messages")),
        system_prompt=_text(system_prompt) if isinstance(system_prompt, str) else "",
        max_tokens=min(wanted, MAX_TOKENS)
        if isinstance(wanted, int) and wanted > 0
        else MAX_TOKENS,
        temperature=float(temperature)
        if isinstance(temperature, int | float) and 0 <= temperature <= 2
        else None,
        stop_sequences=tuple(str(stop)[:100] for stop in stops[:4])
        if isinstance(stops, list)
        else (),
    )


def names_other_context(params: Mapping[str, JsonValue]) -> bool:
    """Whether the server asks for more than its own words. It never gets that, and a person looks at it."""
    return params.get("includeContext") not in (None, "none", "thisServer")


def budget_left(server: McpServer) -> int:
    """How many tokens the server may still have used today, in the last 24 hours."""
    spent = (
        InputRequest.objects.for_workspace(server.workspace_id)
        .filter(
            server_id=server.pk,
            kind=InputKind.SAMPLING.value,
            created_at__gte=database_now() - timedelta(days=1),
        )
        .aggregate(spent=Sum("tokens_used"))["spent"]
    )
    return max(0, server.sampling_daily_tokens - (spent or 0))


def _messages(raw: Any) -> tuple[SamplingMessage, ...]:
    if not isinstance(raw, list) or not 0 < len(raw) <= MAX_MESSAGES:
        raise SamplingRefused(f"Between 1 and {MAX_MESSAGES} messages can be sent.")
    messages = []
    for message in raw:
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("user", "assistant"):
            raise SamplingRefused("Messages are of the user or of the assistant.")
        content = message.get("content")
        for part in content if isinstance(content, list) else [content]:
            if not isinstance(part, dict) or part.get("type") != "text":
                raise SamplingRefused("Only text can be sent.")
            messages.append(SamplingMessage(role=role, text=_text(part.get("text"))))
    if sum(len(message.text) for message in messages) > MAX_TEXT_LENGTH:
        raise SamplingRefused("The messages are too long.")
    return tuple(messages)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise SamplingRefused("A text is missing.")
    return strip_hidden(clean_text(value))
