"""API tokens: 256 random bits, stored only as a hash, for one person in one workspace."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, NamedTuple

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
from workspaces.roles import scopes_of
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
_OF_EVERYONE = frozenset({"chat", "servers:read", "servers:write"})
"""Members see the workspace's servers, and have servers of their own."""
LONGEST_LIFE = timedelta(days=366)
_TOUCH_EVERY = timedelta(minutes=1)


def scopes_for(actor: Actor) -> list[tuple[str, str]]:
    """The scopes, with what each allows, that a token of this person could make use of."""
    useful = _OF_EVERYONE | scopes_of(actor)
    return [(scope, gettext(about)) for scope, about in SCOPES.items() if scope in useful]


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
        InvalidInput: an unknown scope, none at all, or an expiry out of bounds.
    """
    fields: dict[str, list[str]] = {}
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        fields["scopes"] = [
            _("Unknown scope: %(unknown)s.") % {"unknown": unknown[0]}
            if unknown
            else _("Choose a scope.")
        ]
    now = timezone.now()
    if not now < expires_at <= now + LONGEST_LIFE:
        fields["expires_at"] = [_("Choose a moment within the next year.")]
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


@transaction.atomic
def revoke_token(*, token: ApiToken, actor: Actor) -> None:
    """End a token at once."""
    record_deleted(token, actor=actor)
    token.delete()


class LiveToken(NamedTuple):
    """A token that may be used now, and what its person is in its workspace today."""

    token: ApiToken
    role: str
    is_auditor: bool


def authenticate(plain: str) -> LiveToken | None:
    """The live token with that text, its owner still an active member; None otherwise."""
    if not plain.startswith(PREFIX):
        return None
    now = timezone.now()
    token: Any = _OF_HASH.first(hash_token(plain))
    if token is None or token.expires_at <= now:
        return None
    # Only now: what strangers send must not decide what is masked.
    remember_secret(plain, workspace_id=token.workspace_id)
    if token.member_role is None:
        return None
    if token.last_used_at is None or now - token.last_used_at > _TOUCH_EVERY:
        with in_workspace(token.workspace_id):
            mine = ApiToken.objects.for_workspace(token.workspace)
            mine.filter(pk=token.pk).update(last_used_at=now)
    return LiveToken(token, token.member_role, bool(token.member_is_auditor))


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
