"""Typed values inside JSON columns, and the words for states. Validated on save; pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workspaces.errors import InvalidInput

NOTICE: Final = "notice"
"""What the person has to know of how a message is answered, in the `json_meta` of that message."""

ORIGIN: Final = "origin"
"""In the `json_meta` of a message that was not said in its conversation: how it came (`MessageOrigin`)."""


class MessageOrigin(StrEnum):
    """How a message came that nobody said in its conversation."""

    FILE = "file"
    SHARED = "shared"
    """Copied from a chat that somebody shared."""


class NamedFunction(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """As people see it, `server.tool`, or the tool's bare name where only one server has it."""


class NamedToolChoice(BaseModel):
    """OpenAI's form of "this one tool"."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["function"]
    function: NamedFunction


ToolChoice = Literal["auto", "none", "required"] | NamedToolChoice


class ToolExposure(StrEnum):
    """How the model hears of the servers' tools."""

    ALL = "all"
    """Each stands in the prompt."""
    ON_DEMAND = "on_demand"
    """It looks them up, and calls them by name."""


class McpConfig(BaseModel):
    """Which servers and tools a bud uses."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    servers: Annotated[list[UUID], Field(max_length=50)] = []
    available_tools: Annotated[list[str], Field(max_length=1000)] | None = None
    """"<server id>.<tool name>"; None offers all."""
    disabled_tools: Annotated[list[str], Field(max_length=1000)] = []
    tool_choice: ToolChoice | None = None
    tool_choice_every_step: bool = False
    """A forced tool is forced in the first step of a turn only, unless this is set."""
    tool_exposure: ToolExposure = ToolExposure.ALL


class McpConfigOverrides(BaseModel):
    """What one conversation changes of its bud's configuration."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_serialization_defaults_required=True
    )

    additional_servers: Annotated[list[UUID], Field(max_length=50)] = []
    disabled_servers: Annotated[list[UUID], Field(max_length=50)] = []
    disabled_tools: Annotated[list[str], Field(max_length=1000)] = []
    tool_choice: ToolChoice | None = None


class ModelParameters(BaseModel):
    """What is sent to the model beside the messages; absent ones are the provider's affair."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


_Value = TypeVar("_Value", bound=BaseModel)


def parse_value(kind: type[_Value], raw: Any, *, field: str) -> _Value:
    """A JSON column as its typed value.

    Raises:
        InvalidInput: it does not fit; the message says where, under the column's name.
    """
    try:
        return kind.model_validate(raw or {})
    except ValidationError as error:
        faults = [
            f"{'.'.join(str(part) for part in fault['loc']) or field}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        ]
        raise InvalidInput(fields={field: faults}) from error


class ImportSource(StrEnum):
    """Who wrote a file of chats that is imported."""

    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    TRELLIS = "trellis"


class ImportStatus(StrEnum):
    """How far an import is. What is removed can be brought back as deleted conversations can."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REMOVED = "removed"


class CopyStatus(StrEnum):
    """How far a copy of a person's data is. Of the last three, no file is kept."""

    QUEUED = "queued"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ERASED = "erased"


class MessageRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class MessageStatus(StrEnum):
    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"


class TurnStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    WAITING_FOR_INPUT = "waiting_for_input"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class ToolCallStatus(StrEnum):
    QUEUED = "queued"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    WAITING_FOR_INPUT = "waiting_for_input"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    OUTCOME_UNKNOWN = "outcome_unknown"
    """It was sent, and its end is not known: the person who asked says what becomes of it."""
    MARKED_DONE = "marked_done"
    GIVEN_UP = "given_up"
    REPEATED = "repeated"
    """Another call was made in its place."""


class Resolution(StrEnum):
    """What becomes of a call whose outcome is unknown."""

    RUN_AGAIN = "run_again"
    MARK_DONE = "mark_done"
    GIVE_UP = "give_up"


class WhenBusy(StrEnum):
    """What becomes of a message that is sent while a turn runs."""

    REFUSE = "refuse"
    QUEUE = "queue"
    INTERRUPT = "interrupt"


class TitleSource(StrEnum):
    """Who gave a conversation its title."""

    NONE = ""
    MESSAGE = "message"
    MODEL = "model"
    PERSON = "person"


class ToolProtocol(StrEnum):
    """How a model is told of tools, and asks for them."""

    AUTO = "auto"
    NATIVE = "native"
    FENCED_JSON = "fenced_json"


class BuiltinTool(StrEnum):
    """Tools that the platform itself offers to a bud."""

    CREATE_ARTIFACT = "create_artifact"
    READ_ARTIFACT = "read_artifact"
    UPDATE_ARTIFACT = "update_artifact"
    LIST_ARTIFACTS = "list_artifacts"
    SEND_ARTIFACT_TO_MCP = "send_artifact_to_mcp"
    RETRIEVE_FILE_FROM_MCP = "retrieve_file_from_mcp"
    SEARCH_KNOWLEDGE = "search_knowledge"
    MCP_LIST_SERVERS = "mcp_list_servers"
    MCP_LIST_TOOLS = "mcp_list_tools"
    MCP_CALL_TOOL = "mcp_call_tool"


class ArtifactOrigin(StrEnum):
    """Who made a version of an artifact."""

    MODEL = "model"
    TOOL = "tool"
    UPLOAD = "upload"
    EDIT = "edit"
    RESTORE = "restore"


class WebhookEvent(StrEnum):
    """What programs can be told of."""

    TURN_FINISHED = "turn.finished"
    APPROVAL_WANTED = "approval.wanted"


class AttachmentStatus(StrEnum):
    QUEUED = "queued"
    READY = "ready"
    FAILED = "failed"


class Rating(StrEnum):
    """What a person thinks of an answer."""

    NONE = ""
    GOOD = "good"
    BAD = "bad"


class FolderColour(StrEnum):
    """The charts' colours, which stay apart for most kinds of colour blindness."""

    GREEN = "green"
    BLUE = "blue"
    YELLOW = "yellow"
    RED = "red"
    PURPLE = "purple"
    TEAL = "teal"
    LIME = "lime"
    PINK = "pink"


class BulkChange(StrEnum):
    """What is done with several conversations at once."""

    ARCHIVE = "archive"
    UNARCHIVE = "unarchive"
    MOVE = "move"
    DELETE = "delete"
    RESTORE = "restore"
    ERASE = "erase"
    """Of deleted ones, for good."""


class Wish(StrEnum):
    """How an answer that is written again shall differ from the one before."""

    NONE = ""
    SHORTER = "shorter"
    LONGER = "longer"
    SIMPLER = "simpler"


class Decision(StrEnum):
    APPROVED = "approved"
    REFUSED = "refused"


class Remember(StrEnum):
    """How far a person's yes reaches."""

    NOT = ""
    CONVERSATION = "conversation"
    EVERYWHERE = "everywhere"
