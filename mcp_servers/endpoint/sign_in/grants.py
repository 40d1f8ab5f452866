"""What a person allows a client: a code that serves once, then tokens, each good for one workspace's endpoint."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import F, OuterRef, Subquery
from django.utils import timezone
from django.utils.crypto import salted_hmac
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
from workspaces.people.entering import lacks_second_step
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
AGAIN_FOR: Final = timedelta(seconds=10)
"""For so long after its use, a refresh token brings the same tokens again, as long as the new one has not been used.

Two windows of one client refresh at the same moment, or an answer is lost on its way.
"""
MOST_SIGN_INS: Final = 50
"""Of one person in one workspace; a further one ends the one that was not used for the longest time."""
PREFIXES: Final = {
    TokenKind.CODE: "trk_",
    TokenKind.ACCESS: "trc_",
    TokenKind.REFRESH: "trr_",
}
_SALT: Final = "mcp_servers.endpoint.sign_in.successor"
_TOUCH_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
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


class IssuedTokens(NamedTuple):
    """What a client is given."""

    access: str
    refresh: str
    scopes: Sequence[str]
    seconds: int
    """Of the access token's life."""


class LiveSignIn(NamedTuple):
    """A sign-in that may be used now, and what its person is in its workspace today."""

    sign_in: ClientSignIn
    role: str
    is_auditor: bool


class InvalidGrant(Exception):
    """A code or token serves no more, or never did."""


