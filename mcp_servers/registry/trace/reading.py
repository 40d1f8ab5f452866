"""Reading the trace: who may see what, which messages, and the one that answers another."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.services import EntryDraft, Ref, record
from mcp_servers.models import McpServer, TraceMessage
from mcp_servers.registry.rights import may_manage
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.roles import Permission, has_permission
from workspaces.secrets import SecretUnreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workspaces.actors import Actor
    from workspaces.scoping import WorkspaceQuerySet

PAGE: Final = 100
MOST_METHODS: Final = 100
DIRECTIONS: Final = ("sent", "received", "event")
LISTS: Final = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """Which messages are wanted; empty fields do not narrow."""

    direction: str = ""
    method: str = ""
    rpc_id: str = ""
    text: str = ""
    call_id: UUID | None = None
    errors_only: bool = False
    with_checks: bool = False
    """Show the regular checks too, which say nothing new."""
    with_lists: bool = False
    """Show how offers were listed, too; lists that failed are always shown."""

    @classmethod
    def read(cls, values: Mapping[str, str]) -> TraceFilter:
        """From a query string.

        Raises:
            InvalidInput: a direction or a call that is none.
        """
        direction = values.get("direction", "")
        if direction and direction not in DIRECTIONS:
            raise InvalidInput(
                fields={
                    "direction": [
                        _("One of %(directions)s.") % {"directions": ", ".join(DIRECTIONS)}
                    ]
                }
            )
        try:
            call_id = UUID(values["call_id"]) if values.get("call_id") else None
        except ValueError as error:
            raise InvalidInput(fields={"call_id": [_("This is not the id of a call.")]}) from error
        return cls(
            direction=direction,
            method=_line(values.get("method", "")),
            rpc_id=_line(values.get("rpc_id", "")),
            text=_line(values.get("text", "")),
            call_id=call_id,
            errors_only=values.get("errors", "") in ("on", "true", "1"),
            with_checks=values.get("checks", "") in ("on", "true", "1"),
            with_lists=values.get("lists", "") in ("on", "true", "1"),
        )

    def as_query(self) -> dict[str, str]:
        """The values that narrow, for addresses."""
        given = {
            "direction": self.direction,
            "method": self.method,
            "rpc_id": self.rpc_id,
            "text": self.text,
            "call_id": str(self.call_id or ""),
            "errors": "on" if self.errors_only else "",
            "checks": "on" if self.with_checks else "",
            "lists": "on" if self.with_lists else "",
        }
        return {name: value for name, value in given.items() if value}


def may_see_trace(actor: Actor, server: McpServer) -> bool:
    """Administrators, auditors, and the owner of somebody's own server; of that one nobody else."""
    if may_manage(actor, server):
        return True
    return server.owner_id is None and has_permission(
        actor, Permission.VIEW_AUDIT_BODIES, workspace_id=server.workspace_id
    )


def messages_of(server: McpServer, *, actor: Actor) -> WorkspaceQuerySet[TraceMessage]:
    """The server's messages, newest first.

    Raises:
        PermissionDenied: the actor may not see them.
    """
    if not may_see_trace(actor, server):
        raise PermissionDenied
    rows: WorkspaceQuerySet[TraceMessage] = (
        TraceMessage.objects.for_workspace(server.workspace_id)
        .filter(server=server)
        .order_by("-pk")
    )
    return rows


def methods_of(server: McpServer) -> list[str]:
    """The methods that occur in the server's trace, for a choice."""
    rows = TraceMessage.objects.for_workspace(server.workspace_id).filter(server=server)
    named = rows.exclude(method="").order_by("method").values_list("method", flat=True)
    return list(named.distinct()[:MOST_METHODS])


