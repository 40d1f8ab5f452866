"""Audit streams over REST. Secrets go in and never come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from audit.models import AuditStream
from audit.streams.reading import lag_of
from audit.streams.services import (
    StreamDraft,
    StreamStart,
    create_stream,
    delete_stream,
    find_faults,
    pause_stream,
    renew_secret,
    send_soon,
    start_over,
    streams_of,
    try_stream,
    update_stream,
)
from workspaces.api import (
    ApiViewSet,
    ListRows,
    PlatformViewSet,
    RetrieveRow,
    Scopes,
    WorkspaceViewSet,
)
from workspaces.errors import InvalidInput
from workspaces.holding import hold
from workspaces.roles import Permission, require, require_platform_owner
from workspaces.scoping import WorkspaceQuerySet

_KINDS = AuditStream.Kind.values
_STARTS = [one.value for one in StreamStart]
_ONLY_OF_SYSLOG = ("ca_certificates", "client_certificate", "client_key")


class StreamChanges(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    target = serializers.CharField(max_length=2048, help_text="A URL; for syslog host:port.")
    headers = serializers.DictField(
        child=serializers.CharField(max_length=8192, allow_blank=True),
        required=False,
        write_only=True,
        help_text="Replaces all stored headers; {} removes them. Not for syslog.",
    )
    ca_certificates = serializers.CharField(
        max_length=64_000, required=False, allow_blank=True, help_text="PEM. Only for syslog."
    )
    client_certificate = serializers.CharField(
        max_length=64_000, required=False, allow_blank=True, help_text="PEM. Only for syslog."
    )
    client_key = serializers.CharField(
        max_length=16_000,
        required=False,
        allow_blank=True,
        write_only=True,
        help_text="PEM. An empty text removes it. Only for syslog.",
    )
    is_paused = serializers.BooleanField(required=False)


class StreamInput(StreamChanges):
    kind = serializers.ChoiceField(_KINDS)
    start = serializers.ChoiceField(_STARTS, required=False, default=StreamStart.NOW.value)


class StreamRestart(serializers.Serializer[Any]):
    start = serializers.ChoiceField(_STARTS)


class StreamOutput(serializers.ModelSerializer[AuditStream]):
    """Where the log is sent, and how that goes. Headers, keys and the signing secret are not shown."""

    kind = serializers.ChoiceField(_KINDS)
    has_headers = serializers.SerializerMethodField()
    has_client_key = serializers.SerializerMethodField()
    failures = serializers.IntegerField(source="state.failures", help_text="In a row.")
    last_error = serializers.CharField(source="state.last_error", allow_blank=True)
    failing_since = serializers.DateTimeField(
        source="state.failing_since",
        allow_null=True,
        help_text="The first of the failures in a row. Null: it does not fail.",
    )
    last_failed_at = serializers.DateTimeField(
        source="state.last_failed_at", allow_null=True, help_text="Also once it sends again."
    )
    next_attempt_at = serializers.DateTimeField(
        source="state.next_attempt_at",
        allow_null=True,
        help_text="After a failure, not before then. Null: nothing holds it up.",
    )
    last_sent_at = serializers.DateTimeField(source="state.last_sent_at", allow_null=True)
    sent = serializers.IntegerField(source="state.sent")
    refused = serializers.IntegerField(source="state.refused")
    waiting = serializers.SerializerMethodField(help_text="Sealed entries not sent yet.")

    class Meta:
        model = AuditStream
        fields: ClassVar[Any] = (
            *("id", "name", "kind", "target", "has_headers", "has_client_key"),
            *("ca_certificates", "client_certificate", "is_paused", "waiting"),
            *("failures", "last_error", "failing_since", "last_failed_at"),
            *("next_attempt_at", "last_sent_at"),
            *("sent", "refused", "created_at"),
        )

    def get_has_headers(self, stream: AuditStream) -> bool:
        return bool(stream.headers)

    def get_has_client_key(self, stream: AuditStream) -> bool:
        return bool(stream.client_key)

    def get_waiting(self, stream: AuditStream) -> int:
        return lag_of(stream).entries


class StreamSecretOutput(serializers.Serializer[Any]):
    """The stream, and a webhook's signing secret where it is new: shown this once."""

    stream = StreamOutput()
    secret = serializers.CharField(allow_null=True)


class StreamTrialOutput(serializers.Serializer[Any]):
    """Whether the target took a test entry, and else why not."""

    took_it = serializers.BooleanField()
    fault = serializers.CharField(allow_blank=True)


