"""What a browser may say over the socket: each command typed, and nothing else accepted."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from chat.values import Remember, Resolution, WhenBusy
from mcp_servers.client.inputs import InputAction
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
    when_busy: WhenBusy = WhenBusy.REFUSE


class EditMessage(_Command):
    """Ask differently; the conversation branches."""

    type: Literal["edit_message"]
    message_id: UUID
    client_id: str
    text: str


class Regenerate(_Command):
    """Answer again; the conversation branches."""

    type: Literal["regenerate"]
    turn_id: UUID
    client_id: str


class ShowBranch(_Command):
    type: Literal["show_branch"]
    message_id: UUID


class EditQueued(_Command):
    type: Literal["edit_queued"]
    queued_id: UUID
    text: str


class RemoveQueued(_Command):
    type: Literal["remove_queued"]
    queued_id: UUID


class SendQueued(_Command):
    """Now, and not when the running turn has ended."""

    type: Literal["send_queued"]
    queued_id: UUID


class Resolve(_Command):
    """What becomes of a call whose outcome is unknown."""

    type: Literal["resolve"]
    tool_call_id: UUID
    resolution: Resolution
    note: str = ""


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


class Ack(_Command):
    """The page has read everything up to this `check`."""

    type: Literal["ack"]
    number: Annotated[int, Field(ge=0)]


Command = (
    Subscribe
    | Unsubscribe
    | Send
    | EditMessage
    | Regenerate
    | ShowBranch
    | EditQueued
    | RemoveQueued
    | SendQueued
    | Resolve
    | Stop
    | Retry
    | Decide
    | AnswerInput
    | Ping
    | Ack
)
COMMANDS: tuple[type[_Command], ...] = (
    Subscribe,
    Unsubscribe,
    Send,
    EditMessage,
    Regenerate,
    ShowBranch,
    EditQueued,
    RemoveQueued,
    SendQueued,
    Resolve,
    Stop,
    Retry,
    Decide,
    AnswerInput,
    Ping,
    Ack,
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
