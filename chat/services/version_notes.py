"""Why a version of a bud is there: one text in its row for all readers, and each reads it in their own language."""

from __future__ import annotations

import re
from typing import Final

from django.utils.translation import gettext, gettext_noop

FROM_FILE: Final = gettext_noop("From a file")
RESTORED: Final = gettext_noop("Version %(number)s restored")
RESTORED_IN_PART: Final = gettext_noop("Version %(number)s restored, without what is gone")
COPY: Final = gettext_noop("Copy of %(name)s")
USES_SERVER: Final = gettext_noop("Uses %(name)s")
ANSWERED_BY: Final = gettext_noop(
    "Answers with %(model)s of %(provider)s, no longer with the demo model"
)
_NOTES: Final = (FROM_FILE, RESTORED, RESTORED_IN_PART, COPY, USES_SERVER, ANSWERED_BY)
_PATTERNS: Final = {
    note: re.compile(re.sub(r"%\\\((\w+)\\\)s", r"(?P<\1>.*)", re.escape(note)), re.S)
    for note in _NOTES
}


def note_in_words(stored: str) -> str:
    """Write a note as it is stored in the reader's language. One that Trellis did not write stays as it is."""
    for note, pattern in _PATTERNS.items():
        if found := pattern.fullmatch(stored):
            return gettext(note) % found.groupdict()
    return stored
