"""The log of the whole installation in numbers over REST, for the platform's owner. Never what was sent or came back."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

import django_filters
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from audit.actions import Action
from audit.health import health
from audit.models import PLATFORM_CHAIN, AuditEntry
from audit.reports.overview import PLATFORM_DAYS, platform_entries, platform_rows
from audit.rollups.reading import TimeRange
from audit.streams.api import PlatformStreamViewSet
from workspaces.api import ListRows, PlatformViewSet, RowFilterSet, one_document
from workspaces.api.filtering import MomentFilter
from workspaces.models import Workspace

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.scoping import WorkspaceQuerySet


class LogNumbersOutput(serializers.Serializer[Any]):
    """Sealed entries of the last days, in whole hours."""

    entries = serializers.IntegerField()
    calls = serializers.IntegerField(help_text="Tool calls that ended.")
    failed = serializers.IntegerField()
    refused = serializers.IntegerField()
    last = serializers.DateTimeField(
        allow_null=True, help_text="The hour of the newest entry. Null: there is none."
    )


_OF_HEALTH: Final = (
    *("pending", "oldest_pending_seconds", "checkpoint_number", "checkpoint_age_seconds"),
    *("verified_at", "verified_result", "is_key_missing"),
)
_NONE: Final = {"entries": 0, "calls": 0, "failed": 0, "refused": 0, "last": None}


class PlatformLogOutput(serializers.Serializer[Any]):
    """How the log is, and the numbers of entries of no workspace."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    pending = serializers.IntegerField(help_text="Entries that wait for their seal.")
    oldest_pending_seconds = serializers.FloatField()
    checkpoint_number = serializers.IntegerField()
    checkpoint_age_seconds = serializers.FloatField(allow_null=True)
    verified_at = serializers.DateTimeField(allow_null=True)
    verified_result = serializers.CharField(
        allow_null=True, help_text="whole, altered, incomplete or unreadable. Null: never verified."
    )
    is_key_missing = serializers.BooleanField(
        help_text="The key that signed the log is not in the settings."
    )
    platform = LogNumbersOutput()


def _span() -> TimeRange:
    now = timezone.now()
    return TimeRange.around(now - timedelta(days=PLATFORM_DAYS), now)


class PlatformLogViewSet(PlatformViewSet):
    """How the log of the installation is."""

    serializer_class = PlatformLogOutput
    pagination_class = None  # one document
    parameters: ClassVar[Any] = {}

    @one_document(
        PlatformLogOutput,
        "platform_audit_retrieve",
        summary="Read how the log is",
    )
    def list(self, request: Request) -> Response:
        """Give its seals, its last verification, and what was entered for no workspace."""
        span, found = _span(), health()
        shown = {
            **{name: getattr(found, name) for name in _OF_HEALTH},
            "since": span.since,
            "until": span.until,
            "platform": platform_rows(span).get(PLATFORM_CHAIN, _NONE),
        }
        return Response(PlatformLogOutput(shown).data)


class WorkspaceLogOutput(serializers.Serializer[Workspace]):
    """A workspace's log in numbers."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    slug = serializers.CharField()
    is_active = serializers.BooleanField()
    numbers = serializers.SerializerMethodField()

    @extend_schema_field(LogNumbersOutput)
    def get_numbers(self, workspace: Workspace) -> Any:
        found = self.context["numbers"].get(workspace.pk, _NONE)
        return LogNumbersOutput(found).data


class WorkspaceLogViewSet(ListRows, PlatformViewSet):
    """The log of each workspace in numbers, of the last seven days."""

    queryset = Workspace.objects.all()
    serializer_class = WorkspaceLogOutput
    orderings: ClassVar[Any] = ("name", "-id")

    def get_serializer_context(self) -> dict[str, Any]:
        """Count once for all rows of the page."""
        is_read = not getattr(self, "swagger_fake_view", False)
        numbers = platform_rows(_span()) if is_read else {}
        return {**super().get_serializer_context(), "numbers": numbers}


class PlatformEntryOutput(serializers.ModelSerializer[AuditEntry]):
    """An entry of no workspace: what happened, who did it, and from where."""

    details = serializers.DictField(read_only=True)

    class Meta:
        model = AuditEntry
        fields = (
            *("id", "created_at", "action", "actor_kind", "actor_id", "actor_label"),
            *("token_id", "source", "ip_address", "request_id", "details"),
        )
        read_only_fields = fields


class PlatformEntryFilters(RowFilterSet):
    action = django_filters.ChoiceFilter(choices=[(one.value, one.value) for one in Action])
    actor = django_filters.UUIDFilter(field_name="actor_id")
    since = MomentFilter(field_name="created_at", lookup_expr="gte")
    until = MomentFilter(field_name="created_at", lookup_expr="lt")


class PlatformEntryViewSet(ListRows, PlatformViewSet):
    """Entries of no workspace, such as sign-ins that failed and changes of shared providers."""

    serializer_class = PlatformEntryOutput
    filterset_class = PlatformEntryFilters
    orderings: ClassVar[Any] = ("-id",)

    def get_queryset(self) -> WorkspaceQuerySet[AuditEntry]:
        return platform_entries()


platform_routes = [
    ("audit", PlatformLogViewSet),
    ("audit-workspaces", WorkspaceLogViewSet),
    ("audit-entries", PlatformEntryViewSet),
    ("audit-streams", PlatformStreamViewSet),
]