@transaction.atomic
def allow(
    *,
    asked: AuthorizationRequest,
    workspace: Workspace,
    scopes: Sequence[str],
    user: User,
    actor: Actor,
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
    plain = PREFIXES[TokenKind.CODE] + secrets.token_urlsafe(32)
    return _issue(sign_in, TokenKind.CODE, now + CODE_LIFE, plain)


def refuse(*, asked: AuthorizationRequest, workspace: Workspace, actor: Actor) -> None:
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
    now = database_now()
    if found.used_at is not None and not _may_come_again(found, now):
        _end_reused(found.sign_in)
        return None
    if min(found.expires_at, found.sign_in.expires_at) <= now or not _is_live(found.sign_in):
        return None
    return found


def exchange(
    token: ClientToken, plain: str, *, scopes: Sequence[str] | None = None
) -> IssuedTokens:
    """Give a client new tokens for a code or a refresh token, which serves no more from then on.

    A refresh token that comes twice at the same moment brings the same tokens twice.

    Args:
        plain: the code or token itself.
        scopes: fewer ones from now on; None: as before.

    Raises:
        InvalidGrant: it was used or has ended at the same moment.
    """
    sign_in = token.sign_in
    with in_workspace(sign_in.workspace_id):
        given = _exchange(token, plain, scopes)
        if given is None:
            rows = ClientToken.objects.for_workspace(sign_in.workspace_id)
            if rows.filter(pk=token.pk).exists():  # else the sign-in has ended at the same moment
                _end_reused(sign_in)
            raise InvalidGrant
        return given


@transaction.atomic
def _exchange(token: ClientToken, plain: str, scopes: Sequence[str] | None) -> IssuedTokens | None:
    now, sign_in = database_now(), token.sign_in
    rows = ClientToken.objects.for_workspace(sign_in.workspace_id).filter(sign_in=sign_in)
    noticed = min(token.expires_at, now + NOTICED_FOR)
    if token.kind == TokenKind.CODE:
        noticed = now + NOTICED_FOR
    fresh = rows.filter(pk=token.pk, used_at=None)
    if fresh.update(used_at=now, expires_at=noticed) != 1:
        return _same_again(token, plain, scopes)
    rows.filter(kind=TokenKind.ACCESS).delete()
    sign_in.last_used_at = now
    sign_in.begun_at = sign_in.begun_at or now
    if scopes is not None:
        sign_in.scopes = list(scopes)
    sign_in.save(update_fields=["last_used_at", "begun_at", "scopes", "updated_at"])
    ends = {
        TokenKind.ACCESS: now + ACCESS_LIFE,
        TokenKind.REFRESH: min(now + REFRESH_LIFE, sign_in.expires_at),
    }
    access, refresh = (
        _issue(sign_in, kind, expires_at, successor_of(plain, kind))
        for kind, expires_at in ends.items()
    )
    return IssuedTokens(access, refresh, sign_in.scopes, int(ACCESS_LIFE.total_seconds()))


def _same_again(
    token: ClientToken, plain: str, scopes: Sequence[str] | None
) -> IssuedTokens | None:
    """What the first use of a refresh token brought; None: it came too late, or it asks for something else.

    In the transaction that has waited for the first use to be committed.
    """
    now = database_now()
    rows: Any = ClientToken.objects.for_workspace(token.workspace_id).select_related("sign_in")
    used = rows.filter(pk=token.pk).first()
    if used is None or not _may_come_again(used, now):
        return None
    if scopes is not None and set(scopes) != set(used.sign_in.scopes):
        return None
    access, refresh = (successor_of(plain, kind) for kind in (TokenKind.ACCESS, TokenKind.REFRESH))
    given = rows.filter(sign_in=used.sign_in_id, used_at=None, expires_at__gt=now)
    by_hash = {row.token_hash: row for row in given}
    if hash_token(refresh) not in by_hash or hash_token(access) not in by_hash:
        return None
    for one in (access, refresh):
        remember_secret(one, workspace_id=token.workspace_id)
    left = by_hash[hash_token(access)].expires_at - now
    return IssuedTokens(access, refresh, used.sign_in.scopes, int(left.total_seconds()))


def successor_of(plain: str, kind: TokenKind) -> str:
    """The token that comes after a code or refresh token: always the same one, so that it need not be kept.

    Nobody can tell it who lacks the secret key or the token before.
    """
    digest = salted_hmac(f"{_SALT}.{kind}", plain, algorithm="sha256").digest()
    return PREFIXES[kind] + urlsafe_b64encode(digest).decode().rstrip("=")


def _may_come_again(token: ClientToken, now: datetime) -> bool:
    if token.kind != TokenKind.REFRESH or token.used_at is None:
        return False
    return now - token.used_at <= AGAIN_FOR


def revoke(token: ClientToken, *, ip_address: str | None, request_id: str) -> None:
    """End the sign-in that a token belongs to, as its client asks. Source: RFC 7009, section 2.1."""
    actor = actor_of(token.sign_in, ip_address=ip_address, request_id=request_id)
    ending.end([token.sign_in], EndReason.CLIENT, actor)


def authenticate(plain: str) -> LiveSignIn | None:
    """The sign-in of a client with that access token, its person still somebody who may enter; None otherwise."""
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
    if lacks_second_step(sign_in.user, sign_in.workspace):
        return None
    if sign_in.last_used_at is None or now - sign_in.last_used_at > _TOUCH_EVERY:
        with in_workspace(sign_in.workspace_id):
            mine = ClientSignIn.objects.for_workspace(sign_in.workspace_id)
            mine.filter(pk=sign_in.pk).update(last_used_at=now)
    return LiveSignIn(sign_in, token.member_role, bool(token.member_is_auditor))


def find_unexpired(plain: str) -> ClientSignIn | None:
    """The sign-in of a client with that access token, whatever became of its workspace."""
    rows = ClientToken.objects.across_workspaces().select_related(
        "sign_in__user", "sign_in__workspace"
    )
    now = timezone.now()
    token = rows.filter(
        token_hash=hash_token(plain),
        kind=TokenKind.ACCESS,
        expires_at__gt=now,
        sign_in__expires_at__gt=now,
        sign_in__user__is_active=True,
    ).first()
    if token is None or not is_proof_of(token.sign_in.proof, token.sign_in.user):
        return None
    return token.sign_in


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
    """Whether its person may still come in with it, or may once its workspace is no longer suspended.

    Until then its tokens open nothing, but a client that gets no new ones forgets its sign-in.
    """
    user, workspace = sign_in.user, sign_in.workspace
    members = Membership.objects.across_workspaces().filter(
        workspace_id=sign_in.workspace_id, user_id=sign_in.user_id
    )
    return (
        user.is_active
        and workspace.allows_mcp_clients
        and is_proof_of(sign_in.proof, user)
        and members.exists()
    )


def _end_reused(sign_in: ClientSignIn) -> None:
    """Whoever has the token besides its client loses it, and the log says so."""
    with transaction.atomic(), in_workspace(sign_in.workspace_id):
        ending.tell(Action.CLIENT_REUSED, sign_in, None)
        ending.end([sign_in], EndReason.REUSED)


def _issue(sign_in: ClientSignIn, kind: TokenKind, expires_at: datetime, plain: str) -> str:
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
