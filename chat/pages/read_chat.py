"""A chat as a page that is only read, by others or on paper: its questions, and what answers them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from django.utils.translation import gettext_lazy

from chat.files.kinds import FileKind, kind_of
from chat.shared_document import SharedCall, SharedDocument, SharedFile, SharedMessage
from chat.values import MessageRole, ToolCallStatus
from workspaces.words.formats import file_size

_OPEN: Final = gettext_lazy("not finished")
_STATES: Final = {
    ToolCallStatus.SUCCEEDED: (gettext_lazy("succeeded"), "ok"),
    ToolCallStatus.FAILED: (gettext_lazy("failed"), "bad"),
    ToolCallStatus.REFUSED: (gettext_lazy("refused"), "warn"),
    ToolCallStatus.CANCELLED: (gettext_lazy("cancelled"), "muted"),
    ToolCallStatus.OUTCOME_UNKNOWN: (gettext_lazy("outcome unknown"), "warn"),
    ToolCallStatus.MARKED_DONE: (gettext_lazy("marked as done"), "ok"),
    ToolCallStatus.GIVEN_UP: (gettext_lazy("given up"), "muted"),
    ToolCallStatus.REPEATED: (gettext_lazy("run again"), "muted"),
}
"""How a call ended, and in which tone it is told."""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file as the page shows it."""

    file: SharedFile
    size: str
    address: str
    """Where it is downloaded."""
    picture: str
    """Where it is looked at; empty: it is no picture."""


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A tool call as the page shows it."""

    call: SharedCall
    state: Any
    tone: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ShownPart:
    """What one message adds to an entry."""

    message: SharedMessage
    files: list[ShownFile]
    calls: list[ShownCall]
    left_out: list[str] = field(default_factory=list)
    """Names of what is not here of what the message took along; empty where only their number is told."""


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """A question, or all that answers it."""

    bud: str
    """Empty: a question."""
    parts: list[ShownPart] = field(default_factory=list)

    @property
    def is_stopped(self) -> bool:
        """Whether the answer did not come to its end."""
        return not self.parts[-1].message.is_whole


class FileAddress(Protocol):
    """Where a file of the page is."""

    def __call__(self, file: SharedFile, *, is_picture: bool) -> str:
        """Give the address to download it, or to look at it as a picture."""


def entries_of(
    document: SharedDocument, address: FileAddress, left_out: Sequence[list[str]] = ()
) -> list[ShownEntry]:
    """Questions and answers; the steps of one answer are one entry.

    Args:
        left_out: of each message, for its owner: the names of what the document leaves out.
    """
    entries: list[ShownEntry] = []
    for number, message in enumerate(document.messages):
        last = entries[-1] if entries else None
        is_same = message.role is MessageRole.ASSISTANT and last and last.bud == message.bud
        if not is_same:
            last = ShownEntry(message.bud)
            entries.append(last)
        assert last is not None
        files = [_file(file, address) for file in message.files]
        names = left_out[number] if left_out else []
        calls = [_call(call) for call in message.calls]
        last.parts.append(ShownPart(message, files, calls, names))
    return entries


def _file(file: SharedFile, address: FileAddress) -> ShownFile:
    is_picture = kind_of(file.content_type, file.name) is FileKind.IMAGE
    return ShownFile(
        file,
        file_size(file.size),
        address(file, is_picture=False),
        address(file, is_picture=True) if is_picture else "",
    )


def _call(call: SharedCall) -> ShownCall:
    state, tone = _STATES.get(call.status, (_OPEN, "muted"))
    is_kept = call.arguments is not None
    arguments = json.dumps(call.arguments, ensure_ascii=False, indent=2) if is_kept else ""
    return ShownCall(call, state, tone, arguments)
