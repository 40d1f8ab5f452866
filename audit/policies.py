"""A workspace's settings of its log, as values; read often, so kept for some seconds in each process."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from audit.bodies.masking import DETECTORS, MaskedPath, Masking, read_masked_path
from audit.models import AuditPolicy
from audit.models.policies import DEFAULT_BODY_BYTES
from workspaces.errors import InvalidInput

logger = logging.getLogger(__name__)

KEEP_SECONDS: Final = 5.0
"""After a change other processes mask by the old settings for at most this long."""
_MOST_KEPT: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPolicy:
    """How a workspace wants its log written."""

    body_bytes: int = DEFAULT_BODY_BYTES
    paths: tuple[MaskedPath, ...] = ()
    detectors: tuple[str, ...] = ()

    def masking_for(self, server: str, tool: str, *, workspace_id: UUID | None) -> Masking:
        """The rules that hold for one tool."""
        paths = tuple(path for path in self.paths if path.fits(server, tool))
        return Masking(workspace_id=workspace_id, paths=paths, detectors=self.detectors)


DEFAULT: Final = RecordingPolicy()
_kept: dict[UUID, tuple[float, RecordingPolicy]] = {}
_lock = threading.Lock()


def policy_of(workspace_id: UUID | None) -> RecordingPolicy:
    """The settings of a workspace, at most KEEP_SECONDS old.

    Raises:
        DatabaseError: they cannot be read, and nothing is kept.
    """
    if workspace_id is None:
        return DEFAULT
    now = time.monotonic()
    with _lock:
        kept = _kept.get(workspace_id)
    if kept is not None and now - kept[0] < KEEP_SECONDS:
        return kept[1]
    row = AuditPolicy.objects.for_workspace(workspace_id).first()
    policy = _read(row) if row is not None else DEFAULT
    with _lock:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[workspace_id] = (now, policy)
    return policy


def last_policy_of(workspace_id: UUID | None) -> RecordingPolicy | None:
    """The settings last seen, however old: for when the database is away."""
    if workspace_id is None:
        return DEFAULT
    with _lock:
        kept = _kept.get(workspace_id)
    return kept[1] if kept is not None else None


def forget_policy(workspace_id: UUID) -> None:
    """Read it anew at the next entry."""
    with _lock:
        _kept.pop(workspace_id, None)


def _read(row: AuditPolicy) -> RecordingPolicy:
    return RecordingPolicy(
        body_bytes=row.body_bytes,
        paths=tuple(_read_path(str(line)) for line in row.masked_paths),
        detectors=tuple(name for name in row.detectors if name in DETECTORS),
    )


def _read_path(line: str) -> MaskedPath:
    """A rule that was written past the services and cannot be read masks everything: calls go on, and nothing shows."""
    try:
        return read_masked_path(line)
    except InvalidInput:
        logger.error("audit_masked_path_unreadable")
        return read_masked_path("$.*")
