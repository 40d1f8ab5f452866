"""What an owner does with streams: every change is an entry, and no secret is ever shown again."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final
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
from workspaces.delivery.webhooks import new_secret
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.holding import hold, take_room
from workspaces.restore_detection import held_installation
from workspaces.roles import Permission, require, require_person, require_platform_owner
from workspaces.scoping import WorkspaceQuerySet
from workspaces.secrets import put_secret
from workspaces.words.columns import kind_of

MOST_STREAMS = 10
_OF_TLS: Final = ("ca_certificates", "client_certificate", "client_key")


class StreamStart(StrEnum):
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
    *, workspace_id: UUID | None, actor: Actor, kind: str, draft: StreamDraft, start: StreamStart
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
    if workspace_id is None:
        held_installation()
    take_room(
        streams_of(workspace_id),
        most=MOST_STREAMS,
        refusal=Conflict(_("There are at most %(most)s streams.") % {"most": MOST_STREAMS}),
        workspace_id=workspace_id,
    )
    stream = AuditStream(workspace_id=workspace_id, kind=kind)
    secret = new_secret() if kind == AuditStream.Kind.WEBHOOK else ""
    if secret:
        stream.secret = secret
    _fill(stream, draft)
    stream.save()
    StreamState.objects.create(stream=stream)
    if start is StreamStart.NOW:
        _skip_to_now(stream)
    record_created(stream, actor=actor)
    return stream, secret


def update_stream(*, stream: AuditStream, actor: Actor, draft: StreamDraft) -> AuditStream:
    """Change its settings.

    Raises:
        NotFound: somebody has deleted it.
        InvalidInput: as in `create_stream`; also a new host without entering the headers again.
    """
    _require(actor, stream.workspace_id)
    with transaction.atomic():
        hold(stream)
        with tracked_change(stream, actor=actor):
            _fill(stream, draft)
            stream.save()
        _try_soon(stream)
    return stream


def pause_stream(*, stream: AuditStream, actor: Actor, is_paused: bool) -> None:
    """Send nothing for a while, or go on where it stopped."""
    _require(actor, stream.workspace_id)
    with transaction.atomic():
        hold(stream)
        with tracked_change(stream, actor=actor):
            stream.is_paused = is_paused
            stream.save()
        _try_soon(stream)


@transaction.atomic
def start_over(*, stream: AuditStream, actor: Actor, start: StreamStart) -> None:
    """Send everything once more from the beginning, or only what comes from now on."""
    _require(actor, stream.workspace_id)
    hold(stream)
    # Whoever sends just now loses the claim, and with it the right to move the cursor.
    StreamState.objects.filter(stream=stream).update(
        claim=None, claimed_until=None, next_attempt_at=None
    )
    StreamCursor.objects.filter(stream=stream).delete()
    if start is StreamStart.NOW:
        _skip_to_now(stream)
    _tell_start(stream, actor, start)


def renew_secret(*, stream: AuditStream, actor: Actor) -> str:
    """Sign with another secret from now on; it is shown this once."""
    _require(actor, stream.workspace_id)
    if stream.kind != AuditStream.Kind.WEBHOOK:
        raise Conflict(_("Only webhooks have a signing key."))
    secret = new_secret()
    with transaction.atomic():
        hold(stream)
        with tracked_change(stream, actor=actor):
            stream.secret = secret
            stream.save()
    return secret


@transaction.atomic
def delete_stream(*, stream: AuditStream, actor: Actor) -> None:
    """Send nothing more there. The log itself loses nothing."""
    _require(actor, stream.workspace_id)
    hold(stream)
    record_deleted(stream, actor=actor)
    stream.delete()


def try_stream(*, stream: AuditStream, actor: Actor) -> str:
    """Send one event that tells of nothing, and wait; what went wrong, or ""."""
    _require_trial(stream, actor)
    return forwarding.send_test(stream)


def send_soon(*, stream: AuditStream, actor: Actor) -> None:
    """Wait for nothing after a failure, and try again with the next round: somebody has mended the sink."""
    _require_trial(stream, actor)
    _try_soon(stream)


def _require_trial(stream: AuditStream, actor: Actor) -> None:
    """Raise PermissionDenied unless the actor may try the stream as it is. Of the platform's, a token may, too."""
    if stream.workspace_id is not None:
        _require(actor, stream.workspace_id)
    else:
        require_platform_owner(actor)


