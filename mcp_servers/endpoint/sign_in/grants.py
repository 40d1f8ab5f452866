"""What a person allows a client: a code that serves once, then tokens, each good for one workspace's endpoint."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import F, OuterRef, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.services import EntryDraft, record
from mcp_servers.endpoint.sign_in import ending
from mcp_servers.endpoint.sign_in.ending import EndReason
from mcp_servers.endpoint.sign_in.proofs import is_proof_of, proof_of
from mcp_servers.endpoint.sign_in.redirects import host_of
from mcp_servers.models import ClientSignIn, ClientToken, KnownClient, TokenKind
from workspaces.actors import Actor, ActorKind, Source
from workspaces.database import database_now
from workspaces.database.prepared import PreparedRows
from workspaces.database.row_security import everywhere, in_workspace
from workspaces.errors import PermissionDenied
from workspaces.models import Membership, User, Workspace
from workspaces.people.tokens import hash_token
from workspaces.roles import require_person
from workspaces.secret_memory import remember_secret

CODE_LIFE: Final = timedelta(seconds=60)
ACCESS_LIFE: Final = timedelta(hours=1)
REFRESH_LIFE: Final = timedelta(days=30)
SIGN_IN_LIFE: Final = timedelta(days=365)
"""However often it is used, a person is asked again after that."""
NOTICED_FOR: Final = timedelta(days=7)
"""For so long after its use, a second use of a refresh token ends the sign-in. Later it is merely refused."""
MOST_SIGN_INS: Final = 50
"""Of one person in one workspace; a further one ends the one that was not used for the longest time."""
PREFIXES: Final = {
    TokenKind.CODE: "trk_",
    TokenKind.ACCESS: "trc_",
    TokenKind.REFRESH: "trr_",
}
_TOUCH_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client asks a person for, checked."""

    client: KnownClient
    slug: str
    """Of the workspace whose endpoint it wants to use; there may be none of that name."""
    redirect_uri: str
    scopes: Sequence[str] | None
    """None: it named none."""
    state: str | None
    code_challenge: str
    resource: str


class Tokens(NamedTuple):
    """What a client is given."""

    access: str
    refresh: str
    scopes: Sequence[str]


class Live(NamedTuple):
    """A sign-in that may be used now, and what its person is in its workspace today."""

    sign_in: ClientSignIn
    role: str
    is_auditor: bool


class NotLive(Exception):
    """A code or token serves no more, or never did."""


@transaction.atomic
def allow(
    *, asked: Asked, workspace: Workspace, scopes: Sequence[str], user: User, actor: Actor
) -> str:
    """Let a client in. Gives the code that it exchanges for tokens.

    Raises:
        PermissionDenied: the workspace lets no clients in, the person is no member, or the actor is a program.
    """
    require_person(actor)
    workspace = Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    members = Membership.objects.for_workspace(workspace.pk)
    if not workspace.allows_mcp_clients or not members.filter(user=user).exists():
        raise PermissionDenied(_("This workspace does not let other MCP clients in."))
    mine = ClientSignIn.objects.for_workspace(workspace).filter(user=user).select_related("user")
    last = F("last_used_at").desc(nulls_last=True)
    ending.end(mine.order_by(last, "-created_at")[MOST_SIGN_INS - 1 :], EndReason.TOO_MANY, actor)
    now = database_now()
    with everywhere():
        KnownClient.objects.filter(pk=asked.client.pk).update(used_at=now)
    sign_in = ClientSignIn.objects.create(
        workspace=workspace,
        client=asked.client,
        user=user,
        client_name=asked.client.name,
        redirect_uri=asked.redirect_uri,
        redirect_host=host_of(asked.redirect_uri)[:255],
        scopes=list(scopes),
        code_challenge=asked.code_challenge,
        resource=asked.resource,
        proof=proof_of(user),
        expires_at=now + SIGN_IN_LIFE,
    )
    ending.tell(Action.CLIENT_ALLOWED, sign_in, actor)
    return _issue(sign_in, TokenKind.CODE, now + CODE_LIFE)


def refuse(*, asked: Asked, workspace: Workspace, actor: Actor) -> None:
    """Note that a person did not let a client in."""
    record(
        EntryDraft(
            action=Action.CLIENT_REFUSED,
            actor=actor,
            workspace_id=workspace.pk,
            details={"name": asked.client.name, "returns_to": host_of(asked.redirect_uri)},
        )
    )


def find(plain: str, kind: TokenKind, *, client: KnownClient | None = None) -> ClientToken | None:
    """A code or token that may be used now. One that serves once and comes again ends its sign-in.

    Args:
        client: whose it has to be.
    """
    if not plain.startswith(PREFIXES[kind]) or len(plain) > 200:
        return None
    rows: Any = ClientToken.objects.across_workspaces().select_related(
        "sign_in__user", "sign_in__workspace"
    )
    found: ClientToken | None = rows.filter(token_hash=hash_token(plain), kind=kind).first()
    if found is None or (client is not None and found.sign_in.client_id != client.pk):
        return None
    remember_secret(plain, workspace_id=found.workspace_id)
    if found.used_at is not None:
        _end_reused(found.sign_in)
        return None
    now = database_now()
    if min(found.expires_at, found.sign_in.expires_at) <= now or not _is_live(found.sign_in):
        return None
    return found


