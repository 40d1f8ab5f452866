"""What a browser may say over the socket: each command typed, and nothing else accepted.

`manage.py write_wire` writes the web app's types and docs/protocol.md from these classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from chat.values import Rating, Remember, Resolution, WhenBusy, Wish
from mcp_servers.client.inputs import InputAction
from workspaces.errors import InvalidInput
from workspaces.words.texts import gettext_lazy as _

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class _Command(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    # The answer carries it, so that the page knows what it belongs to.
    ref: Annotated[str, Field(max_length=64)] | None = None


class Subscribe(_Command):
    """Follow a conversation."""

    type: Literal["subscribe"]
    conversation_id: UUID
    seq: Annotated[int, Field(ge=0)] | None = None
    """The newest event that you have. If nothing has happened since, no snapshot is sent."""


class Unsubscribe(_Command):
    """Stop following a conversation."""

    type: Literal["unsubscribe"]
    conversation_id: UUID


class Seen(_Command):
    """Say that a person has seen the end of a conversation. Their other devices then no longer show it as new."""

    type: Literal["seen"]
    conversation_id: UUID
    until: AwareDatetime
    """The `unseen_answer_at` of what they saw. An answer that ended after that stays unseen."""


class ResourceName(BaseModel):
    """A resource of one of the conversation's servers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server_id: UUID
    uri: str
    resource_id: UUID | None = None


class FileName(BaseModel):
    """A file of the conversation. Upload it before you send the message."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    artifact_id: UUID
    version: Annotated[int, Field(ge=1)] | None = None
    """Without it the newest."""


class ModelName(BaseModel):
    """A model of the workspace."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    provider_id: UUID | None
    """Null: the platform's own."""
    name: str


class Send(_Command):
    """Send a message, which begins a turn."""

    type: Literal["send"]
    conversation_id: UUID
    client_id: str
    """Your own id for the message. The same id again sends nothing twice."""
    text: str
    """May be empty if something is attached."""
    attachments: Annotated[list[ResourceName | FileName], Field(max_length=20)] = []
    when_busy: WhenBusy = WhenBusy.REFUSE
    """While a turn runs: refuse this message, queue it, or interrupt the turn."""
    bud_id: UUID | None = None
    """The bud that answers this message, in place of the conversation's."""
    compare: Annotated[list[ModelName], Field(max_length=10)] = []
    """Two or three models that answer this message side by side, until you choose one of their turns."""


class EditMessage(_Command):
    """Ask differently. The conversation branches."""

    type: Literal["edit_message"]
    message_id: UUID
    client_id: str
    """Your own id for the new message."""
    text: str


class Regenerate(_Command):
    """Have a question answered again. The conversation branches."""

    type: Literal["regenerate"]
    turn_id: UUID
    client_id: str
    """Your own id for the new turn."""
    wish: Wish = Wish.NONE
    """How the answer shall differ from the one before."""
    model: ModelName | None = None
    """Which model answers, this once."""


class Compare(_Command):
    """Have another model answer a question. Both answers stand side by side until you choose one."""

    type: Literal["compare"]
    turn_id: UUID
    """The turn that has answered."""
    client_id: str
    """Your own id for the new turn."""
    model: ModelName


class Choose(_Command):
    """Go on from one of the answers that stand side by side. Answers still being written are stopped."""

    type: Literal["choose"]
    turn_id: UUID


class Continue(_Command):
    """Have an answer that was cut off by its length go on."""

    type: Literal["continue"]
    turn_id: UUID


class Rate(_Command):
    """Say what you think of an answer. Administrators see it, without the answer."""

    type: Literal["rate"]
    turn_id: UUID
    rating: Rating
    """Empty: take it back."""
    reason: str = ""


class ShowBranch(_Command):
    """Show the branch that this message is on, and go on from it."""

    type: Literal["show_branch"]
    message_id: UUID


class EditQueued(_Command):
    """Change a message that waits in the queue."""

    type: Literal["edit_queued"]
    queued_id: UUID
    text: str


class RemoveQueued(_Command):
    """Take a message out of the queue."""

    type: Literal["remove_queued"]
    queued_id: UUID


class SendQueued(_Command):
    """Send a queued message now. It interrupts the running turn."""

    type: Literal["send_queued"]
    queued_id: UUID


class Resolve(_Command):
    """Decide what becomes of a tool call whose outcome is unknown."""

    type: Literal["resolve"]
    tool_call_id: UUID
    resolution: Resolution
    note: str = ""


class Stop(_Command):
    """Stop a turn."""

    type: Literal["stop"]
    turn_id: UUID


class Retry(_Command):
    """Try a failed, stopped or interrupted turn again."""

    type: Literal["retry"]
    turn_id: UUID


class Decide(_Command):
    """Approve or refuse a tool call that waits for approval."""

    type: Literal["decide"]
    tool_call_id: UUID
    decision: Literal["approve", "refuse"]
    arguments: dict[str, Any] | None = None
    """Of an approval: the arguments, if you edited them."""
    note: str = ""
    """Why. The log keeps it, and after a refusal the model reads it."""
    remember: Remember = Remember.NOT
    """Of an approval: let this tool run without asking from now on, in this conversation or everywhere."""


class AnswerInput(_Command):
    """Answer what a server asks during a call."""

    type: Literal["answer_input"]
    input_request_id: UUID
    action: InputAction
    content: dict[str, Any] | None = None
    """The values of an accepted form."""


class Ping(_Command):
    """Ask whether the connection still works."""

    type: Literal["ping"]


class Ack(_Command):
    """Say that you have read everything up to this `check`."""

    type: Literal["ack"]
    number: Annotated[int, Field(ge=0)]


Command = (
    Subscribe
    | Unsubscribe
    | Seen
    | Send
    | EditMessage
    | Regenerate
    | Compare
    | Choose
    | Continue
    | Rate
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
    Seen,
    Send,
    EditMessage,
    Regenerate,
    Compare,
    Choose,
    Continue,
    Rate,
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
        faults = error.errors(include_url=False, include_input=False)
        fields = dict(_fault_in_words(fault) for fault in faults)
        text = " ".join(f"{name}: {texts[0]}" for name, texts in fields.items())
        raise InvalidInput(text, fields=fields) from error


_WORDS: Final = {
    "union_tag_invalid": _("There is no such command."),
    "union_tag_not_found": _("Say which command this is."),
    "missing": _("This field is missing."),
    "extra_forbidden": _("There is no such field in this command."),
    "uuid_parsing": _("This is not an id."),
    "uuid_type": _("This is not an id."),
    "model_attributes_type": _("A frame holds one JSON object."),
}
"""What people read in place of the library's own words."""


def _fault_in_words(fault: ErrorDetails) -> tuple[str, list[str]]:
    """Name the field as the command does, and what is wrong with it."""
    kind = fault["type"]
    if kind.startswith("union_tag"):
        return "type", [str(_WORDS[kind])]
    # The first part is the command that was read.
    where = ".".join(str(part) for part in fault["loc"][1:])
    return where or "command", [str(_WORDS.get(kind, fault["msg"]))]
