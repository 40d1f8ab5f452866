"""What crosses between this app and its callers: frozen values, no rows and no foreign types."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from audit.actions import Outcome
from mcp_servers.client.canonical import JsonValue, canonical_json
from mcp_servers.client.decisions import Effect

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from audit.services import Ref
    from workspaces.actors import Actor

__all__ = [
    "AudioPart",
    "BuiltinRequest",
    "ContentPart",
    "Effect",
    "EmbeddedResourcePart",
    "GateOutcome",
    "GateRequest",
    "ImagePart",
    "JsonValue",
    "Outcome",
    "Progress",
    "PromptMessage",
    "PromptOutcome",
    "PromptRequest",
    "Protocol",
    "ResourceLinkPart",
    "ResourceOutcome",
    "ResourceRequest",
    "TextPart",
    "ToolAnnotations",
    "ToolCallOutcome",
    "ToolCallRequest",
    "ToolFacts",
]


class Protocol(StrEnum):
    """Which era of the protocol to speak with a server."""

    AUTO = "auto"
    LEGACY = "legacy"
    MODERN = "2026-07-28"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnnotations:
    """What a server says about a tool; None where it says nothing.

    Source: MCP specification, "Tools": ToolAnnotations. Absent hints mean read-only false, destructive true,
    idempotent false, open world true, so None is never read as harmless.
    """

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    _WIRE_NAMES: ClassVar[dict[str, str]] = {
        "read_only": "readOnlyHint",
        "destructive": "destructiveHint",
        "idempotent": "idempotentHint",
        "open_world": "openWorldHint",
    }

    @classmethod
    def from_wire(cls, annotations: object) -> ToolAnnotations:
        """Read the hints from a tool definition; a hint that is no boolean counts as absent."""
        if not isinstance(annotations, dict):
            return cls()
        found = {name: annotations.get(wire) for name, wire in cls._WIRE_NAMES.items()}
        return cls(**{name: hint for name, hint in found.items() if isinstance(hint, bool)})

    def as_json(self) -> dict[str, bool | None]:
        """The hints as the web app, the API and the audit log show them."""
        return {
            "read_only": self.read_only,
            "destructive": self.destructive,
            "idempotent": self.idempotent,
            "open_world": self.open_world,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFacts:
    """All that the decision rests on."""

    is_server_active: bool = True
    is_enabled: bool = True
    is_removed: bool = False
    is_quarantined: bool = False
    problem: str = ""
    trusts_annotations: bool = False
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    override: Effect | None = None
    """What an administrator set for this tool; None: nothing."""
    is_indirect: bool = False
    """It runs whatever action its arguments name, so what is said of the tool itself says nothing of a call."""
    action: str = ""
    """That action, for people; empty: it cannot be told."""
    action_effect: Effect | None = None
    """What an administrator set for that action; None: nothing."""
    has_read_untrusted: bool = False
    """What the model reads holds something from outside."""
    untrusted_source: str = ""
    """What that was, as a clause: "the page … was read"."""
    unknown_destinations: tuple[str, ...] = ()
    """Where the call can carry its arguments, other than where a person or the assistant's author wants them."""

    @property
    def only_reads(self) -> bool:
        """A trusted server says that the tool changes nothing."""
        return (
            not self.is_indirect
            and self.trusts_annotations
            and self.annotations.read_only is True
            and self.annotations.destructive is not True
        )

    @property
    def reaches_outside(self) -> bool:
        """The tool may carry what it is given to the outside: nobody whose word counts says otherwise."""
        return self.is_indirect or not (
            self.trusts_annotations and self.annotations.open_world is False
        )

    @property
    def is_steerable(self) -> bool:
        """Words from outside could have the model send something out with this call, unseen."""
        if not self.has_read_untrusted or not self.reaches_outside:
            return False
        return not self.only_reads or bool(self.unknown_destinations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One progress notification of a running call."""

    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    """Who asks the gate, and in which conversation; each kind adds what it asks for."""

    call_id: UUID
    """Ties the entries of the audit log and the approval to this request."""
    workspace_id: UUID
    actor: Actor
    bud: Ref | None = None
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRequest(GateRequest):
    """One call of a server's tool."""

    tool_id: UUID
    arguments: Mapping[str, JsonValue]
    approval_id: UUID | None = None
    can_ask: bool = False
    """True: a person can be asked, so a missing approval is not yet a refusal."""
    offered_definition_hash: str | None = None
    """The definition that the caller showed to its model or its person; a call is refused if it is another one now."""
    timeout_seconds: float | None = None
    """For the call alone; waiting for a free slot is not counted. None: the server's own setting."""
    has_read_untrusted: bool = False
    """What the model that asks for this call reads holds something from outside."""
    untrusted_source: str = ""
    """What that was, as a clause for people: "the page … was read"."""
    known_destinations: frozenset[str] = frozenset()
    """Where this call may carry data although the model has read words from outside; see mcp_servers.gate.destinations."""
    can_wait_elsewhere: bool = False
    """True: when the server wants an answer first, the caller can be put aside and come back with the checkpoint.

    Where nobody can be asked here, the caller itself puts forms to its person.
    """
    checkpoint: str | None = None
    """Where an earlier try of this same call stopped; it goes on there."""
    reads_only: bool = False
    """True: a trial that must change nothing, so only tools that just read are called."""
    identical_result: ToolCallOutcome | None = None
    """What the same call of the same step has brought; given to this one too if the tool just reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRequest(GateRequest):
    """Reading one resource."""

    server_id: UUID
    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest(GateRequest):
    """Fetching one prompt."""

    prompt_id: UUID
    arguments: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinRequest(GateRequest):
    """One call of a tool of the platform's own."""

    name: str
    arguments: Mapping[str, Any]
    input_schema: Mapping[str, Any]
    is_enabled: bool = True
    """Whether whoever asks is offered these tools at this moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    text: str

    def as_json(self) -> dict[str, JsonValue]:
        return {"type": "text", "text": self.text}

    def as_model_text(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    mime_type: str
    data: str
    """Base64."""

    def as_json(self) -> dict[str, JsonValue]:
        return {"type": "image", "mime_type": self.mime_type, "data": self.data}

    def as_model_text(self) -> str:
        return f"[image, {self.mime_type}, shown to the user]"


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioPart:
    mime_type: str
    data: str
    """Base64."""

    def as_json(self) -> dict[str, JsonValue]:
        return {"type": "audio", "mime_type": self.mime_type, "data": self.data}

    def as_model_text(self) -> str:
        return f"[audio, {self.mime_type}, shown to the user]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLinkPart:
    """A resource the server names; it is never fetched on sight."""

    uri: str
    name: str
    mime_type: str | None = None

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "type": "resource_link",
            "uri": self.uri,
            "name": self.name,
            "mime_type": self.mime_type,
        }

    def as_model_text(self) -> str:
        return f"[resource {self.name}: {self.uri}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedResourcePart:
    uri: str
    mime_type: str | None = None
    text: str | None = None
    """None: the resource is binary."""
    data: str | None = field(default=None, repr=False)
    """A binary one's bytes in base64, for whoever saves them; neither rows nor the log hold them."""

    def as_json(self) -> dict[str, JsonValue]:
        values: dict[str, JsonValue] = {
            "type": "resource",
            "uri": self.uri,
            "mime_type": self.mime_type,
            "text": self.text,
        }
        if self.data is not None:
            values["sha256"] = hashlib.sha256(self.data.encode()).hexdigest()
        return values

    def as_model_text(self) -> str:
        return self.text if self.text is not None else f"[binary resource {self.uri}]"


ContentPart: TypeAlias = TextPart | ImagePart | AudioPart | ResourceLinkPart | EmbeddedResourcePart


def part_from_json(stored: Mapping[str, Any]) -> ContentPart:
    """A part again from what as_json() made of it; its bytes, where neither rows nor the log hold them, are gone."""
    match stored.get("type"):
        case "image":
            return ImagePart(mime_type=str(stored["mime_type"]), data=str(stored["data"]))
        case "audio":
            return AudioPart(mime_type=str(stored["mime_type"]), data=str(stored["data"]))
        case "resource_link":
            return ResourceLinkPart(
                uri=str(stored["uri"]), name=str(stored["name"]), mime_type=stored.get("mime_type")
            )
        case "resource":
            return EmbeddedResourcePart(
                uri=str(stored["uri"]), mime_type=stored.get("mime_type"), text=stored.get("text")
            )
        case _:
            return TextPart(text=str(stored.get("text", "")))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOutcome:
    """How a request to the gate ended. Failures of the tool, the server and the line are outcomes, not exceptions."""

    outcome: Outcome
    message: str = ""
    """What went wrong in plain words; empty after success."""
    duration_ms: int = 0
    truncated: bool = False
    """True: the answer was larger than the server's limit, and its beginning is given."""
    details: Mapping[str, JsonValue] = field(default_factory=dict)
    """Facts for the log (HTTP status, kind of failure); nothing secret, nothing of the other side's text."""

    @property
    def is_error(self) -> bool:
        """True unless it was done, and a tool says that it succeeded."""
        return self.outcome != Outcome.OK

    def content_as_json(self) -> list[dict[str, JsonValue]]:
        """What came back, as the web app, the API and the log show it."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallOutcome(GateOutcome):
    """How a call ended."""

    content: tuple[ContentPart, ...] = ()
    structured: JsonValue | None = None
    cached_at: datetime | None = None
    """When the result was fetched that is given here again; None for a call that was really made."""

    def content_as_json(self) -> list[dict[str, JsonValue]]:
        return [part.as_json() for part in self.content]

    def as_model_text(self) -> str:
        """What the model reads as the tool's result."""
        texts = [part.as_model_text() for part in self.content]
        if not self.content and self.structured is not None:
            texts = [canonical_json(self.structured).decode()]
        if self.message:
            texts.insert(0, f"Error: {self.message}")
        if self.truncated:
            texts.append("[the rest of this result was cut off]")
        return "\n".join(texts) if texts else "(the tool returned nothing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceOutcome(GateOutcome):
    """How reading a resource ended."""

    content: tuple[ContentPart, ...] = ()

    def content_as_json(self) -> list[dict[str, JsonValue]]:
        return [part.as_json() for part in self.content]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """One message of a prompt."""

    role: str
    """user or assistant."""
    content: ContentPart

    def as_json(self) -> dict[str, JsonValue]:
        return {"role": self.role, "content": self.content.as_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOutcome(GateOutcome):
    """How fetching a prompt ended."""

    description: str = ""
    messages: tuple[PromptMessage, ...] = ()

    def content_as_json(self) -> list[dict[str, JsonValue]]:
        return [message.as_json() for message in self.messages]
