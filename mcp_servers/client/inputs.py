"""What a server may ask for while it works on a request: MCP's input requests, and the answers to them. Pure.

Older revisions send such a request over the open connection and wait; the newest ends the request with
`input_required` and is asked again with the answers. Both become the same values here.

Source: MCP specification 2025-11-25, "Elicitation", "Sampling", "Roots"; 2026-07-28, "Multi round-trip requests".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mcp_servers.client.values import JsonValue, Progress


class InputKind(StrEnum):
    """What is asked for."""

    FORM = "form"
    URL = "url"
    SAMPLING = "sampling"
    ROOTS = "roots"
    SIGN_IN = "sign_in"
    """Not the server's question but ours: it wants credentials, and the person can get them by signing in."""


class InputAction(StrEnum):
    """What came of it; the words of MCP's elicitation."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedInput:
    """One thing that a server wants before it goes on."""

    key: str
    """The server's own name for it within the request; in older revisions the id of its JSON-RPC request."""
    kind: InputKind
    message: str = ""
    """For the person; text of the server, not cleaned."""
    schema: Mapping[str, JsonValue] = field(default_factory=dict)
    """Form: the requested schema as on the wire."""
    url: str = ""
    elicitation_id: str = ""
    """URL, older revisions: what a later notification of completion will name."""
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    """Sampling: the parameters of `sampling/createMessage` as on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAnswer:
    """The answer to one of them."""

    action: InputAction
    content: Mapping[str, JsonValue] = field(default_factory=dict)
    """Form: the values. Sampling: a `CreateMessageResult` as on the wire. Roots: {"roots": [{"uri", "name"}]}."""
    reason: str = ""
    """Sampling and roots: why not, for the server."""


class CallListener(Protocol):
    """Whoever made a request, as the connection sees them while it runs. Called on the connections' loop."""

    def progressed(self, progress: Progress) -> None:
        """The server told how far it is. Must not block."""

    async def answer(self, asked: AskedInput) -> InputAnswer:
        """The server asks over the open connection (older revisions). The call's clock stands still meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """How long a request may take, apart from the time that people take to answer."""

    seconds: float
    """Without a sign of progress."""
    hard_seconds: float
    """In all, whatever the progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequired:
    """A request that ended early: the server wants answers, and then to be asked again (2026-07-28)."""

    asked: tuple[AskedInput, ...]
    state: str | None = None
    """Opaque; goes back to the server with the answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAnswers:
    """What goes along when the request is made again."""

    by_key: Mapping[str, tuple[AskedInput, InputAnswer]]
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStarted:
    """A call that the server turned into a task; its result is fetched later, from whatever process."""

    task_id: str
    poll_seconds: float
    ttl_seconds: float | None = None
