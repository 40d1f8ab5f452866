"""API tokens: 256 random bits, stored only as a hash, for one person in one workspace."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _

from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted
from workspaces.database.prepared import PreparedRows
from workspaces.database.row_security import in_workspace
from workspaces.errors import InvalidInput
from workspaces.models import ApiToken, Membership, User, Workspace
from workspaces.people.entering import lacks_second_step
from workspaces.roles import Permission, require, require_person, scopes_of
from workspaces.secret_memory import remember_secret

PREFIX = "trl_"
SCOPES: dict[str, str] = {
    "chat": gettext_noop("Use buds: conversations and messages"),
    "buds:write": gettext_noop("Change buds"),
    "servers:read": gettext_noop("See MCP servers and tools"),
    "servers:write": gettext_noop("Change, test and use MCP servers and tools"),
    "members:write": gettext_noop("Change members and invitations"),
    "workspace:write": gettext_noop("Change the workspace"),
    "audit:read": gettext_noop("Read the audit log"),
    "audit:write": gettext_noop("Keep views and schedules of the log, and sign off reviews"),
}
PLATFORM_READ: Final = "platform:read"
PLATFORM_WRITE: Final = "platform:write"
PLATFORM_SCOPES: dict[str, str] = {
    PLATFORM_READ: gettext_noop(
        "Whole installation: see workspaces, accounts, providers and state"
    ),
    PLATFORM_WRITE: gettext_noop(
        "Whole installation: change workspaces, accounts and shared providers"
    ),
}
"""For the platform's owner alone, who gives them to nobody but themselves."""
MCP_SCOPES: dict[str, str] = {
    "mcp:read": gettext_noop(
        "In another MCP client: use resources, prompts, and tools that only read"
    ),
    "mcp:call": gettext_noop("In another MCP client: use all tools, resources and prompts"),
}
"""Of tokens that open the workspace's MCP endpoint. They open nothing else, and no other token opens that."""
_OF_EVERYONE = frozenset({"chat", "servers:read", "servers:write"})
"""Members see the workspace's servers, and have servers of their own."""
LONGEST_LIFE = timedelta(days=366)
LONGEST_PLATFORM_LIFE = timedelta(days=90)
_TOUCH_EVERY = timedelta(minutes=1)


def scopes_for(actor: Actor) -> list[tuple[str, str]]:
    """The scopes of REST, with what each allows, that a token of this person could make use of."""
    useful = (
        _OF_EVERYONE | scopes_of(actor) | (set(PLATFORM_SCOPES) if owns_platform(actor) else set())
    )
    known = SCOPES | PLATFORM_SCOPES
    return [(scope, gettext(about)) for scope, about in known.items() if scope in useful]


def owns_platform(actor: Actor) -> bool:
    """Whether a token that the actor makes here may be for the platform: an owner's who is a member, without a token."""
    return actor.is_superuser and actor.role is not None and actor.scopes is None


def hash_token(plain: str) -> str:
    """SHA-256; the token is random, so nothing slower is needed."""
    return hashlib.sha256(plain.encode()).hexdigest()


