"""How servers are: one look at a time, never through a tool.

A server turns red after several failures in a row, so that one lost packet alarms nobody; a refused sign-in counts at
once, because waiting does not heal it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from audit.actions import Action
from audit.services import EntryDraft, Ref, record
from mcp_servers.client.connections.backoff import delay_seconds
from mcp_servers.client.errors import AuthenticationRequired, ConnectionFailed
from mcp_servers.models import AuthType, HealthCheck, McpServer, ServerState, ServerStatus
from mcp_servers.models.hosting import note_lost_sign_in
from mcp_servers.oauth.grants import uses_own_accounts
from workspaces.actors import Actor, Source
from workspaces.delivery.announcements import SERVER_CHECKED, Announcement, announce
from workspaces.redaction import redact_text

if TYPE_CHECKING:
    from mcp_servers.client.values import ToolCallOutcome

FAILURES_BEFORE_RED: Final = 3
NOBODY_SIGNED_IN: Final = "Nobody has signed in to it yet."
KEPT_DAYS: Final = 7
_TRIM_BATCH: Final = 5000
_JITTER: Final = 0.1
CLAIM_SECONDS: Final = 120
"""How long a check that was handed out may stay unfinished before another one is."""
START_SECONDS: Final = 40
"""How long it may wait for a worker; a look takes at most the rest of the time, so that no two overlap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListsRead:
    """When a server's lists were read, and until when they hold by its own word."""

    at: datetime
    stale_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReading:
    """What one look at a server showed."""

    error: ConnectionFailed | None = None
    latency_ms: int | None = None
    details: str = ""
    """What a program wrote to its error stream, for the administrator."""
    waits_for_sign_in: bool = False
    """It answered, and nobody's account is connected to it."""
    lists: ListsRead | None = None
    """Where they were read in full."""

    @property
    def is_ok(self) -> bool:
        """The server answered."""
        return self.error is None


def due_servers() -> list[tuple[UUID, UUID]]:
    """Workspace and id of every active server whose check is due, in every workspace."""
    rows = (
        ServerState.objects.across_workspaces()
        .filter(server__is_active=True, workspace__is_active=True)
        .filter(_is_due(timezone.now()))
        .order_by("next_check_at")
    )
    return list(rows.values_list("workspace_id", "pk"))


def claim(workspace_id: UUID, server_id: UUID) -> bool:
    """Take a server's next check, to hand it out; False if somebody else has it, or the server is off."""
    now = timezone.now()
    active = McpServer.objects.for_workspace(workspace_id).filter(pk=server_id, is_active=True)
    claimed = (
        ServerState.objects.for_workspace(workspace_id)
        .filter(server__in=active)
        .filter(_is_due(now))
        .update(next_check_at=now + timedelta(seconds=CLAIM_SECONDS), lists_stale_at=None)
    )
    return claimed == 1


def hand_out_check(workspace_id: UUID, server_id: UUID) -> None:
    """Queue one check, unless one is queued or under way; however slow the workers are, checks do not pile up."""
    if claim(workspace_id, server_id):
        from celery import current_app

        ids = (str(workspace_id), str(server_id))
        current_app.send_task("mcp_servers.registry.tasks.check_server", ids, expires=START_SECONDS)


def _is_due(now: datetime) -> Q:
    """Its time has come, or its own word on how long its lists hold has run out."""
    return Q(next_check_at__isnull=True) | Q(next_check_at__lte=now) | Q(lists_stale_at__lte=now)


@transaction.atomic
def note_reading(
    server: McpServer,
    reading: HealthReading,
    *,
    actor: Actor | None = None,
    is_asked_for: bool = False,
) -> None:
    """Keep a reading: the check's row, the server's state, the entry and the news if the status changed.

    The server's own row is neither written nor locked: a check never holds up whoever edits it.

    A look that nobody asked for does not bring back what was disconnected, switched off or moved while it went on, nor
    the refusal of a key that was replaced meanwhile.

    Args:
        server: as it was when the look began.
        is_asked_for: a person asked for this look and sees what came out, so a failure counts at once.
    """
    began = server.state.status
    if isinstance(reading.error, AuthenticationRequired):
        note_lost_sign_in(server)  # first: its provider then tells what it means for the server
    states = ServerState.objects.for_workspace(server.workspace_id).select_related("server")
    state = states.select_for_update(of=("self",)).fetch(server.pk)
    server = state.server
    before = state.status
    now = timezone.now()
    HealthCheck.objects.create(
        workspace_id=server.workspace_id,
        server=server,
        checked_at=now,
        is_ok=reading.is_ok or _was_a_knock(server, reading),
        latency_ms=reading.latency_ms,
        error=_reason(server, reading),
    )
    is_changed = before != began and before in (ServerStatus.DISCONNECTED, ServerStatus.CONNECTING)
    if is_changed and not is_asked_for:
        return
    found: dict[str, object] = {"last_checked_at": now}
    if reading.lists is not None:
        found |= {"tools_listed_at": reading.lists.at, "lists_stale_at": reading.lists.stale_at}
    failures = 0
    if reading.error is None:
        waits = reading.waits_for_sign_in
        found["status"] = ServerStatus.AUTH_REQUIRED if waits else ServerStatus.CONNECTED
        found["status_reason"] = NOBODY_SIGNED_IN if waits else ""
        found |= {"last_connected_at": now, "latency_ms": reading.latency_ms}
    else:
        failures = state.consecutive_failures + 1
        if isinstance(reading.error, AuthenticationRequired):
            found["status"] = ServerStatus.AUTH_REQUIRED
            found["status_reason"] = _reason(server, reading)
        elif is_asked_for or failures >= FAILURES_BEFORE_RED or before != ServerStatus.CONNECTED:
            found["status"] = ServerStatus.ERROR
            found["status_reason"] = _reason(server, reading)
    pause = timedelta(seconds=_pause(failures))
    state.write(**found, consecutive_failures=failures, next_check_at=now + pause)
    has_changed = state.status != before
    if has_changed:
        _tell(server, actor)
    announce(
        server.workspace_id,
        Announcement(
            kind="server.changed" if has_changed else SERVER_CHECKED,
            id=str(server.pk),
            user_id=str(server.owner_id) if server.owner_id else None,
        ),
    )


