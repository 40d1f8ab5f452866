"""Saved views, schedules and sign-offs over REST."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, cast

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit.exports.report_files import SCHEDULED
from audit.models import ReportSchedule, SavedView, SignOff
from audit.reviews.previews import preview_schedule
from audit.reviews.saved_views import change_view, delete_view, save_view, views_for
from audit.reviews.scheduled_exports import send_now
from audit.reviews.schedules import (
    ScheduleDraft,
    create_schedule,
    delete_schedule,
    draft_of,
    pause_schedule,
    update_schedule,
)
from audit.reviews.signing import LONGEST_NOTE, sign_off
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet
from workspaces.view_names import LONGEST_NAME, LONGEST_QUERY

_SCOPES = Scopes(read="audit:read", write="audit:write")
_QUERY = "Filters, as people type them or as the page's address has them."
_PAGES = SavedView.Page.values
_CADENCES = ReportSchedule.Cadence.values
_DELIVERIES = ReportSchedule.Delivery.values


class ViewChanges(serializers.Serializer[Any]):
    query = serializers.CharField(max_length=LONGEST_QUERY, allow_blank=True, help_text=_QUERY)


class ViewInput(ViewChanges):
    name = serializers.CharField(max_length=LONGEST_NAME)
    page = serializers.ChoiceField(_PAGES)
    is_shared = serializers.BooleanField(
        required=False, default=False, help_text="With everybody who sees the log."
    )


class ViewOutput(serializers.ModelSerializer[SavedView]):
    """Filters under a name."""

    page = serializers.ChoiceField(_PAGES)
    owner = serializers.EmailField(source="owner.email")

    class Meta:
        model = SavedView
        fields: ClassVar[Any] = ("id", "name", "page", "query", "is_shared", "owner", "created_at")


class SavedViewViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The caller's saved views, and those that are shared."""

    model = SavedView
    scopes = _SCOPES
    serializer_class = ViewOutput

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        return views_for(self.actor, self.workspace.pk)

    @extend_schema(request=ViewInput, responses={201: ViewOutput})
    def create(self, request: Request) -> Response:
        """Keep filters under a name."""
        values = self.read(ViewInput)
        view = save_view(workspace_id=self.workspace.pk, actor=self.actor, **values)
        return self.answer(view, status=201)

    @extend_schema(request=ViewChanges, responses=ViewOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Keep other filters under the same name. Only the person who made it may."""
        view: SavedView = self.get_object()
        query = self.read(ViewChanges, partial=True).get("query", view.query)
        return self.answer(change_view(view=view, actor=self.actor, query=query))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete one of your own."""
        view: SavedView = self.get_object()
        delete_view(workspace_id=self.workspace.pk, actor=self.actor, view_id=view.pk)
        return Response(status=204)


class ScheduleInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=80)
    query = serializers.CharField(
        max_length=LONGEST_QUERY, allow_blank=True, required=False, default="", help_text=_QUERY
    )
    format = serializers.ChoiceField(list(SCHEDULED))
    cadence = serializers.ChoiceField(_CADENCES)
    delivery = serializers.ChoiceField(_DELIVERIES)
    recipients = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        default=list,
        max_length=200,
        help_text="Ids of members who may export the log. For delivery by mail.",
    )


class ScheduleChanges(ScheduleInput):
    is_active = serializers.BooleanField(required=False, help_text="False pauses it.")


class ScheduleOutput(serializers.ModelSerializer[ReportSchedule]):
    """A file that is made again and again, and how the last one went."""

    format = serializers.ChoiceField(list(SCHEDULED))
    cadence = serializers.ChoiceField(_CADENCES)
    delivery = serializers.ChoiceField(_DELIVERIES)
    recipients = serializers.ListField(child=serializers.UUIDField())
    made_by = serializers.EmailField(source="made_by.email")

    class Meta:
        model = ReportSchedule
        fields: ClassVar[Any] = (
            *("id", "name", "query", "format", "cadence", "delivery", "recipients", "made_by"),
            *("is_active", "next_run_at", "last_run_at", "last_ok", "last_result", "created_at"),
        )


