"""Invitations over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.actors import Role
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.delivery.mails import public_url
from workspaces.models import ROLE_CHOICES, Invitation, JoinLink
from workspaces.people.inviting import (
    MOST,
    InvitationResult,
    Invitee,
    invite_many,
    mail_many,
    resend_invitation,
)
from workspaces.people.joining import MOST_DAYS, MOST_USES, make_join_link, revoke_join_link
from workspaces.people.services import revoke_invitation
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet
from workspaces.words.mail_addresses import typed_address


class InvitationOutput(serializers.ModelSerializer[Invitation]):
    """An offer of a membership."""

    invited_by = serializers.UUIDField(source="invited_by_id", allow_null=True)

    class Meta:
        model = Invitation
        fields = (
            *("id", "email", "role", "is_auditor", "invited_by", "created_at"),
            *("expires_at", "accepted_at", "revoked_at"),
        )
        read_only_fields = fields


class InviteeInput(serializers.Serializer[Any]):
    email = serializers.CharField(max_length=254)
    role = serializers.ChoiceField(ROLE_CHOICES, default=Role.MEMBER.value)
    is_auditor = serializers.BooleanField(default=False)


class InvitationsInput(serializers.Serializer[Any]):
    people = InviteeInput(many=True, help_text=f"Up to {MOST}. All of them are invited, or nobody.")


class InvitedOutput(serializers.Serializer[Any]):
    """What became of an invitation."""

    invitation = InvitationOutput()
    link = serializers.CharField(
        allow_blank=True, help_text="To be passed on by hand, where no mail server is configured."
    )
    fault = serializers.CharField(
        allow_blank=True, help_text="Why it could not be mailed; then it is revoked."
    )


class InvitationViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Invitations, for those who manage members."""

    model = Invitation
    scopes = Scopes(read="members:write", write="members:write")
    serializer_class = InvitationOutput
    orderings: ClassVar[Any] = ("-id", "created_at")
    shown_once: ClassVar[Any] = frozenset({"link"})

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace."""
        require(self.actor, Permission.MANAGE_MEMBERS, workspace_id=self.workspace.pk)
        return super().rows().select_related("workspace")

    @extend_schema(request=InvitationsInput, responses={201: InvitedOutput(many=True)})
    def create(self, request: Request) -> Response:
        """Invite people."""
        given = self.read(InvitationsInput)["people"]
        people = [
            Invitee(
                line=line,
                email=typed_address(one["email"]),
                role=Role(one["role"]),
                is_auditor=one["is_auditor"],
            )
            for line, one in enumerate(given, 1)
        ]
        made = invite_many(workspace=self.workspace, people=people, actor=self.actor)
        return self._answer(mail_many(made, actor=self.actor))

    @extend_schema(request=None, responses={201: InvitedOutput(many=True)})
    @action(detail=True, methods=["post"], pagination_class=None)
    def resend(self, request: Request, pk: str) -> Response:
        """Send a new link; the old one ends."""
        made = resend_invitation(invitation=self.get_object(), actor=self.actor)
        return self._answer(mail_many([made], actor=self.actor))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke an invitation."""
        revoke_invitation(invitation=self.get_object(), actor=self.actor)
        return Response(status=204)

    @staticmethod
    def _answer(sent: list[InvitationResult]) -> Response:
        return Response(InvitedOutput(sent, many=True).data, status=201)


class JoinLinkOutput(serializers.ModelSerializer[JoinLink]):
    """A link by which people of a mail domain join by themselves."""

    made_by = serializers.UUIDField(source="made_by_id", allow_null=True)

    class Meta:
        model = JoinLink
        fields = (
            *("id", "email_domain", "role", "hint", "uses", "most_uses", "made_by"),
            *("created_at", "expires_at", "revoked_at"),
        )
        read_only_fields = fields


class JoinLinkInput(serializers.Serializer[Any]):
    email_domain = serializers.CharField(max_length=254)
    role = serializers.ChoiceField(ROLE_CHOICES, default=Role.MEMBER.value)
    days = serializers.IntegerField(min_value=1, max_value=MOST_DAYS, default=7)
    most_uses = serializers.IntegerField(min_value=1, max_value=MOST_USES, default=25)
    lets_in_anybody = serializers.BooleanField(
        default=False,
        help_text="Anybody can get an address at the domain of a public mail service, such as gmail.com. A link for one"
        " is refused at `email_domain` unless this is true.",
    )


class JoinLinkMadeOutput(serializers.Serializer[Any]):
    """A new link, and where it leads."""

    join_link = JoinLinkOutput()
    link = serializers.CharField(help_text="Shown only now.")


class JoinLinkViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Join links, for those who manage members."""

    model = JoinLink
    scopes = Scopes(read="members:write", write="members:write")
    serializer_class = JoinLinkOutput
    orderings: ClassVar[Any] = ("-id", "created_at")
    shown_once: ClassVar[Any] = frozenset({"link"})

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace."""
        require(self.actor, Permission.MANAGE_MEMBERS, workspace_id=self.workspace.pk)
        return super().rows()

    @extend_schema(request=JoinLinkInput, responses={201: JoinLinkMadeOutput})
    def create(self, request: Request) -> Response:
        """Make a link."""
        given = self.read(JoinLinkInput)
        link, token = make_join_link(
            workspace=self.workspace,
            email_domain=given["email_domain"],
            role=Role(given["role"]),
            days=given["days"],
            most_uses=given["most_uses"],
            lets_in_anybody=given["lets_in_anybody"],
            actor=self.actor,
        )
        address = public_url(reverse("workspaces:join_link", args=[token]))
        made = JoinLinkMadeOutput({"join_link": link, "link": address})
        return Response(made.data, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke a link; whoever came by it stays."""
        revoke_join_link(link=self.get_object(), actor=self.actor)
        return Response(status=204)


routes = [("invitations", InvitationViewSet), ("join-links", JoinLinkViewSet)]
