"""What a page may reach: rows of its workspace and its person, with today's membership; and whether it may stay."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.sessions.models import Session
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from chat.engine.reading import find_active_turn
from chat.models import Conversation, Message, QueuedMessage, ToolCall, Turn
from chat.wire.events import CloseCode
from mcp_servers.models import InputRequest
from workspaces.actors import Actor, Source
from workspaces.database.prepared import PreparedRows
from workspaces.database.row_security import everywhere
from workspaces.errors import NotFound, PermissionDenied
from workspaces.middleware import MemberRole, actor_for
from workspaces.models import Membership, User, Workspace
from workspaces.people.entering import (
    ShutOutReason,
    find_shut_out,
    lacks_second_step,
    open_workspaces,
)
from workspaces.scoping import WorkspaceModel

_Row = TypeVar("_Row", bound=WorkspaceModel)


class SocketAccess:
    """One person in one workspace, from one address. Every method reads the database."""

    def __init__(
        self, user: User, slug: str, *, ip_address: str | None, session_key: str | None
    ) -> None:
        """Enter.

        Raises:
            NotFound: not a workspace that is open to this person.
        """
        self.user = user
        self._ip_address = ip_address
        self.session_key = session_key
        self.session_hash: str | None = None
        """What its session was signed in with, as last read; empty: it has ended. None: it was not read yet."""
        workspace = open_workspaces(user).filter(slug=slug).first()
        if workspace is None:
            raise NotFound
        self.workspace: Workspace = workspace
        self.actor: Actor = self._actor(user)

    def conversation(self, pk: UUID) -> Conversation:
        found = _OWN_CONVERSATION.first(self.workspace.pk, self.user.pk, pk)
        if found is None:  # say why
            return self._fetch(Conversation, pk)
        role = MemberRole(found.owner_role, found.owner_is_auditor)  # type: ignore[attr-defined]  # annotated below
        self.actor = self._actor(found.owner, role)
        return found

    def message(self, pk: UUID) -> Message:
        self._require_member()
        rows = Message.objects.for_workspace(self.workspace)
        return rows.filter(conversation__owner=self.user, conversation__deleted_at=None).fetch(pk)

    def turn(self, pk: UUID) -> Turn:
        return self._fetch(Turn, pk)

    def tool_call(self, pk: UUID) -> ToolCall:
        self._require_member()
        rows = ToolCall.objects.for_workspace(self.workspace).visible_to(self.user)
        return rows.select_related("turn").fetch(pk)

    def input_request(self, pk: UUID) -> InputRequest:
        return self._fetch(InputRequest, pk)

    def queued(self, pk: UUID) -> QueuedMessage:
        self._require_member()
        rows = QueuedMessage.objects.for_workspace(self.workspace)
        return rows.filter(conversation__owner=self.user, conversation__deleted_at=None).fetch(pk)

    def is_active(self, conversation: Conversation) -> bool:
        """Whether a turn runs in it."""
        return find_active_turn(self.workspace.pk, conversation.pk) is not None

    def reason_to_close(self) -> CloseCode | None:
        """The code to close the socket with, or None if the person may stay."""
        user = _USER.first(self.user.pk)
        if user is not None and not user.is_active:
            return CloseCode.ACCOUNT_OFF
        read_sessions([self])
        if user is None or not signed_in([self], {user.pk: user}):
            return CloseCode.SIGN_IN_AGAIN
        member = _MEMBER.first(self.workspace.pk, self.user.pk)
        if member is not None and not lacks_second_step(user, member.workspace):
            return None
        return why_shut_out(user, self.workspace.slug)

    def _fetch(self, model: type[_Row], pk: UUID) -> _Row:
        self._require_member()
        rows: Any = model.objects.for_workspace(self.workspace)
        found: _Row = rows.visible_to(self.user).filter(workspace=self.workspace).fetch(pk)
        return found

    def _require_member(self) -> None:
        self.actor = self._actor(self.user)
        if self.actor.role is None:
            raise PermissionDenied(_("You are no longer a member of this workspace."))

    def _actor(self, user: User, known: MemberRole | None = None) -> Actor:
        return actor_for(
            user,
            self.workspace,
            source=Source.CHAT,
            ip_address=self._ip_address,
            request_id=str(uuid7()),
            known=known,
        )


def why_shut_out(user: User, slug: str) -> CloseCode:
    """Why this workspace is not open to them; a stranger learns nothing of it."""
    with everywhere():
        shut_out = find_shut_out(user, slug=slug)
    return CloseCode.NOT_A_MEMBER if shut_out is None else _CODES[shut_out.reason]


_CODES = {
    ShutOutReason.WORKSPACE_SUSPENDED: CloseCode.WORKSPACE_SUSPENDED,
    ShutOutReason.SUSPENDED: CloseCode.ACCESS_SUSPENDED,
    ShutOutReason.NO_SECOND_STEP: CloseCode.TWO_STEPS_NEEDED,
}


def read_sessions(accesses: Collection[SocketAccess]) -> None:
    """See which sessions still live; one statement for all."""
    keys = {access.session_key for access in accesses if access.session_key}
    rows = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    hashes = {row.session_key: row.get_decoded().get(HASH_SESSION_KEY, "") for row in rows}
    for access in accesses:
        access.session_hash = hashes.get(access.session_key or "", "")


def signed_in(accesses: Collection[SocketAccess], users: Mapping[UUID, User]) -> set[SocketAccess]:
    """Those whose sessions lived when they were last read, and were not ended by a change of the password since.

    Args:
        users: their people as they are now; one who is missing has no session.
    """
    return {
        access
        for access in accesses
        if (user := users.get(access.user.pk)) is not None
        and constant_time_compare(access.session_hash or "", user.get_session_auth_hash())
    }


def _user(user_id: UUID) -> Any:
    return User.objects.filter(pk=user_id).order_by()


def _member(workspace_id: UUID, user_id: UUID) -> Any:
    members = Membership.objects.for_workspace(workspace_id).filter(user_id=user_id)
    rows = members.filter(user__is_active=True, workspace__is_active=True)
    return rows.select_related("workspace").only("pk", "workspace__requires_two_steps").order_by()


def _own_conversation(workspace_id: UUID, user_id: UUID, pk: UUID) -> Any:
    rows = Conversation.objects.for_workspace(workspace_id).filter(
        pk=pk,
        owner_id=user_id,
        deleted_at=None,
        owner__is_active=True,
        owner__memberships__workspace_id=workspace_id,
        owner__memberships__suspended_at=None,
    )
    return (
        rows.select_related("owner")
        .annotate(
            owner_role=F("owner__memberships__role"),
            owner_is_auditor=F("owner__memberships__is_auditor"),
        )
        .order_by()
    )


_OWN_CONVERSATION = PreparedRows[Conversation](_own_conversation, UUID, UUID, UUID)
_USER = PreparedRows[User](_user, UUID)
_MEMBER = PreparedRows[Membership](_member, UUID, UUID)