@transaction.atomic
def issue_token(
    *,
    workspace: Workspace,
    user: User,
    name: str,
    scopes: Collection[str],
    expires_at: datetime,
    actor: Actor,
) -> tuple[ApiToken, str]:
    """Make a token; returns its row and the plain text, which is never to be had again.

    Raises:
        PermissionDenied: the actor is a program with a token.
        InvalidInput: an unknown scope, none at all, or an expiry out of bounds. One of the platform is unknown to whoever
            does not own it, and for anybody else's token.
    """
    require_person(actor)
    fields: dict[str, list[str]] = {}
    is_own = actor.user_id == user.pk and owns_platform(actor)
    known = {*SCOPES, *MCP_SCOPES, *(PLATFORM_SCOPES if is_own else ())}
    unknown = sorted(set(scopes) - known)
    if unknown or not scopes:
        fields["scopes"] = [
            _("Unknown scope: %(unknown)s.") % {"unknown": unknown[0]}
            if unknown
            else _("Choose a scope.")
        ]
    elif MCP_SCOPES.keys() & set(scopes) and set(scopes) - MCP_SCOPES.keys():
        fields["scopes"] = [_("A token for MCP clients opens nothing else. Make a second token.")]
    now = timezone.now()
    if not now < expires_at <= now + LONGEST_LIFE:
        fields["expires_at"] = [_("Choose a moment within the next year.")]
    elif expires_at > now + LONGEST_PLATFORM_LIFE and not PLATFORM_SCOPES.keys().isdisjoint(scopes):
        message = _(
            "A token for the whole installation ends within %(days)s days. Choose a shorter time."
        )
        fields["expires_at"] = [message % {"days": LONGEST_PLATFORM_LIFE.days}]
    if not name.strip():
        fields["name"] = [_("Give the token a name.")]
    if fields:
        raise InvalidInput(fields=fields)
    plain = PREFIX + secrets.token_urlsafe(32)
    remember_secret(plain, workspace_id=workspace.pk)
    token = ApiToken.objects.create(
        workspace=workspace,
        user=user,
        name=name.strip(),
        token_hash=hash_token(plain),
        hint=plain[:8],
        scopes=sorted(set(scopes)),
        expires_at=expires_at,
    )
    record_created(token, actor=actor)
    return token, plain


def revoke_token(*, token: ApiToken, actor: Actor) -> None:
    """End a token at once: one's own, or that of a member whom the actor manages.

    Raises:
        PermissionDenied: it is somebody else's, and the actor may not manage members.
    """
    if token.user_id != actor.user_id:
        require(actor, Permission.MANAGE_MEMBERS, workspace_id=token.workspace_id)
    end_token(token=token, actor=actor)


@transaction.atomic
def end_token(*, token: ApiToken, actor: Actor) -> None:
    """End a token together with what it belongs to; nobody is asked for a permission."""
    record_deleted(token, actor=actor)
    token.delete()


class LiveToken(NamedTuple):
    """A token that may be used now, and what its person is in its workspace today."""

    token: ApiToken
    role: str
    is_auditor: bool


def authenticate(plain: str) -> LiveToken | None:
    """The live token with that text, its owner still somebody who may enter; None otherwise."""
    if not plain.startswith(PREFIX):
        return None
    now = timezone.now()
    token: Any = _OF_HASH.first(hash_token(plain))
    if token is None or token.expires_at <= now:
        return None
    # Only now: what strangers send must not decide what is masked.
    remember_secret(plain, workspace_id=token.workspace_id)
    if token.member_role is None or lacks_second_step(token.user, token.workspace):
        return None
    if token.last_used_at is None or now - token.last_used_at > _TOUCH_EVERY:
        with in_workspace(token.workspace_id):
            mine = ApiToken.objects.for_workspace(token.workspace)
            mine.filter(pk=token.pk).update(last_used_at=now)
    return LiveToken(token, token.member_role, bool(token.member_is_auditor))


def find_unexpired(plain: str) -> ApiToken | None:
    """The token with that text, whatever became of its workspace or of the membership of its person."""
    rows = ApiToken.objects.across_workspaces().select_related("user", "workspace")
    return rows.filter(
        token_hash=hash_token(plain), user__is_active=True, expires_at__gt=timezone.now()
    ).first()


def _of_hash(token_hash: str) -> Any:
    rows = ApiToken.objects.across_workspaces().select_related("user", "workspace")
    membership = Membership.objects.across_workspaces().filter(
        workspace_id=OuterRef("workspace_id"), user_id=OuterRef("user_id")
    )
    return (
        rows.filter(token_hash=token_hash, user__is_active=True, workspace__is_active=True)
        .annotate(
            member_role=Subquery(membership.values("role")),
            member_is_auditor=Subquery(membership.values("is_auditor")),
        )
        .order_by()
    )


_OF_HASH = PreparedRows[ApiToken](_of_hash, str)
