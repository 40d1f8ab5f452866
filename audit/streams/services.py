"""What an owner does with streams: every change is an entry, and no secret is ever shown again."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from audit.models import AuditStream, StreamCursor, StreamState
from audit.streams import forwarding
from audit.streams.building import parse_target
from audit.streams.reading import current_heads
from workspaces import outbound
from workspaces.actors import Actor
from workspaces.changes import (
    ConfigurationChange,
    configuration_changed,
    record_created,
    record_deleted,
    tracked_change,
)
from workspaces.database import database_now
from workspaces.errors import Conflict, DomainError, InvalidInput, PermissionDenied
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet
from workspaces.webhooks import new_secret

MOST_STREAMS = 10


class Start(StrEnum):
    """From where a stream sends."""

    NOW = "now"
    BEGINNING = "beginning"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDraft:
    """Settings of a stream; None leaves a secret as it is, an empty one removes it."""

    name: str
    target: str
    headers: dict[str, str] | None = None
    ca_certificates: str = ""
    client_certificate: str = ""
    client_key: str | None = field(default=None, repr=False)


def streams_of(workspace_id: UUID | None) -> WorkspaceQuerySet[AuditStream]:
    """A workspace's streams, or with None those of the whole platform."""
    if workspace_id is None:
        return AuditStream.objects.across_workspaces().filter(workspace=None)
    return AuditStream.objects.for_workspace(workspace_id)


@transaction.atomic
def create_stream(
    *, workspace_id: UUID | None, actor: Actor, kind: str, draft: StreamDraft, start: Start
) -> tuple[AuditStream, str]:
    """Begin to send the log to a sink.

    Returns:
        The row, and for a webhook its signing secret, which is shown this once.

    Raises:
        InvalidInput: a target, header or certificate that cannot be used.
        Conflict: there are too many already.
    """
    _require(actor, workspace_id)
    if kind not in AuditStream.Kind.values:
        raise InvalidInput(fields={"kind": [_("There is no such kind of stream.")]})
    if streams_of(workspace_id).count() >= MOST_STREAMS:
        raise Conflict(_("There are at most %(most)s streams.") % {"most": MOST_STREAMS})
    stream = AuditStream(workspace_id=workspace_id, kind=kind)
    secret = new_secret() if kind == AuditStream.Kind.WEBHOOK else ""
    if secret:
        stream.secret = secret
    _fill(stream, draft)
    stream.save()
    StreamState.objects.create(stream=stream)
    if start is Start.NOW:
        _skip_to_now(stream)
    record_created(stream, actor=actor)
    return stream, secret


def update_stream(*, stream: AuditStream, actor: Actor, draft: StreamDraft) -> AuditStream:
    """Change its settings.

    Raises:
        InvalidInput: as in `create_stream`; also a new host without entering the headers again.
    """
    _require(actor, stream.workspace_id)
    with tracked_change(stream, actor=actor):
        _fill(stream, draft)
        stream.save()
        _try_soon(stream)
    return stream


def pause_stream(*, stream: AuditStream, actor: Actor, is_paused: bool) -> None:
    """Send nothing for a while, or go on where it stopped."""
    _require(actor, stream.workspace_id)
    with tracked_change(stream, actor=actor):
        stream.is_paused = is_paused
        stream.save()
        _try_soon(stream)


@transaction.atomic
def start_over(*, stream: AuditStream, actor: Actor, start: Start) -> None:
    """Send everything once more from the beginning, or only what comes from now on."""
    _require(actor, stream.workspace_id)
    # Whoever sends just now loses the claim, and with it the right to move the cursor.
    StreamState.objects.filter(stream=stream).update(
        claim=None, claimed_until=None, next_attempt_at=None
    )
    StreamCursor.objects.filter(stream=stream).delete()
    if start is Start.NOW:
        _skip_to_now(stream)
    _tell_start(stream, actor, start)


def renew_secret(*, stream: AuditStream, actor: Actor) -> str:
    """Sign with another secret from now on; it is shown this once."""
    _require(actor, stream.workspace_id)
    if stream.kind != AuditStream.Kind.WEBHOOK:
        raise Conflict(_("Only webhooks have a signing key."))
    secret = new_secret()
    with tracked_change(stream, actor=actor):
        stream.secret = secret
        stream.save()
    return secret


@transaction.atomic
def delete_stream(*, stream: AuditStream, actor: Actor) -> None:
    """Send nothing more there. The log itself loses nothing."""
    _require(actor, stream.workspace_id)
    record_deleted(stream, actor=actor)
    stream.delete()


def try_stream(*, stream: AuditStream, actor: Actor) -> str:
    """Send one event that tells of nothing, and wait; what went wrong, or ""."""
    _require(actor, stream.workspace_id)
    return forwarding.send_test(stream)


def _require(actor: Actor, workspace_id: UUID | None) -> None:
    if workspace_id is not None:
        require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace_id)
    elif not actor.is_superuser:
        raise PermissionDenied


def _fill(stream: AuditStream, draft: StreamDraft) -> None:
    faults: dict[str, list[str]] = {}
    old = stream.target
    stream.name = draft.name
    try:
        stream.target = parse_target(stream.kind, draft.target)
    except DomainError as error:
        faults["target"] = [error.message]
    is_elsewhere = bool(old) and _origin(old) != _origin(stream.target)
    if is_elsewhere and stream.headers and draft.headers is None:
        faults["headers"] = [_("Enter the headers again, because the address has changed.")]
    if draft.headers is not None:
        try:
            outbound.check_headers(draft.headers)
        except DomainError as error:
            faults["headers"] = [error.message]
        stream.headers = draft.headers or None
    if draft.client_key is not None:
        stream.client_key = draft.client_key or None
    stream.ca_certificates = draft.ca_certificates.strip()
    stream.client_certificate = draft.client_certificate.strip()
    if stream.ca_certificates or stream.client_certificate:
        try:
            outbound.tls_context(
                ca_certificates=stream.ca_certificates,
                client_certificate=stream.client_certificate,
                client_key=stream.client_key.reveal("checking a TLS key")
                if stream.client_key
                else "",
            )
        except DomainError as error:
            faults["client_certificate" if "Client" in error.message else "ca_certificates"] = [
                error.message
            ]
    if faults:
        raise InvalidInput(fields=faults)


def _origin(target: str) -> str:
    """Scheme, host and port of a URL; of host:port, all of it."""
    scheme, found, rest = target.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if found else target


def _skip_to_now(stream: AuditStream) -> None:
    StreamCursor.objects.bulk_create(
        StreamCursor(stream=stream, chain_id=chain, seq=seq)
        for chain, seq in current_heads(stream).items()
    )


def _try_soon(stream: AuditStream) -> None:
    StreamState.objects.filter(stream=stream).update(next_attempt_at=database_now())


def _tell_start(stream: AuditStream, actor: Actor, start: Start) -> None:
    configuration_changed.send(
        sender=AuditStream,
        change=ConfigurationChange(
            actor=actor,
            workspace_id=stream.workspace_id,
            verb="changed",
            kind=str(stream._meta.verbose_name),
            object_id=str(stream.pk),
            object_name=stream.name,
            before={},
            after={"sends_from": start.value},
        ),
    )
