"""Files of conversations over REST: list, upload, read, save, restore, rename, delete and bring back."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.downloads import ANY_FILE, FILE_HEADERS, file_answers
from chat.api.shapes import ARTIFACT_KINDS
from chat.artifacts import serving
from chat.artifacts.readings import find_reading, read_version, text_of
from chat.artifacts.rows import artifacts_of, newest_of, version_of
from chat.artifacts.services import (
    SavedFile,
    WhenTaken,
    add_version,
    create_artifact,
    delete_artifact,
    rename_artifact,
    restore_version,
    undelete_artifact,
)
from chat.models import Artifact, ArtifactVersion
from chat.values import ArtifactOrigin
from chat.wire import payloads
from workspaces.api import RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.api.parsing import StrictJSONParser
from workspaces.api.uploads import UploadParser
from workspaces.database import wait_for
from workspaces.errors import InvalidInput
from workspaces.scoping import WorkspaceQuerySet


class ArtifactVersionOutput(serializers.Serializer[Any]):
    """One version of a file, without its content."""

    number = serializers.IntegerField()
    kind = serializers.ChoiceField(ARTIFACT_KINDS)
    content_type = serializers.CharField(help_text="Found in the content itself.")
    size = serializers.IntegerField()
    sha256 = serializers.CharField()
    origin = serializers.ChoiceField([origin.value for origin in ArtifactOrigin])
    made_by = serializers.CharField(allow_null=True)
    tool_call_id = serializers.UUIDField(allow_null=True)
    message_id = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()


class ArtifactOutput(serializers.Serializer[Any]):
    """A file of a conversation, with its newest version."""

    id = serializers.UUIDField()
    conversation_id = serializers.UUIDField()
    name = serializers.CharField()
    is_deleted = serializers.BooleanField()
    version = ArtifactVersionOutput()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class NewArtifact(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True, max_length=1000)
    name = serializers.CharField(
        max_length=1000, required=False, help_text="Instead of the name that the upload gives."
    )


class NewVersion(serializers.Serializer[Any]):
    """The new content, as a text or as an uploaded file."""

    file = serializers.FileField(allow_empty_file=True, max_length=1000, required=False)
    content = serializers.CharField(allow_blank=True, trim_whitespace=False, required=False)
    base = serializers.IntegerField(
        min_value=1,
        required=False,
        help_text="The version that was read before: if another one was saved since, this one is refused (409).",
    )


class VersionNumber(serializers.Serializer[Any]):
    version = serializers.IntegerField(min_value=1)


class ArtifactName(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=1000)


class ArtifactRemoval(serializers.Serializer[Any]):
    unless_sent = serializers.BooleanField(
        default=False, help_text="Refuse it (409) where a message has taken the file along."
    )


class ArtifactsOfConversation:
    """The files of a conversation; mixed into its viewset."""

    @extend_schema(methods=["GET"], responses=ArtifactOutput(many=True), filters=False)
    @extend_schema(
        methods=["POST"],
        request={"multipart/form-data": NewArtifact},
        responses={201: ArtifactOutput},
    )
    @action(
        detail=True,
        methods=["get", "post"],
        pagination_class=None,
        parser_classes=(UploadParser,),
    )
    def artifacts(self: Any, request: Request, pk: str) -> Response:
        """List the files, or upload one. A name that is taken gets a number."""
        conversation = self.get_object()
        if request.method == "GET":
            shown = [
                payloads.artifact_json(row, newest) for row, newest in artifacts_of(conversation)
            ]
            return Response(shown)
        values = self.read(NewArtifact)
        saved = create_artifact(
            conversation=conversation,
            name=values.get("name") or values["file"].name,
            content=values["file"].read(),
            actor=self.actor,
            origin=ArtifactOrigin.UPLOAD,
            when_taken=WhenTaken.NUMBER,
        )
        return _answer(saved, status=201)


class ArtifactViewSet(RetrieveRow, WorkspaceViewSet):
    """One file."""

    model = Artifact
    scopes = Scopes(read="chat", write="chat")
    serializer_class = ArtifactOutput

    def rows(self) -> WorkspaceQuerySet[Any]:
        # A superuser sees everything in the admin, but a conversation is its owner's alone.
        rows = super().rows().filter(conversation__owner=self.person)
        return rows if self.action == "undelete" else rows.filter(is_deleted=False)

    def answer(self, row: Any, status: int = 200) -> Response:
        return _answer(SavedFile(row, newest_of(row)), status=status)

    @extend_schema(request=ArtifactName, responses=ArtifactOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Give it another name."""
        artifact = self.get_object()
        name = self.read(ArtifactName)["name"]
        return self.answer(rename_artifact(artifact=artifact, name=name, actor=self.actor))

    @extend_schema(parameters=[ArtifactRemoval], responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Take it away; `undelete` brings it back within a week."""
        artifact = self.get_object()
        asked = self.read_query(ArtifactRemoval)
        delete_artifact(artifact=artifact, actor=self.actor, **asked)
        return Response(status=204)

    @extend_schema(request=None, responses=ArtifactOutput)
    @action(detail=True, methods=["post"])
    def undelete(self, request: Request, pk: str) -> Response:
        """Bring a deleted file back."""
        return self.answer(undelete_artifact(artifact=self.get_object(), actor=self.actor))

    @extend_schema(methods=["GET"], responses=ArtifactVersionOutput(many=True), filters=False)
    @extend_schema(
        methods=["POST"],
        request={"application/json": NewVersion, "multipart/form-data": NewVersion},
        responses={201: ArtifactOutput},
    )
    @action(
        detail=True,
        methods=["get", "post"],
        pagination_class=None,
        parser_classes=(StrictJSONParser, UploadParser),
    )
    def versions(self, request: Request, pk: str) -> Response:
        """List the versions, newest first; or save another one."""
        artifact = self.get_object()
        if request.method == "GET":
            rows = ArtifactVersion.objects.for_workspace(self.workspace).filter(artifact=artifact)
            found = rows.select_related("made_by").order_by("-number")
            return Response([payloads.artifact_version_json(artifact, row) for row in found])
        values = self.read(NewVersion)
        file, text = values.get("file"), values.get("content")
        if (file is None) == (text is None):
            raise InvalidInput(fields={"content": [_("Send either a file or a text.")]})
        saved = add_version(
            artifact=artifact,
            content=file.read() if file is not None else str(text).encode(),
            actor=self.actor,
            origin=ArtifactOrigin.UPLOAD if file is not None else ArtifactOrigin.EDIT,
            base=values.get("base"),
        )
        return _answer(saved, status=201)

    @extend_schema(request=VersionNumber, responses=ArtifactOutput)
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: str) -> Response:
        """Make an older version the newest again."""
        artifact = self.get_object()
        number = self.read(VersionNumber)["version"]
        return _answer(restore_version(artifact=artifact, number=number, actor=self.actor))

    @extend_schema(
        responses=file_answers(ANY_FILE),
        parameters=[OpenApiParameter("number", int, OpenApiParameter.PATH), *FILE_HEADERS],
    )
    @action(detail=True, methods=["get"], url_path="versions/<int:number>/content")
    def content(self, request: Request, pk: str, number: int) -> Any:
        """The content of one version, whole or in part (`Range`), unless it is known (`If-None-Match`)."""
        artifact = self.get_object()
        return serving.download(request._request, artifact, version_of(artifact, number))

    @extend_schema(
        responses={(200, "text/plain"): str},
        parameters=[OpenApiParameter("number", int, OpenApiParameter.PATH)],
        filters=False,
    )
    @action(detail=True, methods=["get"], url_path="versions/<int:number>/text")
    def text(self, request: Request, pk: str, number: int) -> HttpResponse:
        """The text of one version as models read it, also of PDF, Word, Excel, PowerPoint and EPUB files.

        Made when it is first asked for, which may take some seconds. 422: the file has no text; the reason is told.
        """
        version = version_of(self.get_object(), number)
        reading = find_reading(version) or wait_for(read_version, version.workspace_id, version.pk)
        return serving.reading(version, text_of(reading))

    parameters: ClassVar[Any] = {"destroy": ("unless_sent",)}
    refuses_values = ("text",)


def _answer(saved: SavedFile, status: int = 200) -> Response:
    return Response(payloads.artifact_json(saved.artifact, saved.version), status=status)
