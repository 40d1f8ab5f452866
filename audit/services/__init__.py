"""Writing the log, and what it knows of a call. `record` is the one way to write an entry."""

from audit.services.recording import (
    EntryDraft,
    PreparedEntry,
    Ref,
    drafted,
    is_call_open,
    prepare,
    record,
    was_recorded,
    was_requested,
    write,
)

__all__ = [
    "EntryDraft",
    "PreparedEntry",
    "Ref",
    "drafted",
    "is_call_open",
    "prepare",
    "record",
    "was_recorded",
    "was_requested",
    "write",
]
