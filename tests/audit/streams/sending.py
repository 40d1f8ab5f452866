"""Streams of a workspace, and what is to be sent."""

from __future__ import annotations

from typing import Any

from audit.actions import Action, Outcome
from audit.models import AuditEntry, AuditStream, StreamState
from audit.sealing import sealer
from audit.services import EntryDraft, Ref, record
from audit.streams import services
from audit.streams.services import StreamDraft, StreamStart
from tests.factories import Tenant
from workspaces.actors import Source


def write(tenant: Tenant, *names: str, **fields: Any) -> list[AuditEntry]:
    """Record a finished call of each tool, and seal them."""
    written = [
        record(
            EntryDraft(
                action=Action.TOOL_CALL_FINISHED,
                actor=tenant.actor("member", Source.CHAT),
                workspace_id=tenant.workspace.pk,
                server=Ref(id=None, name="server"),
                tool=Ref(id=None, name=name),
                outcome=Outcome.OK,
                arguments=b'{"word": "canary-argument"}',
                result=b'"canary-result"',
                **fields,
            )
        )
        for name in names
    ]
    sealer.seal_pending()
    return written


def make(
    tenant: Tenant,
    target: str,
    kind: str = "webhook",
    start: StreamStart = StreamStart.NOW,
    **draft: Any,
) -> tuple[AuditStream, str]:
    sealer.seal_pending()
    return services.create_stream(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        kind=kind,
        draft=StreamDraft(name="sink", target=target, **draft),
        start=start,
    )


def state_of(stream: AuditStream) -> StreamState:
    return StreamState.objects.get(stream=stream)


def make_due(stream: AuditStream) -> None:
    StreamState.objects.filter(stream=stream).update(next_attempt_at=None)
