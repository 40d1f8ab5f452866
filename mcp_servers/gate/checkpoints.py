"""Where an interrupted call goes on: what the gate needs to know again, as one text that the caller keeps."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic
from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, ConfigDict, Field

from audit.actions import RefusedBy
from mcp_servers.client.errors import CallRefused
from mcp_servers.client.inputs import AskedInput, InputAction, InputAnswer, InputKind

if TYPE_CHECKING:
    from mcp_servers.models import InputRequest


class OpenQuestion(BaseModel):
    """One question of a round, with the answer or the row that waits for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    kind: InputKind
    message: str = ""
    form: dict[str, Any] = {}
    url: str = ""
    elicitation_id: str = ""
    params: dict[str, Any] = {}
    row_id: str | None = None
    action: InputAction | None = None
    content: dict[str, Any] = {}
    reason: str = ""

    @classmethod
    def of(
        cls, asked: AskedInput, answer: InputAnswer | None, row: InputRequest | None
    ) -> OpenQuestion:
        """Keep what was asked, and how it stands."""
        values = asdict(asked)
        return cls(
            **{key: value for key, value in values.items() if key != "schema"},
            form=values["schema"],
            row_id=str(row.pk) if row is not None else None,
            action=answer.action if answer else None,
            content=dict(answer.content) if answer else {},
            reason=answer.reason if answer else "",
        )

    def as_asked(self) -> AskedInput:
        """What was asked."""
        return AskedInput(
            key=self.key,
            kind=self.kind,
            message=self.message,
            schema=self.form,
            url=self.url,
            elicitation_id=self.elicitation_id,
            params=self.params,
        )

    def as_answer(self) -> InputAnswer | None:
        """The answer that needed nobody, if it was such a question."""
        if self.action is None:
            return None
        return InputAnswer(action=self.action, content=self.content, reason=self.reason)


class InputCheckpoint(BaseModel):
    """The server wants answers, and then to be asked again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["input"] = "input"
    state: str | None
    rounds: int
    questions: list[OpenQuestion]

    def as_text(self) -> str:
        """What the caller keeps."""
        return self.model_dump_json()


class TaskCheckpoint(BaseModel):
    """The server made the call a task, whose result is fetched later."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["task"] = "task"
    task_id: str
    ttl_seconds: float | None = None

    def as_text(self) -> str:
        """What the caller keeps."""
        return self.model_dump_json()


class SignInCheckpoint(BaseModel):
    """Somebody has to sign in; then the call begins anew, or its task is followed again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["sign_in"] = "sign_in"
    task: TaskCheckpoint | None = None
    was_refused: bool = False
    """It was sent before, and the server refused it."""

    def as_text(self) -> str:
        """What the caller keeps."""
        return self.model_dump_json()


class SignInFirstCheckpoint(BaseModel):
    """Somebody has to sign in before anybody is asked to approve; then the call is admitted like a new one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["sign_in_first"] = "sign_in_first"

    def as_text(self) -> str:
        """What the caller keeps."""
        return self.model_dump_json()


Checkpoint = InputCheckpoint | TaskCheckpoint | SignInCheckpoint
"""Where a call stands that was let through."""
KeptCheckpoint = Checkpoint | SignInFirstCheckpoint

_CHECKPOINT: pydantic.TypeAdapter[KeptCheckpoint] = pydantic.TypeAdapter(
    Annotated[KeptCheckpoint, Field(discriminator="kind")]
)


def read_checkpoint(text: str) -> KeptCheckpoint:
    """The text that a caller kept.

    Raises:
        CallRefused: it is none of ours.
    """
    try:
        return _CHECKPOINT.validate_json(text)
    except pydantic.ValidationError as error:
        raise CallRefused(
            _("This call can't continue from where it stopped. Ask again."),
            rule="checkpoint.unreadable",
            refused_by=RefusedBy.ARGUMENTS,
        ) from error


def is_unsent(text: str | None) -> bool:
    """Whether a call that stopped there was not sent, or was refused for want of an account: it certainly did nothing."""
    if not text:
        return False
    try:
        checkpoint = read_checkpoint(text)
    except CallRefused:
        return False
    if isinstance(checkpoint, SignInCheckpoint):
        return checkpoint.task is None
    return isinstance(checkpoint, SignInFirstCheckpoint)
