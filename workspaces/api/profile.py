"""The caller's profile over REST."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.db import transaction
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.api.uploads import UploadParser
from workspaces.models import Clock, DateFormat, Membership, NumberFormat, Theme, User
from workspaces.people.pictures import MOST_BYTES, keep_picture, own_address, remove_picture
from workspaces.people.profiles import LONGEST_NAME, change_profile
from workspaces.people.shortcuts import LONGEST_KEY, MOST_KEYS, ShortcutChoice, change_shortcuts

_AS_THE_BROWSER: Final = "Empty: as the browser says."
_AS_THEY_ARE: Final = object()


class ShortcutsValue(serializers.Serializer[Any]):
    """Keys of the chat's shortcuts. What is not named has its usual keys."""

    is_on = serializers.BooleanField(default=True, help_text="False: no shortcut does anything.")
    keys = serializers.DictField(
        child=serializers.ListField(
            child=serializers.CharField(max_length=LONGEST_KEY), max_length=MOST_KEYS
        ),
        default=dict,
        help_text='By the name of what they do, such as `{"newChat": ["mod", "shift", "o"]}`. No keys: no shortcut.',
    )


@extend_schema_serializer(many=False)
class ProfileOutput(serializers.ModelSerializer[User]):
    """What the caller is called, and how they see Trellis; the same in all workspaces."""

    theme = serializers.ChoiceField(
        Theme.choices, allow_blank=True, read_only=True, help_text="Empty: never chosen."
    )

    date_format = serializers.ChoiceField(
        DateFormat.choices, allow_blank=True, read_only=True, help_text=_AS_THE_BROWSER
    )
    clock = serializers.ChoiceField(
        Clock.choices, allow_blank=True, read_only=True, help_text=_AS_THE_BROWSER
    )
    number_format = serializers.ChoiceField(
        NumberFormat.choices, allow_blank=True, read_only=True, help_text=_AS_THE_BROWSER
    )

    shortcuts = ShortcutsValue(allow_null=True, read_only=True, help_text="Null: the usual keys.")
    picture = serializers.SerializerMethodField(
        help_text="The path of their own picture; empty: none. It changes with the picture."
    )

    def get_picture(self, user: User) -> str:
        """Where it is."""
        return own_address(user)

    class Meta:
        model = User
        fields = (
            *("id", "email", "name", "theme"),
            *("time_zone", "date_format", "clock", "number_format", "shortcuts", "picture"),
        )
        read_only_fields = fields


class ProfileInput(serializers.Serializer[Any]):
    """What is left out stays as it is."""

    name = serializers.CharField(max_length=LONGEST_NAME, allow_blank=True, required=False)
    theme = serializers.ChoiceField(Theme.choices, required=False)
    time_zone = serializers.CharField(
        max_length=64,
        allow_blank=True,
        required=False,
        help_text="A name of the IANA database, such as Europe/Zurich. Empty: as the browser says.",
    )
    date_format = serializers.ChoiceField(
        DateFormat.choices, allow_blank=True, required=False, help_text=_AS_THE_BROWSER
    )
    clock = serializers.ChoiceField(
        Clock.choices, allow_blank=True, required=False, help_text=_AS_THE_BROWSER
    )
    number_format = serializers.ChoiceField(
        NumberFormat.choices, allow_blank=True, required=False, help_text=_AS_THE_BROWSER
    )
    shortcuts = ShortcutsValue(required=False, allow_null=True, help_text="Null: the usual keys.")


class PictureParser(UploadParser):
    """A picture in a multipart body."""

    def most_bytes(self) -> int:
        return MOST_BYTES


class PictureInput(serializers.Serializer[Any]):
    picture = serializers.FileField(
        help_text=f"PNG, JPEG, WebP or GIF, at most {MOST_BYTES // 1024**2} MB."
    )


class ProfileViewSet(WorkspaceViewSet):
    """The caller's own."""

    model = Membership
    scopes = Scopes(read="chat", write="chat")
    serializer_class = ProfileOutput
    pagination_class = None  # as the framework means it
    parameters: ClassVar[Any] = {}

    @extend_schema(responses=ProfileOutput, filters=False, operation_id="profile_retrieve")
    def list(self, request: Request) -> Response:
        """Name, address, theme, time zone and formats. An empty theme was never chosen."""
        return Response(ProfileOutput(self.person).data)

    @extend_schema(request=ProfileInput, responses={200: ProfileOutput})
    def create(self, request: Request) -> Response:
        """Change what is given."""
        given = self.read(ProfileInput)
        keys = given.pop("shortcuts", _AS_THEY_ARE)
        with transaction.atomic():
            person = change_profile(user=self.person, **given)
            if keys is not _AS_THEY_ARE:
                change_shortcuts(
                    user=person, choice=None if keys is None else ShortcutChoice(**keys)
                )
        return Response(ProfileOutput(person).data)

    @extend_schema(
        methods=["POST"],
        request={"multipart/form-data": PictureInput},
        responses={200: ProfileOutput},
    )
    @extend_schema(methods=["DELETE"], request=None, responses={200: ProfileOutput})
    @action(detail=False, methods=["post", "delete"], parser_classes=(PictureParser,))
    def picture(self, request: Request) -> Response:
        """Give yourself a picture, which is cut to a square and drawn anew; or take it away."""
        if request.method == "DELETE":
            return Response(ProfileOutput(remove_picture(user=self.person)).data)
        upload = self.read(PictureInput)["picture"]
        person = keep_picture(user=self.person, content=upload.read())
        return Response(ProfileOutput(person).data)


routes = [("profile", ProfileViewSet)]
