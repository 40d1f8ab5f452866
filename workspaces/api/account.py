"""A person's own tokens, browser sessions and workspaces over REST; and for administrators the tokens of all members.

What concerns a person's ways in takes their browser session: a token that leaks must not make, see or end others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import (
    extend_schema,
    extend_schema_serializer,
    extend_schema_view,
)
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.api.authentication import ANY_SCOPE
from workspaces.errors import Conflict
from workspaces.models import ApiToken, Membership, User, Workspace, WorkspaceSession
from workspaces.people.browser_sessions import (
    SESSION_ORDER,
    device,
    end_other_sessions,
    end_own_session,
    sessions_of,
)
from workspaces.people.entering import enterable_workspaces
from workspaces.people.tokens import (
    MCP_SCOPES,
    PLATFORM_SCOPES,
    SCOPES,
    issue_token,
    revoke_token,
)
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.scoping import WorkspaceQuerySet


class TokenOutput(serializers.ModelSerializer[ApiToken]):
    """An API token, without the token itself."""

    user = serializers.EmailField(source="user.email", read_only=True)
    scopes = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = ApiToken
        fields = (
            *("id", "name", "user", "hint", "scopes"),
            *("expires_at", "last_used_at", "created_at"),
        )
        read_only_fields = fields


class TokenInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    scopes = serializers.ListField(
        child=serializers.ChoiceField([*SCOPES, *MCP_SCOPES, *PLATFORM_SCOPES]), allow_empty=False
    )
    expires_at = serializers.DateTimeField()


class TokenMadeOutput(serializers.Serializer[Any]):
    """A new token, which is shown this once."""

    token = serializers.CharField(allow_null=True)
    row = TokenOutput()


class TokenViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The caller's own tokens in this workspace. Takes a browser session."""

    model = ApiToken
    serializer_class = TokenOutput
    orderings: ClassVar[Any] = ("-id", "expires_at")
    shown_once: ClassVar[Any] = frozenset({"token"})

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Nobody sees those of others here, not even the platform's owner."""
        return super().rows().filter(user=self.person).select_related("user")

    @extend_schema(request=TokenInput, responses={201: TokenMadeOutput})
    def create(self, request: Request) -> Response:
        """Make a token. Copy it from the answer, since it is never shown again."""
        given = self.read(TokenInput)
        row, plain = issue_token(
            workspace=self.workspace, user=self.person, actor=self.actor, **given
        )
        return Response(TokenMadeOutput({"token": plain, "row": row}).data, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """End a token at once."""
        revoke_token(token=self.get_object(), actor=self.actor)
        return Response(status=204)


class MemberTokenViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The tokens of all members, for those who manage them. They can end one, and never make or read one."""

    model = ApiToken
    scopes = Scopes(read="members:write", write="members:write")
    serializer_class = TokenOutput
    orderings: ClassVar[Any] = ("-id", "expires_at")

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace."""
        require(self.actor, Permission.MANAGE_MEMBERS, workspace_id=self.workspace.pk)
        return ApiToken.objects.for_workspace(self.workspace).select_related("user")

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """End a token at once."""
        revoke_token(token=self.get_object(), actor=self.actor)
        return Response(status=204)


class OwnSessionOutput(serializers.Serializer[WorkspaceSession]):
    """A browser in which the caller is signed in."""

    id = serializers.UUIDField()
    device = serializers.SerializerMethodField()
    ip_address = serializers.IPAddressField(allow_null=True)
    created_at = serializers.DateTimeField()
    last_seen_at = serializers.DateTimeField()
    is_current = serializers.SerializerMethodField(help_text="The one that asks.")

    def get_device(self, row: WorkspaceSession) -> str:
        return device(row.user_agent)

    def get_is_current(self, row: WorkspaceSession) -> bool:
        return bool(row.session_id == self.context["request"].session.session_key)


class OthersSignedOutOutput(serializers.Serializer[Any]):
    ended = serializers.IntegerField(help_text="How many of them were used in workspaces.")


class OwnSessionViewSet(ListRows, WorkspaceViewSet):
    """Where the caller is signed in, as far as it was used in this workspace. Takes a browser session."""

    model = WorkspaceSession
    serializer_class = OwnSessionOutput
    orderings: ClassVar[Any] = (SESSION_ORDER,)

    def rows(self) -> WorkspaceQuerySet[Any]:
        """The caller's own, while they live."""
        return sessions_of(self.person.pk, self.workspace)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Sign out of another browser; 409 for the one that asks."""
        row: WorkspaceSession = self.get_object()
        current = request.session.session_key
        if not end_own_session(session_id=row.pk, session_key=current, actor=self.actor):
            raise Conflict(_("This is the browser that you use. Sign out on its page."))
        return Response(status=204)

    @extend_schema(request=None, responses=OthersSignedOutOutput)
    @action(detail=False, methods=["post"], url_path="sign-out-others")
    def sign_out_others(self, request: Request) -> Response:
        """Sign out of all other browsers, in all workspaces."""
        number = end_other_sessions(user=self.person, session=request.session, actor=self.actor)
        return Response(OthersSignedOutOutput({"ended": number}).data)


class OwnWorkspaceOutput(serializers.Serializer[Workspace]):
    """A workspace that the caller may enter, and as what."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    slug = serializers.CharField()
    role = serializers.SerializerMethodField(
        help_text="Empty: the platform's owner is no member there."
    )
    is_auditor = serializers.SerializerMethodField()

    def get_role(self, workspace: Workspace) -> str:
        found = self.context["memberships"].get(workspace.pk)
        return found.role if found is not None else ""

    def get_is_auditor(self, workspace: Workspace) -> bool:
        found = self.context["memberships"].get(workspace.pk)
        return found is not None and found.is_auditor


class OwnWorkspaceViewSet(WorkspaceViewSet):
    """The workspaces that the caller may enter. Takes a browser session: a token is of one workspace."""

    model = Membership
    serializer_class = OwnWorkspaceOutput
    orderings: ClassVar[Any] = ("name",)
    lists_of_person = True  # a page's cursor goes on in whatever workspace the person is by then

    def list(self, request: Request) -> Response:
        """Give one page, by name."""
        page: Any = self.paginate_queryset(enterable_workspaces(self.person))
        mine = Membership.objects.across_workspaces().filter(user=self.person, workspace__in=page)
        context = {"memberships": {one.workspace_id: one for one in mine}}
        return self.get_paginated_response(
            OwnWorkspaceOutput(page, many=True, context=context).data
        )


class CallerPersonOutput(serializers.Serializer[User]):
    """Who calls."""

    id = serializers.UUIDField()
    email = serializers.EmailField()
    name = serializers.CharField()


class CallerTokenOutput(serializers.Serializer[ApiToken]):
    """The token that calls."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    expires_at = serializers.DateTimeField()


@extend_schema_serializer(many=False)
class CallerOutput(serializers.Serializer[Any]):
    """Who calls, where, and with which rights."""

    person = CallerPersonOutput()
    workspace = OwnWorkspaceOutput()
    token = CallerTokenOutput(allow_null=True, help_text="Null: a browser session calls.")


@extend_schema_view(list=extend_schema(operation_id="me_retrieve", responses=CallerOutput))
class CallerViewSet(WorkspaceViewSet):
    """The caller."""

    model = Membership
    scopes = Scopes(read=ANY_SCOPE, write=ANY_SCOPE)
    serializer_class = CallerOutput
    pagination_class = None  # as the framework means it

    def list(self, request: Request) -> Response:
        """Tell who calls: the person, the workspace with their role, and what the token holds until when."""
        mine = Membership.objects.for_workspace(self.workspace).filter(user=self.person)
        context = {"memberships": {one.workspace_id: one for one in mine}}
        found = {"person": self.person, "workspace": self.workspace, "token": request.auth}
        return Response(CallerOutput(found, context=context).data)


routes = [
    ("me", CallerViewSet),
    ("tokens", TokenViewSet),
    ("member-tokens", MemberTokenViewSet),
    ("sessions", OwnSessionViewSet),
    ("workspaces", OwnWorkspaceViewSet),
]