class StreamViewSet(ListRows, RetrieveRow, ApiViewSet, ABC):
    """What streams of a workspace and those of the platform have alike. A subclass says whose they are, and who may."""

    serializer_class = StreamOutput

    @abstractmethod
    def of_workspace(self) -> UUID | None:
        """Whose streams these are; None: the platform's."""

    @abstractmethod
    def require_management(self) -> None:
        """Raise PermissionDenied unless the caller may say where this log goes."""

    @extend_schema(
        summary="Add an audit stream", request=StreamInput, responses={201: StreamSecretOutput}
    )
    def create(self, request: Request) -> Response:
        """Send the log there from now on, or from its beginning."""
        self.require_management()
        values = self._read_settings(StreamInput)
        kind, start = values.pop("kind"), StreamStart(values.pop("start"))
        is_paused = values.pop("is_paused", False)
        with transaction.atomic():
            stream, secret = create_stream(
                workspace_id=self.of_workspace(),
                actor=self.actor,
                kind=kind,
                draft=StreamDraft(**values),
                start=start,
            )
            if is_paused:
                pause_stream(stream=stream, actor=self.actor, is_paused=True)
        return self._with_secret(stream, secret, status=201)

    @extend_schema(summary="Change an audit stream", request=StreamChanges, responses=StreamOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change it, pause it, or let it go on. What is absent stays, secrets too."""
        stream: AuditStream = self.get_object()
        with transaction.atomic():
            hold(stream)
            values = self._read_settings(StreamChanges, stream)
            is_paused = values.pop("is_paused", None)
            if values:
                now = ("name", "target", "ca_certificates", "client_certificate")
                draft = StreamDraft(**({name: getattr(stream, name) for name in now} | values))
                update_stream(stream=stream, actor=self.actor, draft=draft)
            if is_paused is not None:
                pause_stream(stream=stream, actor=self.actor, is_paused=is_paused)
        return self.answer(stream)

    @extend_schema(summary="Delete an audit stream", responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Send nothing more there. The log itself loses nothing."""
        delete_stream(stream=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(
        summary="Send a test entry to an audit stream", request=None, responses=StreamTrialOutput
    )
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Send one event that tells of nothing, and wait for the answer."""
        fault = try_stream(stream=self.get_object(), actor=self.actor)
        return Response(StreamTrialOutput({"took_it": not fault, "fault": fault}).data)

    @extend_schema(
        summary="Have an audit stream try again now", request=None, responses=StreamOutput
    )
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        """Wait no longer after a failure: the next round, within seconds, sends what waits."""
        send_soon(stream=self.get_object(), actor=self.actor)
        return self.answer(self.get_object())

    @extend_schema(
        summary="Start an audit stream over", request=StreamRestart, responses=StreamOutput
    )
    @action(detail=True, methods=["post"])
    def restart(self, request: Request, pk: str) -> Response:
        """Send everything once more, or only what comes from now on."""
        start = StreamStart(self.read(StreamRestart)["start"])
        start_over(stream=self.get_object(), actor=self.actor, start=start)
        return self.answer(self.get_object())

    @extend_schema(
        summary="Renew a webhook's signing secret", request=None, responses=StreamSecretOutput
    )
    @action(detail=True, methods=["post"], url_path="renew-secret")
    def renew_secret(self, request: Request, pk: str) -> Response:
        """Sign with another secret from now on; the answer shows it, this once."""
        stream: AuditStream = self.get_object()
        return self._with_secret(stream, renew_secret(stream=stream, actor=self.actor))

    def _read_settings(
        self, serializer_class: type[StreamChanges], stream: AuditStream | None = None
    ) -> dict[str, Any]:
        """Give the validated body.

        Raises:
            ValidationError: a field is not written as it should be; it names what cannot be used as well.
            InvalidInput: all is well written, and something cannot be used.
        """
        body = self.request.data
        context = self.get_serializer_context()
        read = serializer_class(data=body, partial=stream is not None, context=context)
        if not read.is_valid():
            if not isinstance(body, Mapping):
                raise serializers.ValidationError(read.errors)
            written = {name: value for name, value in body.items() if name not in read.errors}
            sound = serializer_class(data=written, partial=True, context=context)
            sound.is_valid(raise_exception=True)
            values = dict(sound.validated_data)
        else:
            values = dict(read.validated_data)
        faults: dict[str, Any] = {}
        if kind := stream.kind if stream else values.get("kind"):
            unused = _find_unused(kind, values)
            used = {name: value for name, value in values.items() if name not in unused}
            known = {*unused, *read.errors}
            faults = unused | find_faults(kind, used, stream=stream, known=known)
        if read.errors:
            raise serializers.ValidationError(faults | read.errors)
        if faults:
            raise InvalidInput(fields=faults)
        return values

    def _with_secret(self, stream: AuditStream, secret: str, status: int = 200) -> Response:
        shown = {"stream": stream, "secret": secret or None}
        return Response(StreamSecretOutput(shown).data, status=status)


class AuditStreamViewSet(StreamViewSet, WorkspaceViewSet):
    """Where the workspace's log is sent."""

    model = AuditStream  # type: ignore[assignment]  # the platform has streams of its own
    scopes = Scopes(read="audit:read", write="workspace:write")

    def of_workspace(self) -> UUID | None:
        return self.workspace.pk

    def require_management(self) -> None:
        require(self.actor, Permission.MANAGE_WORKSPACE, workspace_id=self.workspace.pk)

    def rows(self) -> WorkspaceQuerySet[Any]:
        if self.request.method in SAFE_METHODS:
            require(self.actor, Permission.VIEW_AUDIT, workspace_id=self.workspace.pk)
        else:
            self.require_management()
        return streams_of(self.workspace.pk).select_related("state")


class PlatformStreamViewSet(StreamViewSet, PlatformViewSet):
    """Where the log of the whole installation is sent. A token only sees it, tries it now and sends test entries."""

    needs_person: ClassVar[Any] = frozenset(
        {"create", "partial_update", "destroy", "restart", "renew_secret"}
    )

    def of_workspace(self) -> UUID | None:
        return None

    def require_management(self) -> None:
        require_platform_owner(self.actor)

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        return streams_of(None).select_related("state")


def _find_unused(kind: str, values: dict[str, Any]) -> dict[str, list[str]]:
    """Refuse what a kind of stream does not use, instead of dropping it silently. Empty, it comes as it was shown."""
    unused = ("headers",) if kind == AuditStream.Kind.SYSLOG else _ONLY_OF_SYSLOG
    return {
        name: [_("This kind of stream does not use it.")] for name in unused if values.get(name)
    }
