"""The caller's profile over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.models import Membership, Theme, User
from workspaces.profiles import LONGEST_NAME, change_profile


@extend_schema_serializer(many=False)
class ProfileOutput(serializers.ModelSerializer[User]):
    """What the caller is called, and how they see Trellis; the same in all workspaces."""

    theme = serializers.ChoiceField(
        Theme.choices, allow_blank=True, read_only=True, help_text="Empty: never chosen."
    )

    class Meta:
        model = User
        fields = ("id", "email", "name", "theme")
        read_only_fields = fields


class ProfileInput(serializers.Serializer[Any]):
    """What is left out stays as it is."""

    name = serializers.CharField(max_length=LONGEST_NAME, allow_blank=True, required=False)
    theme = serializers.ChoiceField(Theme.choices, required=False)


class ProfileViewSet(WorkspaceViewSet):
    """The caller's own."""

    model = Membership
    scopes = Scopes(read="chat", write="chat")
    serializer_class = ProfileOutput
    pagination_class = None  # type: ignore[assignment]  # as the framework means it
    parameters: ClassVar[Any] = {}

    @extend_schema(responses=ProfileOutput, filters=False, operation_id="profile_retrieve")
    def list(self, request: Request) -> Response:
        """Name, address and theme. An empty theme was never chosen."""
        return Response(ProfileOutput(self.person).data)

    @extend_schema(request=ProfileInput, responses={200: ProfileOutput})
    def create(self, request: Request) -> Response:
        """Change what is given."""
        person = change_profile(user=self.person, **self.read(ProfileInput))
        return Response(ProfileOutput(person).data)


routes = [("profile", ProfileViewSet)]
