"""Files that buds know, over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.downloads import ANY_FILE, FILE_HEADERS, file_answers
from chat.api.shapes import ARTIFACT_KINDS
from chat.artifacts import serving
from chat.artifacts.knowledge import excerpt_around
from chat.artifacts.meaning import knowledge_listed
from chat.models import KnowledgeFile
from chat.services.knowledge import remove_knowledge
from workspaces.api import RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.scoping import WorkspaceQuerySet


class MeaningOutput(serializers.Serializer[Any]):
    """How far a file can be searched by meaning."""

    state = serializers.ChoiceField(
        ["ready", "preparing", "words_only"],
        help_text="words_only: it could not be prepared, `fault` says why, and it is tried again.",
    )
    done = serializers.IntegerField(help_text="Passages that are prepared.")
    passages = serializers.IntegerField(help_text="Of the file; 0: not counted yet.")
    fault = serializers.CharField(allow_blank=True)
    again_at = serializers.DateTimeField(allow_null=True, help_text="When it is tried again.")


class KnowledgeFileOutput(serializers.Serializer[Any]):
    """A file that a bud knows."""

    id = serializers.UUIDField()
    bud_id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(ARTIFACT_KINDS)
    content_type = serializers.CharField(help_text="Found in the content itself.")
    size = serializers.IntegerField()
    sha256 = serializers.CharField()
    characters = serializers.IntegerField()
    lines = serializers.IntegerField()
    parts = serializers.IntegerField(help_text="Pages, sheets, slides, chapters or headings.")
    is_cut = serializers.BooleanField(help_text="The file holds more than could be read.")
    meaning = MeaningOutput(
        allow_null=True, help_text="null: the bud's provider has no embedding model."
    )
    added_by = serializers.CharField()
    created_at = serializers.DateTimeField()


class NewKnowledgeFile(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True, max_length=1000)
    name = serializers.CharField(
        max_length=1000, required=False, help_text="Instead of the name that the upload gives."
    )


class KnowledgePlaceInput(serializers.Serializer[Any]):
    page = serializers.IntegerField(min_value=1, max_value=1_000_000, required=False)
    line = serializers.IntegerField(min_value=1, max_value=100_000_000, required=False)


class KnowledgePassageOutput(serializers.Serializer[Any]):
    first_line = serializers.IntegerField()
    last_line = serializers.IntegerField()
    text = serializers.CharField()


class KnowledgeTextOutput(serializers.Serializer[Any]):
    """Some passages of a file, as models read them."""

    file = KnowledgeFileOutput()
    first_line = serializers.IntegerField(help_text="Of what was asked for.")
    last_line = serializers.IntegerField()
    passages = KnowledgePassageOutput(many=True)
    before = serializers.IntegerField(
        allow_null=True, help_text="A line to ask for what comes before; null: it begins here."
    )
    after = serializers.IntegerField(allow_null=True, help_text="The same for what follows.")


class KnowledgeViewSet(RetrieveRow, WorkspaceViewSet):
    """Files that buds know."""

    model = KnowledgeFile
    parameters: ClassVar[Any] = {"text": ("page", "line")}
    scopes = Scopes(read="chat", write="buds:write")
    serializer_class = KnowledgeFileOutput

    def rows(self) -> WorkspaceQuerySet[Any]:
        return super().rows().select_related("bud__provider")

    @extend_schema(responses=KnowledgeFileOutput)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One file."""
        return Response(self._in_json(self.get_object()))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Take the file from its bud."""
        remove_knowledge(file=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(parameters=[KnowledgePlaceInput], responses=KnowledgeTextOutput, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def text(self, request: Request, pk: str) -> Response:
        """The text from a page or line on, as models read it."""
        file = self.get_object()
        window = excerpt_around(file, **self.read_query(KnowledgePlaceInput))
        return Response(
            {
                "file": self._in_json(file),
                "first_line": window.first_line,
                "last_line": window.last_line,
                "passages": KnowledgePassageOutput(window.passages, many=True).data,
                "before": window.before,
                "after": window.after,
            }
        )

    def _in_json(self, file: KnowledgeFile) -> dict[str, Any]:
        return knowledge_listed(file.bud, [file])[0]

    @extend_schema(responses=file_answers(ANY_FILE), parameters=[*FILE_HEADERS])
    @action(detail=True, methods=["get"])
    def content(self, request: Request, pk: str) -> Any:
        """The file as it was uploaded, whole or in part (`Range`)."""
        file = self.get_object()
        return serving.download(request._request, file, file)
