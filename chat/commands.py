"""What a browser may say over the socket: each command typed, and nothing else accepted."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from chat.values import Remember
from mcp_servers.inputs import InputAction
from workspaces.errors import InvalidInput


class _Command(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    ref: Annotated[str, Field(max_length=64)] | None = None
    """Echoed in the answer, so that the page knows what it belongs to."""


class Subscribe(_Command):
    type: Literal["subscribe"]
    conversation_id: UUID
    seq: Annotated[int, Field(ge=0)] | None = None
    """The newest event the page has; when nothing has happened since, no snapshot is sent."""


class Unsubscribe(_Command):
    type: Literal["unsubscribe"]
    conversation_id: UUID


class ResourceName(BaseModel):
    """A resource of one of the conversation's servers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server_id: UUID
    uri: str
    resource_id: UUID | None = None


class Send(_Command):
    type: Literal["send"]
    conversation_id: UUID
    client_id: str
    text: str
    attachments: Annotated[list[ResourceName], Field(max_length=20)] = []


class Stop(_Command):
    type: Literal["stop"]
    turn_id: UUID


class Retry(_Command):
    type: Literal["retry"]
    turn_id: UUID


class Decide(_Command):
    type: Literal["decide"]
    tool_call_id: UUID
    decision: Literal["approve", "refuse"]
    arguments: dict[str, Any] | None = None
    note: str = ""
    remember: Remember = Remember.NOT


class AnswerInput(_Command):
    type: Literal["answer_input"]
    input_request_id: UUID
    action: InputAction
    content: dict[str, Any] | None = None


class Ping(_Command):
    type: Literal["ping"]


Command = Subscribe | Unsubscribe | Send | Stop | Retry | Decide | AnswerInput | Ping
COMMANDS: tuple[type[_Command], ...] = (
    Subscribe,
    Unsubscribe,
    Send,
    Stop,
    Retry,
    Decide,
    AnswerInput,
    Ping,
)

_adapter: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="type")])


def parse_command(content: object) -> Command:
    """A command out of parsed JSON.

    Raises:
        InvalidInput: unknown, incomplete, or with more than belongs in it.
    """
    try:
        return _adapter.validate_python(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"]) or "command"
        raise InvalidInput(fields={where: [str(fault["msg"])]}) from error