def _require(actor: Actor, workspace_id: UUID | None) -> None:
    """Raise PermissionDenied unless the actor may say where that log goes. No token says so of all workspaces' log."""
    if workspace_id is not None:
        require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace_id)
        return
    require_platform_owner(actor)
    require_person(actor)


def find_faults(
    kind: str,
    values: Mapping[str, Any],
    *,
    stream: AuditStream | None = None,
    known: Container[str] = (),
) -> dict[str, list[str]]:
    """Say what of some settings cannot be used, by field, so that a form tells all its faults at once.

    Args:
        values: by the names of `StreamDraft`; what is absent stays as the stream has it.
        stream: the one that changes, if it is not a new one.
        known: fields whose faults are known already. What depends on one of them is not looked at.
    """
    faults: dict[str, list[str]] = {}
    headers = values.get("headers")
    if "target" in values:
        try:
            target = parse_target(kind, values["target"])
        except DomainError as error:
            faults["target"] = [error.message]
        else:
            is_elsewhere = stream is not None and _origin(stream.target) != _origin(target)
            if is_elsewhere and stream and stream.headers and headers is None:
                faults["headers"] = [_("Enter the headers again, because the address has changed.")]
    if headers is not None:
        try:
            outbound.check_headers(headers)
        except DomainError as error:
            faults["headers"] = [error.message]
    if not any(name in known for name in _OF_TLS):
        faults |= _find_tls_faults(values, stream)
    return {name: texts for name, texts in faults.items() if name not in known}


def _find_tls_faults(values: Mapping[str, Any], stream: AuditStream | None) -> dict[str, list[str]]:
    stored = stream or AuditStream()
    authorities = values.get("ca_certificates", stored.ca_certificates).strip()
    certificate = values.get("client_certificate", stored.client_certificate).strip()
    key = values.get("client_key")
    if key is None and stored.client_key and certificate:
        key = stored.client_key.reveal("checking a TLS key")
    faults: dict[str, list[str]] = {}
    for name, parts in (
        ("ca_certificates", {"ca_certificates": authorities}),
        ("client_certificate", {"client_certificate": certificate, "client_key": key or ""}),
    ):
        if parts[name]:
            try:
                outbound.tls_context(**parts)
            except DomainError as error:
                faults[name] = [error.message]
    return faults


def _fill(stream: AuditStream, draft: StreamDraft) -> None:
    values = {one.name: getattr(draft, one.name) for one in fields(draft)}
    faults = find_faults(stream.kind, values, stream=stream if stream.target else None)
    if faults:
        raise InvalidInput(fields=faults)
    stream.name = draft.name
    stream.target = parse_target(stream.kind, draft.target)
    if draft.headers is not None:
        put_secret(stream, "headers", draft.headers)
    if draft.client_key is not None:
        put_secret(stream, "client_key", draft.client_key)
    stream.ca_certificates = draft.ca_certificates.strip()
    stream.client_certificate = draft.client_certificate.strip()


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


def _tell_start(stream: AuditStream, actor: Actor, start: StreamStart) -> None:
    configuration_changed.send(
        sender=AuditStream,
        change=ConfigurationChange(
            actor=actor,
            workspace_id=stream.workspace_id,
            verb="changed",
            kind=kind_of(AuditStream),
            object_id=str(stream.pk),
            object_name=stream.name,
            before={},
            after={"sends_from": start.value},
        ),
    )
