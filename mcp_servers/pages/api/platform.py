"""The program catalogue and the servers of the platform's file over REST, for the platform's owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast, get_args

import django_filters
from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from mcp_servers.models import GlobalServer, StdioProgram
from mcp_servers.models.programs import MAX_VALUE_LENGTH, ParameterType
from mcp_servers.registry import services
from mcp_servers.registry.catalogue.platform_source import known_servers
from workspaces.api import ListRows, PlatformViewSet, RetrieveRow, RowFilterSet
from workspaces.api.filtering import TruthFilter

if TYPE_CHECKING:
    from rest_framework.request import Request

_MOST_TEXTS = 200
_LONGEST_TEXT = 2_000
_WORDS = "`{name}` is replaced by that parameter."


class ProgramParameter(serializers.Serializer[Any]):
    """What a workspace may fill in. Its type decides what fits."""

    name = serializers.CharField(max_length=40)
    title = serializers.CharField(max_length=100)
    help = serializers.CharField(max_length=300, required=False, allow_blank=True)
    type = serializers.ChoiceField(get_args(ParameterType), required=False)
    choices = serializers.ListField(
        child=serializers.CharField(max_length=MAX_VALUE_LENGTH),
        max_length=_MOST_TEXTS,
        required=False,
    )
    minimum = serializers.IntegerField(required=False, allow_null=True)
    maximum = serializers.IntegerField(required=False, allow_null=True)
    required = cast(
        "Any", serializers.BooleanField(required=False)
    )  # the framework has an attribute of that name
    default = cast(
        "Any",
        serializers.CharField(max_length=MAX_VALUE_LENGTH, required=False, allow_blank=True),
    )


def _texts(**options: Any) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=_LONGEST_TEXT),
        max_length=_MOST_TEXTS,
        required=False,
        **options,
    )


class ProgramChanges(serializers.Serializer[Any]):
    """What is left out stays as it is."""

    title = serializers.CharField(max_length=100)
    slug = serializers.CharField(max_length=50, help_text="Its name in addresses.")
    description = serializers.CharField(required=False, allow_blank=True, max_length=10_000)
    command = serializers.CharField(
        max_length=500,
        help_text="An absolute path, or `python` for the platform's own interpreter.",
    )
    args = _texts(help_text=_WORDS)
    parameters = ProgramParameter(many=True, required=False)
    env_names = _texts(help_text="Names of variables that a workspace may set.")
    is_enabled = serializers.BooleanField(required=False)


class ProgramInput(ProgramChanges):
    """A program that workspaces may pick."""


class ProgramOutput(serializers.ModelSerializer[StdioProgram]):
    """A program of the catalogue."""

    args = serializers.ListField(child=serializers.CharField(), read_only=True)
    parameters = ProgramParameter(many=True, read_only=True)
    env_names = serializers.ListField(child=serializers.CharField(), read_only=True)
    problem = serializers.CharField(
        read_only=True, help_text="Why it is not started. Empty: nothing is wrong."
    )

    class Meta:
        model = StdioProgram
        fields = (
            *("id", "title", "slug", "description", "command", "args", "parameters", "env_names"),
            *("is_enabled", "problem", "file_hash", "created_at", "updated_at"),
        )
        read_only_fields = fields


class KnownProgramOutput(serializers.Serializer[Any]):
    """A well-known program, as the form of a new entry is filled with it."""

    title = serializers.CharField()
    slug = serializers.CharField()
    description = serializers.CharField()
    command = serializers.CharField()
    args = serializers.ListField(child=serializers.CharField())
    parameters = ProgramParameter(many=True)
    env_names = serializers.ListField(child=serializers.CharField())
    package = serializers.CharField(help_text="What has to be installed on the machine first.")


class ProgramFilters(RowFilterSet):
    slug = django_filters.CharFilter()
    is_enabled = TruthFilter()


class PlatformProgramViewSet(ListRows, RetrieveRow, PlatformViewSet):
    """Which programs may run here. A token only reads it: whoever changes it decides what runs on the machine."""

    queryset = StdioProgram.objects.all()
    serializer_class = ProgramOutput
    filterset_class = ProgramFilters
    orderings: ClassVar[Any] = ("title", "-id")
    needs_person: ClassVar[Any] = frozenset({"create", "partial_update", "destroy", "accept"})

    @extend_schema(request=ProgramInput, responses={201: ProgramOutput})
    def create(self, request: Request) -> Response:
        """Put a program into the catalogue. Its files are pinned as they are now."""
        program = StdioProgram(**self.read(ProgramInput))
        return self.answer(services.save_program(program=program, actor=self.actor), status=201)

    @extend_schema(request=ProgramChanges, responses=ProgramOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change an entry. Its files are pinned as they are now."""
        given = self.read(ProgramChanges, partial=True)
        with transaction.atomic():
            program: StdioProgram = self.get_held()
            for name, value in given.items():
                setattr(program, name, value)
            return self.answer(services.save_program(program=program, actor=self.actor))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Take an entry out of the catalogue; 409 while servers run it."""
        services.delete_program(program=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=None, responses=ProgramOutput)
    @action(detail=True, methods=["post"])
    def accept(self, request: Request, pk: str) -> Response:
        """Say that you have looked at its files as they are now, and let it run."""
        with transaction.atomic():
            held = self.get_held()
            return self.answer(services.accept_program(program=held, actor=self.actor))

    @extend_schema(responses=KnownProgramOutput(many=True), filters=False)
    @action(detail=False, methods=["get"], pagination_class=None)
    def known(self, request: Request) -> Response:
        """The programs of the list of well-known servers. Look one over before you add it."""
        found = [
            {**one.program.model_dump(mode="json"), **_named(one)}
            for one in known_servers().values()
            if one.program is not None
        ]
        return Response(KnownProgramOutput(found, many=True).data)


def _named(known: Any) -> dict[str, Any]:
    return {name: getattr(known, name) for name in ("title", "slug", "description")}


class PlatformServerOutput(serializers.ModelSerializer[GlobalServer]):
    """A server of the platform's file. How it is reached, and its secrets, stay in the file."""

    class Meta:
        model = GlobalServer
        fields = (
            *("id", "name", "transport", "target_label", "is_required", "is_present"),
            *("created_at", "updated_at"),
        )
        read_only_fields = fields


class PlatformServerFilters(RowFilterSet):
    is_required = TruthFilter()
    is_present = TruthFilter()


class PlatformServerViewSet(ListRows, RetrieveRow, PlatformViewSet):
    """The servers of the platform's file, which is where they are changed."""

    queryset = GlobalServer.objects.all()
    serializer_class = PlatformServerOutput
    filterset_class = PlatformServerFilters
    orderings: ClassVar[Any] = ("name", "-id")


platform_routes = [
    ("programs", PlatformProgramViewSet),
    ("servers", PlatformServerViewSet),
]
