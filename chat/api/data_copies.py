"""Copies of the caller's data, over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.downloads import FILE_HEADERS, file_answers
from chat.models import DataCopy, DataCopyPart
from chat.services.copy_downloads import give_part
from chat.services.data_copies import cancel_copy, erase_copy, request_copy
from chat.values import CopyStatus
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.scoping import WorkspaceQuerySet

COPY_STATUSES = [one.value for one in CopyStatus]
"""An enum that has a name in the API's schema; see the settings."""


class NewCopy(serializers.Serializer[Any]):
    with_files = serializers.BooleanField(
        default=True, help_text="Whether files of chats are in it, with all their versions."
    )


class MissingFileOutput(serializers.Serializer[Any]):
    chat = serializers.CharField(help_text="Its title.")
    file = serializers.CharField()


class CopyPartOutput(serializers.ModelSerializer[DataCopyPart]):
    """One ZIP, at `parts/{number}/`."""

    class Meta:
        model = DataCopyPart
        fields: ClassVar[Any] = ["number", "size", "sha256", "chats"]


class DataCopyOutput(serializers.ModelSerializer[DataCopy]):
    """A copy of the caller's data, and how far it is."""

    status = serializers.ChoiceField(COPY_STATUSES)
    position = serializers.IntegerField(source="shown", help_text="Chats that are copied.")
    missing = MissingFileOutput(
        many=True, help_text="The first 200 files that could not be read, and are not in it."
    )
    parts = serializers.SerializerMethodField()

    class Meta:
        model = DataCopy
        fields: ClassVar[Any] = [
            "id",
            "with_files",
            "status",
            "error",
            "total",
            "position",
            "files",
            "missing",
            "size",
            "parts",
            "created_at",
            "finished_at",
            "expires_at",
        ]

    @extend_schema_field(CopyPartOutput(many=True))
    def get_parts(self, row: DataCopy) -> Any:
        is_ready = row.status == CopyStatus.READY
        return CopyPartOutput(row.parts.all() if is_ready else [], many=True).data


class DataCopyViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The caller's own copies."""

    model = DataCopy
    scopes = Scopes(read="chat", write="chat")
    serializer_class = DataCopyOutput
    orderings: ClassVar[Any] = ("-id",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        return super().rows().filter(owner=self.person).prefetch_related("parts")

    @extend_schema(request=NewCopy, responses={201: DataCopyOutput})
    def create(self, request: Request) -> Response:
        """Ask for a copy of your data. It is made in the background: ask again until `status` is `ready` or `failed`."""
        values = self.read(NewCopy)
        row = request_copy(
            workspace=self.workspace,
            owner=self.person,
            with_files=values["with_files"],
            actor=self.actor,
        )
        return self.answer(row, status=201)

    @extend_schema(request=None, responses=DataCopyOutput)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Stop making it."""
        row = self.get_object()
        cancel_copy(row=row, actor=self.actor)
        return self.answer(row)

    @extend_schema(request=None, responses=DataCopyOutput)
    @action(detail=True, methods=["post"])
    def erase(self, request: Request, pk: str) -> Response:
        """Erase one that is ready, before its time."""
        row = self.get_object()
        erase_copy(row=row, actor=self.actor)
        return self.answer(row)

    @extend_schema(
        parameters=[OpenApiParameter("number", int, OpenApiParameter.PATH), *FILE_HEADERS],
        responses=file_answers("application/zip"),
        filters=False,
    )
    @action(
        detail=True,
        methods=["get"],
        url_path="parts/<int:number>",
        pagination_class=None,
    )
    def part(self, request: Request, pk: str, number: int) -> HttpResponseBase:
        """Download one part. A `Range` goes on with a download that stopped."""
        return give_part(request._request, self.get_object(), number, actor=self.actor)