class PreviewOutput(serializers.Serializer[Any]):
    """The file that would have been made last, and when the first one would be."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    entries = serializers.IntegerField()
    next_run_at = serializers.DateTimeField()


class ScheduleViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Files of the log that are made and sent on their own."""

    model = ReportSchedule
    scopes = _SCOPES
    serializer_class = ScheduleOutput

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        if not getattr(self, "swagger_fake_view", False):
            require(self.actor, Permission.EXPORT_AUDIT, workspace_id=self.workspace.pk)
        return super().get_queryset().select_related("made_by")

    @extend_schema(request=ScheduleInput, responses={201: ScheduleOutput})
    def create(self, request: Request) -> Response:
        """Have a file made from now on. Its time is the schedule's, so filters name none."""
        values = self.read(ScheduleInput)
        recipients = [str(pk) for pk in values.pop("recipients")]
        draft = ScheduleDraft(**values, recipients=recipients)
        made = create_schedule(
            workspace_id=self.workspace.pk, actor=self.actor, draft=draft, now=timezone.now()
        )
        return self.answer(made, status=201)

    @extend_schema(
        summary="Preview a scheduled file", request=ScheduleInput, responses={200: PreviewOutput}
    )
    @action(detail=False, methods=["post"], pagination_class=None)
    def preview(self, request: Request) -> Response:
        """Count what the newest file of such a schedule would hold. Nothing is made or sent."""
        values = self.read(ScheduleInput)
        recipients = [str(pk) for pk in values.pop("recipients")]
        shown = preview_schedule(
            workspace_id=self.workspace.pk,
            actor=self.actor,
            draft=ScheduleDraft(**values, recipients=recipients),
            now=timezone.now(),
        )
        return Response(PreviewOutput(shown).data)

    @extend_schema(request=ScheduleChanges, responses=ScheduleOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change it, pause it, or let it go on with the next file. What is absent stays."""
        values = self.read(ScheduleChanges, partial=True)
        schedule: ReportSchedule = self.get_object()
        is_active, now = values.pop("is_active", None), timezone.now()
        if "recipients" in values:
            values["recipients"] = [str(pk) for pk in values["recipients"]]
        with transaction.atomic():
            if values:
                draft = replace(draft_of(schedule), **values)
                update_schedule(schedule=schedule, actor=self.actor, draft=draft, now=now)
            if is_active is not None:
                pause_schedule(
                    schedule=schedule, actor=self.actor, is_paused=not is_active, now=now
                )
        return self.answer(schedule)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Make no more of these files. Those that were sent stay."""
        delete_schedule(schedule=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(summary="Send a scheduled file now", request=None, responses=ScheduleOutput)
    @action(detail=True, methods=["post"])
    def send(self, request: Request, pk: str) -> Response:
        """Make and send one now, beside its own times. `last_ok` and `last_result` say how it went."""
        return self.answer(send_now(schedule=self.get_object(), actor=self.actor))


class SignOffInput(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="Not in the future.")
    note = serializers.CharField(
        max_length=LONGEST_NOTE, allow_blank=True, required=False, default=""
    )


class SignOffOutput(serializers.ModelSerializer[SignOff]):
    """Who reviewed which time of the log, with what it said then. Nobody changes or deletes it."""

    totals = serializers.DictField(child=serializers.IntegerField(allow_null=True))

    class Meta:
        model = SignOff
        fields: ClassVar[Any] = (
            *("id", "since", "until", "note", "totals"),
            *("signed_by", "signed_by_id", "signed_at", "entry_id"),
        )


class SignOffViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Reviews of the log."""

    model = SignOff  # type: ignore[assignment]  # holds values, not a foreign key
    scopes = _SCOPES
    serializer_class = SignOffOutput

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return cast("WorkspaceQuerySet[Any]", SignOff.objects.across_workspaces().none())
        require(self.actor, Permission.VIEW_AUDIT, workspace_id=self.workspace.pk)
        return SignOff.objects.for_workspace(self.workspace)

    @extend_schema(request=SignOffInput, responses={201: SignOffOutput})
    def create(self, request: Request) -> Response:
        """Say that you have reviewed the log of a time. It becomes an entry of the log."""
        made = sign_off(
            workspace_id=self.workspace.pk,
            actor=self.actor,
            now=timezone.now(),
            **self.read(SignOffInput),
        )
        return self.answer(made, status=201)