def note_call(server: McpServer, outcome: ToolCallOutcome) -> None:
    """Learn from a call what a check would find out later: that a sign-in is missing, or that a server is back.

    Args:
        server: read only; several calls may share it.
    """
    kind = outcome.details.get("kind")
    if kind == "asks_back" and not server.state.server_info.get("asks_back"):
        _note_asking_back(server)
    elif (
        kind == "auth_required"
        and server.state.status != ServerStatus.AUTH_REQUIRED
        # One person's missing sign-in says nothing about the others'.
        and not uses_own_accounts(server)
    ):
        reason = outcome.message.removeprefix(f"{server.name}: ")  # it stands beside the name
        note_reading(server, HealthReading(error=AuthenticationRequired(reason)))
    elif kind in ("unreachable", "broken") and server.state.status == ServerStatus.CONNECTED:
        # Looked at soon instead of judged by one call.
        ask_for_check(server)


@transaction.atomic
def _note_asking_back(server: McpServer) -> None:
    """Shown to administrators as a suggestion; only they choose the protocol."""
    states = ServerState.objects.for_workspace(server.workspace_id)
    state = states.select_for_update().filter(pk=server.pk).first()
    if state is not None and not state.server_info.get("asks_back"):
        state.write(server_info={**state.server_info, "asks_back": True})


def ask_for_check(server: McpServer) -> None:
    """Make the server's next check due now."""
    states = ServerState.objects.for_workspace(server.workspace_id).filter(pk=server.pk)
    states.update(next_check_at=timezone.now())


def trim() -> int:
    """Delete old checks in batches; how many went."""
    limit = timezone.now() - timedelta(days=KEPT_DAYS)
    removed = 0
    while True:
        old = (
            HealthCheck.objects.across_workspaces()
            .filter(checked_at__lt=limit)
            .values_list("pk", flat=True)
        )
        batch = list(old[:_TRIM_BATCH])
        if not batch:
            return removed
        removed += HealthCheck.objects.across_workspaces().filter(pk__in=batch).delete()[0]


def _pause(failures: int) -> float:
    """Seconds to the next look: sooner after the first failures, and never all servers at the same moment."""
    usual = float(settings.TRELLIS.health_check_seconds)
    if 0 < failures < FAILURES_BEFORE_RED:
        usual = min(usual, delay_seconds(failures) * 5)
    return usual * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  spreads load, keeps no secret


def _was_a_knock(server: McpServer, reading: HealthReading) -> bool:
    """Whether it answered, and only wanted an account: that of a person, or one that nobody has entered yet."""
    is_refused = isinstance(reading.error, AuthenticationRequired)
    return is_refused and server.auth_type in (AuthType.OAUTH, AuthType.NONE)


def _reason(server: McpServer, reading: HealthReading) -> str:
    if reading.error is None:
        return ""
    reason = reading.error.message
    if reading.details:
        reason += f"\n{redact_text(reading.details, workspace_id=server.workspace_id)[-2000:]}"
    return reason


def _tell(server: McpServer, actor: Actor | None) -> None:
    action = {
        ServerStatus.CONNECTED.value: Action.SERVER_CONNECTED,
        ServerStatus.DISCONNECTED.value: Action.SERVER_DISCONNECTED,
    }.get(server.state.status, Action.SERVER_ERROR)
    record(
        EntryDraft(
            action=action,
            actor=actor
            or Actor.system(label="health", source=Source.TASK, workspace_id=server.workspace_id),
            workspace_id=server.workspace_id,
            server=Ref(id=server.pk, name=server.name),
            transport=server.known_transport,
            protocol_revision=server.state.protocol_revision,
            details={"status": server.state.status, "reason": server.state.status_reason},
        )
    )
