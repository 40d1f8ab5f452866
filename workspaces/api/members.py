"""Members over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from workspaces.actors import Role
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.errors import InvalidInput
from workspaces.lists.row_pages import RowPage, page_after
from workspaces.models import ROLE_CHOICES, Membership, WorkspaceSession
from workspaces.people.access import KINDS, AccessCursor, AccessPage, access_page
from workspaces.people.browser_sessions import SESSION_ORDER, device, end_sessions, sessions_of
from workspaces.people.ownership import transfer_ownership
from workspaces.people.services import change_membership, remove_member
from workspaces.people.suspending import LONGEST_REASON, resume_member, suspend_member
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet


class MemberOutput(serializers.ModelSerializer[Membership]):
    """A person in the workspace."""

    user = serializers.UUIDField(source="user_id")
    email = serializers.EmailField(source="user.email")
    name = serializers.CharField(source="user.display_name")
    is_account_active = serializers.BooleanField(
        source="user.is_active",
        help_text="False: the platform's owner has switched the account off.",
    )

    class Meta:
        model = Membership
        fields = (
            *("id", "user", "email", "name", "is_account_active", "role", "is_auditor"),
            *("suspended_at", "suspension_reason", "created_at"),
        )
        read_only_fields = fields


class RoleInput(serializers.Serializer[Any]):
    role = serializers.ChoiceField(ROLE_CHOICES, required=False)
    is_auditor = serializers.BooleanField(required=False)


class SuspendInput(serializers.Serializer[Any]):
    reason = serializers.CharField(
        max_length=LONGEST_REASON,
        allow_blank=True,
        default="",
        help_text="What the person reads on the page that tells them.",
    )


class TransferInput(serializers.Serializer[Any]):
    confirmation = serializers.CharField(max_length=100, help_text="The name of the workspace.")


class AccessOutput(serializers.Serializer[Any]):
    """Something that a member may use."""

    kind = serializers.CharField(help_text="permission, bud, server or sign-in.")
    name = serializers.CharField()
    why = serializers.CharField()


class AccessPageOutput(serializers.Serializer[Any]):
    """Some of what a member may use."""

    results = AccessOutput(many=True, source="rows")
    next = serializers.SerializerMethodField()

    @extend_schema_field(serializers.URLField(allow_null=True))
    def get_next(self, page: AccessPage) -> str | None:
        return _next(self.context["request"], str(page.following or ""))


class AccessInput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(list(KINDS), required=False)
    cursor = serializers.CharField(max_length=2_000, required=False)


class SessionOutput(serializers.Serializer[Any]):
    """A browser in which the member is signed in."""

    id = serializers.UUIDField()
    device = serializers.SerializerMethodField()
    ip_address = serializers.IPAddressField(allow_null=True)
    created_at = serializers.DateTimeField()
    last_seen_at = serializers.DateTimeField()

    def get_device(self, row: WorkspaceSession) -> str:
        return device(row.user_agent)


class SessionPageOutput(serializers.Serializer[Any]):
    """Some of a member's sessions."""

    results = SessionOutput(many=True, source="rows")
    next = serializers.SerializerMethodField()

    @extend_schema_field(serializers.URLField(allow_null=True))
    def get_next(self, page: RowPage[WorkspaceSession]) -> str | None:
        return _next(self.context["request"], page.following)


class SessionsInput(serializers.Serializer[Any]):
    cursor = serializers.CharField(max_length=2_000, required=False)


def _next(request: Request, mark: str) -> str | None:
    """The address of the next page."""
    return replace_query_param(request.build_absolute_uri(), "cursor", mark) if mark else None


class SignOutInput(serializers.Serializer[Any]):
    session = serializers.UUIDField(allow_null=True, default=None, help_text="None: all of them.")


class SignedOutOutput(serializers.Serializer[Any]):
    ended = serializers.IntegerField(help_text="How many sessions ended.")


class AllMembersViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """What is said of members, for those who manage them; suspended ones too."""

    model = Membership
    scopes = Scopes(read="members:write", write="members:write")
    orderings: ClassVar[Any] = ("id", "-id", "created_at")

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace."""
        require(self.actor, Permission.MANAGE_MEMBERS, workspace_id=self.workspace.pk)
        rows = Membership.objects.also_suspended(self.workspace)
        return rows.select_related("user", "workspace")


class MemberViewSet(AllMembersViewSet):
    """Members, for those who manage them; suspended ones too."""

    serializer_class = MemberOutput
    parameters: ClassVar[Any] = {"access": ("kind", "cursor"), "sessions": ("cursor",)}

    @extend_schema(request=RoleInput, responses=MemberOutput)
    @action(detail=True, methods=["post"])
    def role(self, request: Request, pk: str) -> Response:
        """Change the role or the right to audit; what is left out stays."""
        membership = self.get_object()
        given = self.read(RoleInput)
        changed = change_membership(
            membership=membership,
            role=Role(given["role"]) if "role" in given else None,
            is_auditor=given.get("is_auditor"),
            actor=self.actor,
        )
        return self.answer(changed)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a member; what they made stays."""
        remove_member(membership=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=SuspendInput, responses=MemberOutput)
    @action(detail=True, methods=["post"])
    def suspend(self, request: Request, pk: str) -> Response:
        """Shut a member out; everything of theirs is kept."""
        membership = self.get_object()
        given = self.read(SuspendInput)
        return self.answer(
            suspend_member(membership=membership, reason=given["reason"], actor=self.actor)
        )

    @extend_schema(request=None, responses=MemberOutput)
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        """Let a suspended member in again."""
        return self.answer(resume_member(membership=self.get_object(), actor=self.actor))

    @extend_schema(request=TransferInput, responses={204: None})
    @action(detail=True, methods=["post"], url_path="make-owner")
    def make_owner(self, request: Request, pk: str) -> Response:
        """Hand the workspace to this member; the caller becomes an administrator."""
        to = self.get_object()
        typed = self.read(TransferInput)["confirmation"]
        transfer_ownership(to=to, typed=typed, actor=self.actor)
        return Response(status=204)

    @extend_schema(parameters=[AccessInput], responses=AccessPageOutput, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def access(self, request: Request, pk: str) -> Response:
        """What the member may use, and why: rights, buds, servers and sign-ins, each by name, 100 on a page."""
        given = self.read_query(AccessInput)
        try:
            after = AccessCursor.read(given["cursor"]) if given.get("cursor") else None
        except InvalidInput as error:
            raise ParseError("This cursor is not valid here.") from error
        page = access_page(self.get_object(), kind=given.get("kind"), after=after)
        return Response(AccessPageOutput(page, context={"request": request}).data)

    @extend_schema(parameters=[SessionsInput], responses=SessionPageOutput, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def sessions(self, request: Request, pk: str) -> Response:
        """The member's browser sessions in this workspace, the latest used first, 100 on a page."""
        membership = self.get_object()
        asked = self.read_query(SessionsInput)
        rows = sessions_of(membership.user_id, membership.workspace)
        try:
            page = page_after(rows, asked.get("cursor", ""), by=SESSION_ORDER)
        except InvalidInput as error:
            raise ParseError("This cursor is not valid here.") from error
        return Response(SessionPageOutput(page, context={"request": request}).data)

    @extend_schema(request=SignOutInput, responses=SignedOutOutput)
    @action(detail=True, methods=["post"], url_path="sign-out")
    def sign_out(self, request: Request, pk: str) -> Response:
        """End one session, or all of them."""
        membership = self.get_object()
        chosen = self.read(SignOutInput)["session"]
        number = end_sessions(
            membership=membership,
            session_ids=[chosen] if chosen is not None else None,
            actor=self.actor,
        )
        if chosen is not None and not number:
            raise InvalidInput(
                fields={"session": [_("This session does not exist, or has ended.")]}
            )
        return Response(SignedOutOutput({"ended": number}).data)


routes = [("members", MemberViewSet)]
