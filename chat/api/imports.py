"""Imports of chats, over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import Bud, ChatImport
from chat.services.imports import remove_import, restore_import, start_import
from chat.values import ImportSource, ImportStatus
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.api.parsing import StrictJSONParser
from workspaces.api.uploads import CopyParser
from workspaces.errors import InvalidInput
from workspaces.scoping import WorkspaceQuerySet

IMPORT_STATUSES = [one.value for one in ImportStatus]
"""An enum that has a name in the API's schema; see the settings."""


class NewImport(serializers.Serializer[Any]):
    file = serializers.FileField(
        max_length=1000,
        help_text="The JSON of one conversation as `export` gives it, or `conversations.json` of ChatGPT or Claude, the ZIP that holds it, or a part of a copy of one's data, which may be larger.",
    )
    bud_id = serializers.UUIDField(help_text="Who goes on with the chats.")


class LeftOutOutput(serializers.Serializer[Any]):
    title = serializers.CharField(allow_blank=True)
    reason = serializers.CharField()


class ImportOutput(serializers.ModelSerializer[ChatImport]):
    """A file of chats, how far it is read, and what came of it."""

    origin = serializers.ChoiceField(
        [one.value for one in ImportSource],
        allow_blank=True,
        help_text="Who wrote the file. Empty: it is not known yet.",
    )
    status = serializers.ChoiceField(IMPORT_STATUSES)
    reasons = LeftOutOutput(
        many=True, help_text="Of the first 200 chats that were left out, why they were."
    )

    class Meta:
        model = ChatImport
        fields: ClassVar[Any] = [
            "id",
            "bud_id",
            "file_name",
            "origin",
            "status",
            "error",
            "total",
            "position",
            "imported",
            "messages",
            "left_out",
            "files",
            "files_left_out",
            "reasons",
            "created_at",
            "finished_at",
        ]


class ChatImportViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The caller's own imports."""

    model = ChatImport
    scopes = Scopes(read="chat", write="chat")
    serializer_class = ImportOutput
    orderings: ClassVar[Any] = ("-id",)
    parser_classes: Any = (StrictJSONParser, CopyParser)

    def rows(self) -> WorkspaceQuerySet[Any]:
        return super().rows().filter(owner=self.person)

    @extend_schema(request={"multipart/form-data": NewImport}, responses={201: ImportOutput})
    def create(self, request: Request) -> Response:
        """Import chats from a file. It is read in the background: ask again until `status` is `done` or `failed`."""
        values = self.read(NewImport)
        buds = Bud.objects.for_workspace(self.workspace).visible_to(self.person)
        bud = buds.find(values["bud_id"])
        if bud is None:
            raise InvalidInput(fields={"bud_id": [_("There is no such bud here.")]})
        file = values["file"]
        row = start_import(
            workspace=self.workspace,
            owner=self.person,
            bud=bud,
            name=file.name,
            file=file,
            actor=self.actor,
        )
        return self.answer(row, status=201)

    @extend_schema(request=None, responses=ImportOutput)
    @action(detail=True, methods=["post"])
    def remove(self, request: Request, pk: str) -> Response:
        """Delete all chats that came with it, as one."""
        row = self.get_object()
        remove_import(row=row, actor=self.actor)
        return self.answer(row)

    @extend_schema(request=None, responses=ImportOutput)
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: str) -> Response:
        """Bring the chats back that were removed as one, as long as they are not erased."""
        row = self.get_object()
        restore_import(row=row, actor=self.actor)
        return self.answer(row)
