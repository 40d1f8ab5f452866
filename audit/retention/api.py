"""The log's settings over REST: how long it is kept and what is masked, legal holds, erasure."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from audit import retention
from audit.bodies.masking import DETECTORS, MOST_PATHS
from audit.models import AuditPolicy, LegalHold
from audit.models.policies import MOST_BODY_BYTES
from audit.retention.policies import LONGEST_DAYS, MOST_KEPT_ENTRIES, PolicyChange
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet, one_document
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

_SCOPES = Scopes(read="audit:read", write="workspace:write")
_POLICY = tuple(field.name for field in fields(PolicyChange))


def _days(**options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=1, max_value=LONGEST_DAYS, allow_null=True, required=False, **options
    )


class AuditSettings(serializers.Serializer[Any]):
    """How the log is kept. What becomes too old by a change goes within the hour."""

    keep_days = _days(help_text="null: for ever.")
    keep_entries = serializers.IntegerField(
        min_value=1000,
        max_value=MOST_KEPT_ENTRIES,
        allow_null=True,
        required=False,
        help_text="null: all.",
    )
    keep_bodies_days = _days(help_text="null: as long as their entries.")
    body_bytes = serializers.IntegerField(
        min_value=0,
        max_value=MOST_BODY_BYTES,
        required=False,
        help_text="What is kept of arguments and of a result, at most. 0: only a short preview.",
    )
    masked_paths = serializers.ListField(
        child=serializers.CharField(max_length=1000),
        max_length=MOST_PATHS,
        required=False,
        help_text="JSONPath into arguments and results, such as `$.arguments.customer.ssn`.",
    )
    detectors = serializers.ListField(
        child=serializers.ChoiceField(list(DETECTORS)), required=False
    )


class AuditSettingsViewSet(WorkspaceViewSet):
    """How long the log is kept, and what is masked in it."""

    model = AuditPolicy  # type: ignore[assignment]  # one row for each workspace
    scopes = _SCOPES
    serializer_class = AuditSettings
    pagination_class = None  # one document

    @one_document(
        AuditSettings,
        "audit_settings_retrieve",
        summary="Read the log's settings",
    )
    def list(self, request: Request) -> Response:
        """Give what holds; without a choice the defaults."""
        require(self.actor, Permission.VIEW_AUDIT, workspace_id=self.workspace.pk)
        return Response(AuditSettings(retention.policy_row(self.workspace.pk)).data)

    @extend_schema(
        summary="Change the log's settings", request=AuditSettings, responses={200: AuditSettings}
    )
    def create(self, request: Request) -> Response:
        """Change the settings that the body names; the others stay."""
        require(self.actor, Permission.MANAGE_WORKSPACE, workspace_id=self.workspace.pk)
        values = self.read(AuditSettings)
        row = retention.policy_row(self.workspace.pk)
        now = {name: getattr(row, name) for name in _POLICY}
        changed = retention.change_policy(
            workspace_id=self.workspace.pk,
            change=PolicyChange(**(now | values)),
            actor=self.actor,
        )
        return Response(AuditSettings(changed).data)


class HoldInput(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=500, help_text="Auditors read it.")


class HoldOutput(serializers.ModelSerializer[LegalHold]):
    """While one stands, nothing of the log is removed or erased. `released_at` is null while it stands."""

    class Meta:
        model = LegalHold
        fields: ClassVar[Any] = (
            *("id", "reason", "placed_by", "placed_at", "released_by", "released_at"),
        )


class LegalHoldViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Legal holds, those that were released too."""

    model = LegalHold  # type: ignore[assignment]  # holds values, not a foreign key
    scopes = _SCOPES
    serializer_class = HoldOutput
    orderings = ("-placed_at",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        looks = self.request.method in SAFE_METHODS
        needed = Permission.VIEW_AUDIT if looks else Permission.MANAGE_WORKSPACE
        require(self.actor, needed, workspace_id=self.workspace.pk)
        return LegalHold.objects.for_workspace(self.workspace)

    @extend_schema(summary="Place a legal hold", request=HoldInput, responses={201: HoldOutput})
    def create(self, request: Request) -> Response:
        """Forbid that anything of the log is removed. 409 while one stands."""
        reason = self.read(HoldInput)["reason"]
        hold = retention.place_hold(workspace_id=self.workspace.pk, reason=reason, actor=self.actor)
        return self.answer(hold, status=201)

    @extend_schema(summary="Release a legal hold", request=None, responses=HoldOutput)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: str) -> Response:
        """Allow removal again."""
        hold: LegalHold = self.get_object()
        released = retention.release_hold(
            workspace_id=self.workspace.pk, hold_id=hold.pk, actor=self.actor
        )
        return self.answer(released)


class ErasureInput(serializers.Serializer[Any]):
    email = serializers.EmailField(max_length=254, help_text="A member's, or a former member's.")
    reason = serializers.CharField(max_length=500, help_text="Auditors read it.")
    with_chats = serializers.BooleanField(
        default=False, help_text="True: also chats, files and drafts of somebody who has left."
    )


class ErasureOutput(serializers.Serializer[Any]):
    """In how many entries something was erased. What is left follows in the background."""

    erased = serializers.IntegerField()
    is_done = serializers.BooleanField()
    chats = serializers.IntegerField(
        help_text="Chats that are out of sight, and are erased in the background."
    )
    buds = serializers.IntegerField(help_text="Buds that nobody else could use, erased with them.")


class ErasureViewSet(WorkspaceViewSet):
    """Erases what a person's calls sent and got, and chats of somebody who has left. The entries stay."""

    model = LegalHold  # type: ignore[assignment]  # no rows are shown
    scopes = Scopes(read="workspace:write", write="workspace:write")
    serializer_class = ErasureOutput

    @extend_schema(
        summary="Erase a person's arguments and results",
        request=ErasureInput,
        responses={200: ErasureOutput},
    )
    def create(self, request: Request) -> Response:
        """Erase them for good. 409 while a legal hold stands."""
        require(self.actor, Permission.MANAGE_WORKSPACE, workspace_id=self.workspace.pk)
        values = self.read(ErasureInput)
        person_id = retention.person_of(self.workspace.pk, values["email"])
        done = retention.erase_bodies(
            workspace_id=self.workspace.pk,
            person_id=person_id,
            reason=values["reason"],
            with_chats=values["with_chats"],
            actor=self.actor,
        )
        return Response(ErasureOutput(asdict(done)).data)
