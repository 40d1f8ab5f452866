"""A call with all its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.response import Response

from audit import reports
from audit.actions import Outcome, RefusedBy
from audit.api.entries import EntryOutput
from audit.models import AuditEntry
from audit.reports import CallState
from audit.views import bodies_for, record_opened
from workspaces.api import Scopes, WorkspaceViewSet

if TYPE_CHECKING:
    from rest_framework.request import Request


class CallOutput(serializers.Serializer[Any]):
    """A call with all its entries. Bodies are null for those who may not read them."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField([one.value for one in CallState])
    outcome = serializers.ChoiceField([one.value for one in Outcome], allow_blank=True)
    refused_by = serializers.ChoiceField([one.value for one in RefusedBy], allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    duration_ms = serializers.IntegerField(allow_null=True)
    arguments = serializers.CharField(allow_null=True)
    result = serializers.CharField(allow_null=True)
    entries = EntryOutput(many=True)


@extend_schema_view(
    retrieve=extend_schema(
        summary="Read one call with its entries", tags=["audit"], responses=CallOutput
    )
)
class CallViewSet(WorkspaceViewSet):
    """Calls as the log knows them. Auditors see bodies; opening them is itself recorded."""

    model = AuditEntry  # type: ignore[assignment]  # holds values, not a foreign key
    scopes = Scopes(read="audit:read", write="audit:read")
    serializer_class = CallOutput

    def retrieve(self, request: Request, pk: UUID) -> Response:
        """Give one call from its request to its end."""
        row = reports.call_of(self.workspace.pk, pk, actor=self.actor, now=timezone.now())
        sent, received, _ = bodies_for(row, self.actor)
        if (sent or received) and row.about.actor_id != self.actor.user_id:
            record_opened(row.about, self._http_request)
        end = row.end
        shown = {
            "id": pk,
            "state": row.state,
            "outcome": end.outcome if end else "",
            "refused_by": end.refused_by if end else "",
            "reason": row.reason,
            "duration_ms": row.duration_ms,
            "arguments": sent.text if sent else None,
            "result": received.text if received else None,
            "entries": row.entries,
        }
        return Response(CallOutput(shown).data)