def matching(
    rows: WorkspaceQuerySet[TraceMessage], wanted: TraceFilter
) -> WorkspaceQuerySet[TraceMessage]:
    """Those that fit the filter."""
    if not wanted.with_checks:
        rows = rows.filter(is_check=False)
    asks_for_lists = wanted.with_lists or wanted.with_checks
    if not (asks_for_lists or wanted.method or wanted.rpc_id or wanted.text):
        rows = rows.exclude(~Q(kind="error"), method__in=LISTS)
    if wanted.direction:
        rows = rows.filter(direction=wanted.direction)
    if wanted.method:
        rows = rows.filter(method__icontains=wanted.method)
    if wanted.rpc_id:
        rows = rows.filter(rpc_id=wanted.rpc_id)
    if wanted.call_id is not None:
        rows = rows.filter(call_id=wanted.call_id)
    if wanted.errors_only:
        rows = rows.filter(Q(kind="error") | Q(outline__result__isError=True))
    if wanted.text:
        rows = rows.filter(Q(text__icontains=wanted.text) | Q(method__icontains=wanted.text))
    return rows


def partners_of(message: TraceMessage) -> list[TraceMessage]:
    """The request that this message answers, or the answer to it: same connection, same id, and nearest in time.

    Names of connections and ids of requests begin anew with every process, so the nearest is the one.
    """
    if not message.rpc_id or message.kind not in ("request", "response", "error"):
        return []
    rows: WorkspaceQuerySet[TraceMessage] = TraceMessage.objects.for_workspace(
        message.workspace_id
    ).filter(
        server=message.server_id,
        connection=message.connection,
        rpc_id=message.rpc_id,
        method=message.method,
    )
    if message.kind == "request":
        later = rows.filter(pk__gt=message.pk, kind__in=("response", "error"))
        return list(later.order_by("pk")[:1])
    return list(rows.filter(pk__lt=message.pk, kind="request").order_by("-pk")[:1])


def may_open_body(actor: Actor, message: TraceMessage) -> bool:
    """Auditors, and whoever made the call."""
    if message.user_id is not None and message.user_id == actor.user_id:
        return True
    return has_permission(actor, Permission.VIEW_AUDIT_BODIES, workspace_id=message.workspace_id)


def open_body(message: TraceMessage, *, actor: Actor) -> Any:
    """The message itself, redacted since before it was stored; reading somebody else's is an entry of the log.

    Raises:
        PermissionDenied: the actor may not.
        AuditUnavailable: it could not be recorded; then it is not shown.
    """
    if not may_open_body(actor, message):
        raise PermissionDenied(
            _("Only auditors and the person who made the call may read its contents.")
        )
    if not message.body:
        return None
    if message.user_id is None or message.user_id != actor.user_id:
        record(
            EntryDraft(
                action=Action.BODY_OPENED,
                actor=actor,
                workspace_id=message.workspace_id,
                server=Ref(id=message.server_id, name=message.server.name),
                call_id=message.call_id,
                details={"trace_message": str(message.pk), "method": message.method},
            )
        )
    return body_of(message)


def body_of(message: TraceMessage) -> Any:
    """The stored message, for somebody who was found to be allowed; or why it cannot be read, in words."""
    if not message.body:
        return None
    try:
        return json.loads(message.body.reveal("showing a trace message", is_credential=False))
    except SecretUnreadable:
        return _("This cannot be read, because the encryption key that protected it is gone.")


def as_json(message: TraceMessage) -> dict[str, Any]:
    """As an administrator may see it."""
    return {
        "id": str(message.pk),
        "at": message.at.isoformat(),
        "connection": message.connection,
        "principal": message.principal.partition(":")[0],
        "direction": message.direction,
        "kind": message.kind,
        "method": message.method,
        "rpc_id": message.rpc_id,
        "call_id": str(message.call_id) if message.call_id else None,
        "text": message.text,
        "size": message.size,
        "duration_ms": message.duration_ms,
        "outline": message.outline,
    }


def _line(text: str) -> str:
    return text.strip()[:200].replace("\0", "")
