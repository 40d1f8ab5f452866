"""A person's folders over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import Folder
from chat.services.folders import LONGEST_NAME, create_folder, delete_folder, update_folder
from chat.values import FolderColour
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.scoping import WorkspaceQuerySet

_COLOURS = [colour.value for colour in FolderColour]


class FolderInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=LONGEST_NAME)
    colour = serializers.ChoiceField(_COLOURS, required=False)


class FolderChanges(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=LONGEST_NAME, required=False)
    colour = serializers.ChoiceField(_COLOURS, required=False)


class FolderOutput(serializers.ModelSerializer[Folder]):
    """A folder; `GET /api/conversations/?folder=` lists what is in it."""

    colour = serializers.ChoiceField(_COLOURS)

    class Meta:
        model = Folder
        fields: ClassVar[Any] = ["id", "name", "colour"]


class FolderViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The caller's own folders."""

    model = Folder
    scopes = Scopes(read="chat", write="chat")
    serializer_class = FolderOutput
    orderings: ClassVar[Any] = ("name", "id")

    def rows(self) -> WorkspaceQuerySet[Any]:
        return super().rows().filter(owner=self.person)

    @extend_schema(request=FolderInput, responses={201: FolderOutput})
    def create(self, request: Request) -> Response:
        """Make a folder."""
        values = self.read(FolderInput)
        folder = create_folder(
            workspace_id=self.workspace.pk, owner=self.person, actor=self.actor, **values
        )
        return self.answer(folder, status=201)

    @extend_schema(request=FolderChanges, responses=FolderOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Rename it, or give it another colour."""
        values = self.read(FolderChanges, partial=True)
        return self.answer(update_folder(folder=self.get_object(), actor=self.actor, **values))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete the folder. Its conversations stay, in no folder."""
        delete_folder(folder=self.get_object(), actor=self.actor)
        return Response(status=204)
