"""What a shared chat shows, as it is kept: texts that were masked, and files and tool calls only if they were chosen. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from chat.values import MessageRole, ToolCallStatus


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SharedFile(_Part):
    """One version of a file of the conversation."""

    artifact_id: UUID
    number: int
    name: str
    content_type: str
    size: int
    """Bytes."""


class SharedCall(_Part):
    """A tool call: its name and how it ended; what it was asked and what it answered if that was chosen."""

    server: str
    tool: str
    status: ToolCallStatus
    arguments: Any = None
    """None: not shared."""
    result: str | None = None
    """None: not shared."""
    result_left_out: int = 0
    """Characters of the result that were too many."""


class SharedMessage(_Part):
    """What one side said."""

    role: MessageRole
    bud: str = ""
    """The bud that answered; empty for what the person said."""
    text: str
    created_at: datetime
    is_whole: bool = True
    """False: it was stopped, or it failed."""
    files: list[SharedFile] = []
    left_out: int = 0
    """Attachments that are not shared."""
    calls: list[SharedCall] = []


class SharedDocument(_Part):
    """The shown path of a conversation, as it was when it was shared."""

    version: Literal[1] = 1
    title: str
    bud: str
    avatar: str
    messages: list[SharedMessage]

    def find_file(self, artifact_id: UUID, number: int) -> SharedFile | None:
        """The file with that version, if it is shared."""
        files = (file for message in self.messages for file in message.files)
        return next((f for f in files if (f.artifact_id, f.number) == (artifact_id, number)), None)
