"""What a person has declared of entries whose TRELLIS_AUDIT_KEY is lost: entries of the log, sealed under the key of now.

Of each entry that was there, a declaration keeps what its arguments and results said at that moment, as a commitment
under the key of now. So what is changed from then on is found.
"""

from __future__ import annotations

import hmac
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from audit.actions import Action
from audit.bodies import is_body_whole, is_key_whole
from audit.bodies.commitments import commit_to_body
from audit.models import PLATFORM_CHAIN, AuditBody, AuditEntry
from audit.proof.marks import is_marked, mark_of
from audit.storable import mapping_of

_DIGITS: Final = 32
"""Hexadecimal digits of a commitment that are kept: 128 bits, under a key that no database holds."""
_CLOSED: Final = "-"
"""Behind the commitment to a body that could not be opened: the key to it was lost, too."""


def commitment_to(entry: AuditEntry, body: AuditBody | None, *, is_sealed: bool) -> str:
    """What a declaration keeps of an entry: of what it was sent and got, and of all that it says if no seal covers that."""
    is_closed = body is not None and not is_key_whole(body)
    whole = "" if is_sealed else mark_of(entry)[:_DIGITS]
    return whole + commit_to_body(entry, body)[:_DIGITS] + (_CLOSED if is_closed else "")


def _is_as_kept(kept: str, entry: AuditEntry, body: AuditBody | None, *, is_sealed: bool) -> bool:
    now = commitment_to(entry, body, is_sealed=is_sealed)
    if kept.endswith(_CLOSED):  # the key to it may have been found
        now = now.removesuffix(_CLOSED) + _CLOSED
    return hmac.compare_digest(kept.encode(), now.encode())


@dataclass(frozen=True, slots=True)
class _Part:
    first: int
    entry_id: UUID


class DeclaredLosses:
    """The declarations of one chain that were made under the key of now. Those of others count for nothing."""

    def __init__(self, chain_id: UUID) -> None:
        self._workspace_id = None if chain_id == PLATFORM_CHAIN else chain_id
        self.last = 0
        """The last place of which a declaration says that the key of its entry is lost; 0: of none."""
        self.unsealed: dict[UUID, str] = {}
        """What is kept of entries that waited for their seal when the key was lost."""
        self._parts: list[_Part] = []
        """They do not overlap: what was declared once is not declared again."""
        self._read: tuple[UUID, dict[str, str]] | None = None
        rows = AuditEntry.objects.across_workspaces().filter(
            action=Action.LOG_KEY_LOST.value, workspace_id=self._workspace_id
        )
        for entry in rows.order_by("pk").iterator(chunk_size=50):
            if not is_marked(entry, is_demanded=True):
                continue
            details = mapping_of(entry.details)
            self.last = max(self.last, int(details["until"]))
            self.unsealed |= {
                UUID(name): str(kept) for name, kept in details.get("unsealed", {}).items()
            }
            if places := [int(place) for place in details["contents"]]:
                self._parts.append(_Part(min(places), entry.pk))
        self._parts.sort(key=lambda part: part.first)

    def is_body_as_declared(self, seq: int, entry: AuditEntry, body: AuditBody | None) -> bool:
        """Whether arguments and results are those of which a declaration tells; or fit the key of now."""
        if is_body_whole(entry, body):
            return body is None or is_key_whole(body)
        at = bisect_right(self._parts, seq, key=lambda part: part.first) - 1
        kept = self._contents_of(self._parts[at]).get(str(seq)) if at >= 0 else None
        return kept is not None and _is_as_kept(kept, entry, body, is_sealed=True)

    def is_as_declared(self, entry: AuditEntry) -> bool:
        """Whether an entry without a seal is one of those that a declaration names, as it was."""
        kept = self.unsealed.get(entry.pk)
        if kept is None:
            return False
        body = AuditBody.objects.across_workspaces().filter(pk=entry.pk).first()
        return _is_as_kept(kept, entry, body, is_sealed=False)

    def _contents_of(self, part: _Part) -> dict[str, str]:
        if self._read is None or self._read[0] != part.entry_id:
            entry = AuditEntry.objects.across_workspaces().find(part.entry_id)
            is_ours = entry is not None and is_marked(entry, is_demanded=True)
            details = mapping_of(entry.details) if entry is not None and is_ours else {}
            self._read = part.entry_id, mapping_of(details.get("contents"))
        return self._read[1]
