"""Saved views, schedules and sign-offs over REST."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext
from django_filters import UUIDFilter
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit.exports.report_files import SCHEDULED
from audit.models import ReportSchedule, SavedView, SentFile, SignOff
from audit.reviews.previews import preview_schedule
from audit.reviews.ready_views import READY
from audit.reviews.saved_views import change_view, delete_view, save_view, views_for
from audit.reviews.scheduled_exports import send_again, send_now, send_to_me
from audit.reviews.schedules import (
    ScheduleDraft,
    create_schedule,
    delete_schedule,
    draft_of,
    offered_recipients,
    pause_schedule,
    update_schedule,
)
from audit.reviews.sent_files import find_sent_file, log_query_of, sent_files
from audit.reviews.sign_offs import LONGEST_NOTE, sign_off, sign_off_file
from audit.reviews.timing import USUAL_HOUR
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.holding import hold
from workspaces.lists.view_names import LONGEST_NAME, LONGEST_QUERY
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

_SCOPES = Scopes(read="audit:read", write="audit:write")
_QUERY = "Filters, as people type them or as the page's address has them."
_PAGES = SavedView.Page.values
_CADENCES = ReportSchedule.Cadence.values
_DELIVERIES = ReportSchedule.Delivery.values
_COVERS = ReportSchedule.Covers.values
_STATUSES = SentFile.Status.values


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

    def rows(self) -> WorkspaceQuerySet[Any]:
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
    hour = serializers.IntegerField(
        min_value=0,
        max_value=23,
        required=False,
        default=USUAL_HOUR,
        help_text="At which hour it is made.",
    )
    time_zone = serializers.CharField(
        max_length=64,
        required=False,
        default="UTC",
        help_text="Of the hour, and of the days that a file covers, such as Europe/Zurich.",
    )
    covers = serializers.ChoiceField(
        _COVERS,
        required=False,
        default="",
        help_text="Of which time a file is. Empty: the day, week or month before, as the cadence is.",
    )
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
    covers = serializers.ChoiceField(_COVERS)
    delivery = serializers.ChoiceField(_DELIVERIES)
    recipients = serializers.ListField(child=serializers.UUIDField())
    made_by = serializers.EmailField(source="made_by.email")

    class Meta:
        model = ReportSchedule
        fields: ClassVar[Any] = (
            *("id", "name", "query", "format", "cadence", "hour", "time_zone", "covers"),
            *("delivery", "recipients", "made_by"),
            *("is_active", "next_run_at", "last_run_at", "last_ok", "last_result", "created_at"),
        )


class SampleOutput(serializers.Serializer[Any]):
    """The first entries as they stand in the file: rows under a head, or lines. Long ones are cut."""

    head = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField(child=serializers.CharField()))
    lines = serializers.ListField(child=serializers.CharField())


class FileFigureOutput(serializers.Serializer[Any]):
    name = serializers.CharField(source="label")
    value = serializers.CharField()
    change = serializers.CharField()


class PreviewOutput(serializers.Serializer[Any]):
    """The file that would have been made last, its mail, and when the first ones would be made."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    entries = serializers.IntegerField(help_text="Up to 100,000.")
    is_more = serializers.BooleanField(help_text="There are more.")
    calls = serializers.IntegerField(allow_null=True, help_text="Tool calls; null: too many.")
    next_run_at = serializers.DateTimeField()
    next_runs = serializers.ListField(child=serializers.DateTimeField())
    file_name = serializers.CharField()
    sample = SampleOutput()
    figures = FileFigureOutput(many=True, help_text="Of a PDF, which has no rows.")
    size = serializers.IntegerField(
        allow_null=True, help_text="In bytes, guessed from the first entries."
    )
    most_size = serializers.IntegerField(help_text="Of a file that goes by mail.")
    subject = serializers.CharField()
    text = serializers.CharField()


class ReadyViewOutput(serializers.Serializer[Any]):
    key = serializers.CharField()
    name = serializers.CharField(source="label")
    query = serializers.CharField()
    help = serializers.CharField()


class RecipientOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField(source="display_name")
    email = serializers.EmailField()


class ScheduleChoices(serializers.Serializer[Any]):
    """What a schedule can begin with, and who may get its files."""

    views = ReadyViewOutput(many=True)
    people = RecipientOutput(many=True)
    is_cut = serializers.BooleanField(help_text="More people may get files than are listed.")


class SentFileOutput(serializers.ModelSerializer[SentFile]):
    """A file that was to be made and sent once, and how that went."""

    format = serializers.ChoiceField(list(SCHEDULED))
    status = serializers.ChoiceField(_STATUSES)
    sent_to = serializers.ListField(child=serializers.EmailField())
    log_query = serializers.SerializerMethodField(
        help_text="The same entries in the log: its address after the question mark."
    )

    class Meta:
        model = SentFile
        fields: ClassVar[Any] = (
            *("id", "schedule_id", "name", "query", "format", "time_zone", "since", "until"),
            *("is_trial", "asked_by", "sent_to", "stored_as", "entries", "calls", "size"),
            *("status", "fault", "attempts", "created_at", "sent_at", "log_query"),
        )

    def get_log_query(self, row: SentFile) -> str:
        """Give where people look through it."""
        return log_query_of(row)


class ScheduleViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Files of the log that are made and sent on their own."""

    model = ReportSchedule
    scopes = _SCOPES
    serializer_class = ScheduleOutput

    def rows(self) -> WorkspaceQuerySet[Any]:
        require(self.actor, Permission.EXPORT_AUDIT, workspace_id=self.workspace.pk)
        return super().rows().select_related("made_by")

    @extend_schema(request=ScheduleInput, responses={201: ScheduleOutput})
    def create(self, request: Request) -> Response:
        """Have a file made from now on. Its time is the schedule's, so filters name none."""
        made = create_schedule(
            workspace_id=self.workspace.pk,
            actor=self.actor,
            draft=self._draft(),
            now=timezone.now(),
        )
        return self.answer(made, status=201)

    @extend_schema(
        summary="Preview a scheduled file", request=ScheduleInput, responses={200: PreviewOutput}
    )
    @action(detail=False, methods=["post"], pagination_class=None)
    def preview(self, request: Request) -> Response:
        """Give how the newest file of such a schedule begins, and its mail. Nothing is made or sent."""
        shown = preview_schedule(
            workspace=self.workspace, actor=self.actor, draft=self._draft(), now=timezone.now()
        )
        return Response(PreviewOutput(shown).data)

    @extend_schema(
        summary="Send yourself a scheduled file",
        request=ScheduleInput,
        responses={201: SentFileOutput},
    )
    @action(detail=False, methods=["post"], url_path="send-to-me", pagination_class=None)
    def send_to_me(self, request: Request) -> Response:
        """Send the newest file of such a schedule to you alone, with its mail. No schedule is made.

        `status` and `fault` say how it went.
        """
        sent = send_to_me(workspace=self.workspace, actor=self.actor, draft=self._draft())
        return Response(SentFileOutput(sent).data, status=201)

    @extend_schema(summary="List what a schedule can begin with", responses={200: ScheduleChoices})
    @action(detail=False, methods=["get"], pagination_class=None)
    def choices(self, request: Request) -> Response:
        """Give ready filters, and the members who may get files."""
        require(self.actor, Permission.EXPORT_AUDIT, workspace_id=self.workspace.pk)
        people, is_cut = offered_recipients(self.workspace.pk, ())
        found = {
            "views": [
                {
                    "key": one.key,
                    "label": gettext(one.label),
                    "query": one.query,
                    "help": gettext(one.help),
                }
                for one in READY
            ],
            "people": people,
            "is_cut": is_cut,
        }
        return Response(ScheduleChoices(found).data)

    def _draft(self) -> ScheduleDraft:
        values = self.read(ScheduleInput)
        recipients = [str(pk) for pk in values.pop("recipients")]
        return ScheduleDraft(**values, recipients=recipients)

    @extend_schema(request=ScheduleChanges, responses=ScheduleOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change it, pause it, or let it go on with the next file. What is absent stays."""
        values = self.read(ScheduleChanges, partial=True)
        schedule: ReportSchedule = self.get_object()
        is_active, now = values.pop("is_active", None), timezone.now()
        if "recipients" in values:
            values["recipients"] = [str(pk) for pk in values["recipients"]]
        with transaction.atomic():
            hold(schedule)
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
        """Make no more of these files. Those that were sent stay, and so do their sign-offs."""
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
            *("id", "since", "until", "query", "sent_file_id", "note", "totals"),
            *("signed_by", "signed_by_id", "signed_at", "entry_id"),
        )


class SentFileFilters(RowFilterSet):
    schedule = UUIDFilter(field_name="schedule_id", help_text="Files of this schedule.")


class NoteInput(serializers.Serializer[Any]):
    note = serializers.CharField(
        max_length=LONGEST_NOTE, allow_blank=True, required=False, default=""
    )


class SentFileViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """What schedules have sent, newest first."""

    model = SentFile
    scopes = _SCOPES
    serializer_class = SentFileOutput
    filterset_class = SentFileFilters

    def rows(self) -> WorkspaceQuerySet[Any]:
        return sent_files(self.workspace.pk, actor=self.actor).select_related(
            "workspace", "schedule__workspace", "schedule__made_by"
        )

    @extend_schema(summary="Send a file again", request=None, responses=SentFileOutput)
    @action(detail=True, methods=["post"], url_path="send-again")
    def send_again(self, request: Request, pk: str) -> Response:
        """Make and send a file that was not sent. `status` and `fault` say how it went."""
        return self.answer(send_again(sent=self.get_object(), actor=self.actor))

    @extend_schema(
        summary="Sign off a sent file",
        request=NoteInput,
        responses={201: SignOffOutput},
    )
    @action(detail=True, methods=["post"], url_path="sign-off")
    def sign_off(self, request: Request, pk: str) -> Response:
        """Say that you have looked through what the file is of. It becomes an entry of the log."""
        # Whoever sees the log reviews it; the list of files is for those who export.
        made = sign_off_file(
            sent=find_sent_file(self.workspace.pk, pk, actor=self.actor),
            actor=self.actor,
            now=timezone.now(),
            **self.read(NoteInput),
        )
        return Response(SignOffOutput(made).data, status=201)


class SignOffFilters(RowFilterSet):
    sent_file = UUIDFilter(field_name="sent_file_id", help_text="Who signed off this file.")


class SignOffViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Reviews of the log."""

    model = SignOff  # type: ignore[assignment]  # holds values, not a foreign key
    scopes = _SCOPES
    serializer_class = SignOffOutput
    filterset_class = SignOffFilters

    def rows(self) -> WorkspaceQuerySet[Any]:
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