def exchange(token: ClientToken, *, scopes: Sequence[str] | None = None) -> Tokens:
    """Give a client new tokens for a code or a refresh token, which serves no more from then on.

    Args:
        scopes: fewer ones from now on; None: as before.

    Raises:
        NotLive: it was used or has ended at the same moment.
    """
    sign_in = token.sign_in
    with in_workspace(sign_in.workspace_id):
        given = _exchange(token, sign_in, scopes)
        if given is None:
            _end_reused(sign_in)
            raise NotLive
        return given


@transaction.atomic
def _exchange(
    token: ClientToken, sign_in: ClientSignIn, scopes: Sequence[str] | None
) -> Tokens | None:
    now = database_now()
    rows = ClientToken.objects.for_workspace(sign_in.workspace_id).filter(sign_in=sign_in)
    noticed = min(token.expires_at, now + NOTICED_FOR)
    if token.kind == TokenKind.CODE:
        noticed = now + NOTICED_FOR
    fresh = rows.filter(pk=token.pk, used_at=None)
    if fresh.update(used_at=now, expires_at=noticed) != 1:
        return None
    rows.filter(kind=TokenKind.ACCESS).delete()
    sign_in.last_used_at = now
    sign_in.begun_at = sign_in.begun_at or now
    if scopes is not None:
        sign_in.scopes = list(scopes)
    sign_in.save(update_fields=["last_used_at", "begun_at", "scopes", "updated_at"])
    return Tokens(
        access=_issue(sign_in, TokenKind.ACCESS, now + ACCESS_LIFE),
        refresh=_issue(sign_in, TokenKind.REFRESH, min(now + REFRESH_LIFE, sign_in.expires_at)),
        scopes=sign_in.scopes,
    )


def revoke(token: ClientToken, *, ip_address: str | None, request_id: str) -> None:
    """End the sign-in that a token belongs to, as its client asks. Source: RFC 7009, section 2.1."""
    actor = actor_of(token.sign_in, ip_address=ip_address, request_id=request_id)
    ending.end([token.sign_in], EndReason.CLIENT, actor)


def authenticate(plain: str) -> Live | None:
    """The sign-in of a client with that access token, its person still an active member; None otherwise."""
    if not plain.startswith(PREFIXES[TokenKind.ACCESS]):
        return None
    token: Any = _OF_HASH.first(hash_token(plain))
    now = timezone.now()
    if token is None or min(token.expires_at, token.sign_in.expires_at) <= now:
        return None
    remember_secret(plain, workspace_id=token.workspace_id)
    sign_in: ClientSignIn = token.sign_in
    if token.member_role is None or not is_proof_of(sign_in.proof, sign_in.user):
        return None
    if sign_in.last_used_at is None or now - sign_in.last_used_at > _TOUCH_EVERY:
        with in_workspace(sign_in.workspace_id):
            mine = ClientSignIn.objects.for_workspace(sign_in.workspace_id)
            mine.filter(pk=sign_in.pk).update(last_used_at=now)
    return Live(sign_in, token.member_role, bool(token.member_is_auditor))


def actor_of(sign_in: ClientSignIn, *, ip_address: str | None, request_id: str) -> Actor:
    """A client that comes for its tokens, as the log has it."""
    return Actor(
        kind=ActorKind.USER,
        label=sign_in.user.email,
        source=Source.GATEWAY,
        user_id=sign_in.user_id,
        workspace_id=sign_in.workspace_id,
        ip_address=ip_address,
        request_id=request_id,
        sign_in="client",
        is_address_confirmed=sign_in.user.is_address_confirmed,
        token_id=sign_in.pk,
        client=sign_in.client_name,
        scopes=frozenset(sign_in.scopes),
    )


def _is_live(sign_in: ClientSignIn) -> bool:
    """Whether its person may still come in with it."""
    user, workspace = sign_in.user, sign_in.workspace
    members = Membership.objects.across_workspaces().filter(
        workspace_id=sign_in.workspace_id, user_id=sign_in.user_id
    )
    return (
        user.is_active
        and workspace.is_active
        and workspace.allows_mcp_clients
        and is_proof_of(sign_in.proof, user)
        and members.exists()
    )


def _end_reused(sign_in: ClientSignIn) -> None:
    """Whoever has the token besides its client loses it, and the log says so."""
    with transaction.atomic(), in_workspace(sign_in.workspace_id):
        ending.tell(Action.CLIENT_REUSED, sign_in, None)
        ending.end([sign_in], EndReason.REUSED)


def _issue(sign_in: ClientSignIn, kind: TokenKind, expires_at: datetime) -> str:
    plain = PREFIXES[kind] + secrets.token_urlsafe(32)
    remember_secret(plain, workspace_id=sign_in.workspace_id)
    ClientToken.objects.create(
        workspace_id=sign_in.workspace_id,
        sign_in=sign_in,
        kind=kind,
        token_hash=hash_token(plain),
        expires_at=expires_at,
    )
    return plain


def _of_hash(token_hash: str) -> Any:
    rows = ClientToken.objects.across_workspaces().select_related(
        "sign_in__user", "sign_in__workspace"
    )
    membership = Membership.objects.across_workspaces().filter(
        workspace_id=OuterRef("workspace_id"), user_id=OuterRef("sign_in__user_id")
    )
    return (
        rows.filter(
            token_hash=token_hash,
            kind=TokenKind.ACCESS,
            sign_in__user__is_active=True,
            sign_in__workspace__is_active=True,
        )
        .annotate(
            member_role=Subquery(membership.values("role")),
            member_is_auditor=Subquery(membership.values("is_auditor")),
        )
        .order_by()
    )


_OF_HASH = PreparedRows[ClientToken](_of_hash, str)
