"""Summaries of what was said earlier: each is kept with the last message that it stands for.

So it is on the paths that hold these messages and on no other, it is copied and deleted with them, and the messages
themselves stay as they are. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from chat.models import Message

LONGEST_SUMMARY: Final = 8_000
_KEY: Final = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a model reads in place of a message and all above it."""

    text: str
    questions: int
    """How many, with their answers, it stands for."""
    is_used: bool = True
    """False: a person does not want it used."""
    is_edited: bool = False
    """A person has changed its text."""

    def as_json(self) -> dict[str, Any]:
        """As it is stored and shown."""
        return asdict(self)


def summary_of(message: Message) -> Summary | None:
    """The summary that ends with this message."""
    kept: Mapping[str, Any] | None = message.json_meta.get(_KEY)
    return Summary(**kept) if kept else None


def keep_summary(message: Message, summary: Summary) -> None:
    """Put it into the message's row; the caller holds the conversation."""
    message.json_meta = {**message.json_meta, _KEY: summary.as_json()}
    message.save(update_fields=["json_meta", "updated_at"])
