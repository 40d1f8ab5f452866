"""New access tokens for old, one request at a time for each grant, whichever process needs one.

A refresh token that is used twice may void the whole grant (RFC 9700, section 4.14), so exactly one task of all
processes may use it: the one whose UPDATE put its mark on the row. The mark is no lock that holds a transaction open
during the request; it runs out by itself if its process dies. The new token is stored before anybody uses it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Q

from audit.actions import Action
from mcp_servers.client.connections import runtime
from mcp_servers.models import AuthType, OAuthGrant
from mcp_servers.oauth import tokens
from mcp_servers.oauth.clients import forget_registration, identity_of, issuer_of
from mcp_servers.oauth.entries import record_grant
from mcp_servers.oauth.grants import Holder, find_grant, has_usable_tokens
from mcp_servers.oauth.identity import Identity
from mcp_servers.oauth.obtaining import obtain
from mcp_servers.oauth.reasons import WORDS, Reason, SignInFailed
from mcp_servers.oauth.values import IssuerMetadata, TokenResponse
from workspaces.actors import Actor, Source
from workspaces.database import database_now, in_database, is_unavailable

logger = logging.getLogger(__name__)

CLAIM_SECONDS: Final = 40.0
"""How long one fetch may take before another process may try; longer than any request to an issuer."""
WAIT_SECONDS: Final = 45.0
STORE_SECONDS: Final = 20.0
"""For how long storing a new token is tried; the mark on the row lasts longer."""
_STORE_PAUSE: Final = 0.5
MOST_LEAD_SECONDS: Final = 300.0
LAST_SECONDS: Final = 10.0
"""What remains of a token that is not used any more: it has to reach the server."""
AHEAD_SECONDS: Final = 60.0
"""What remains of a token that a task renews, although nobody asks for it just now."""
LATE_SECONDS: Final = 300.0
USED_DAYS: Final = 7
MOST_AT_ONCE: Final = 64
ROUND_SECONDS: Final = 60.0
LANES: Final = 8
USED_SECONDS: Final = 60.0
"""How exactly it is kept when a grant was last used."""

_FINAL: Final = frozenset(
    {
        Reason.TOKEN_REFUSED,
        Reason.CLIENT_REFUSED,
        Reason.CLIENT_NOT_ALLOWED,
        Reason.SCOPE_REFUSED,
        Reason.UNUSABLE_CLIENT,
        Reason.CHANGED,
    }
)
"""After these, asking again would bring the same."""


class NoToken(StrEnum):
    """Why there is no access token."""

    SIGN_IN = "sign_in"
    """Somebody has to sign in; for the platform's own client: it is not let in."""
    FOR_NOW = "for_now"
    """The issuer did not answer, or has a fault of its own; a later try may do better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """An access token, and which one of its grant it is."""

    value: str = field(repr=False)
    generation: int
    is_ageing: bool = False
    """It still serves, and a new one should be fetched by and by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """All that one fetch needs, so that no row is held meanwhile."""

    holder: Holder
    generation: int
    identity: Identity
    issuer: IssuerMetadata
    token_endpoint: str
    resource: str
    scope: str
    refresh_token: str = field(repr=False)
    """Empty: as the client itself."""


_running: dict[Holder, asyncio.Task[AccessToken | NoToken]] = {}
_obtaining: dict[Holder, asyncio.Task[bool]] = {}
"""Of this process; on the connections' loop only."""


async def current_token(holder: Holder, *, is_client: bool = False) -> AccessToken | NoToken:
    """The holder's access token, renewed if it has run out.

    Args:
        is_client: the platform itself signs in, so a first one can be had too.
    """
    token = await in_database(_read_token, holder)
    if token is None and is_client:
        was_answered = await asyncio.shield(_obtain(holder))
        token = await in_database(_read_token, holder)
        if token is None and not was_answered:
            return NoToken.FOR_NOW
    if token is None:
        return NoToken.SIGN_IN
    if isinstance(token, int):
        return await renew(holder, token)
    if token.is_ageing:
        _start(holder, token.generation)
    return token


async def renew(holder: Holder, generation: int) -> AccessToken | NoToken:
    """The access token that follows the one of this generation."""
    running = _running.get(holder)
    token = await asyncio.shield(_start(holder, generation))
    if running is not None and isinstance(token, AccessToken) and token.generation <= generation:
        # What ran already was about an older one.
        token = await asyncio.shield(_start(holder, generation))
    if isinstance(token, AccessToken) and token.generation <= generation:
        return NoToken.FOR_NOW
    return token


def renew_ageing() -> int:
    """Renew tokens of accounts in use that run out soon, from a task; how many there were."""
    due = [
        (
            Holder(
                workspace_id=grant.workspace_id, server_id=grant.server_id, user_id=grant.user_id
            ),
            grant,
        )
        for grant in _soon_over()
        if has_usable_tokens(grant) and _can_renew(grant)
    ]
    if due:
        with contextlib.suppress(TimeoutError):  # the rest is due again in the next round
            runtime.run_sync(
                _renew_all([(holder, grant.generation) for holder, grant in due]), ROUND_SECONDS
            )
    return len(due)


async def _renew_all(due: list[tuple[Holder, int]]) -> None:
    lanes = asyncio.Semaphore(LANES)

    async def renew_one(holder: Holder, generation: int) -> None:
        async with lanes:
            await renew(holder, generation)

    await asyncio.gather(*(renew_one(*one) for one in due), return_exceptions=True)


def _soon_over() -> list[OAuthGrant]:
    """What is looked after in one round; the rest, and what failed, has its turn when somebody needs it."""
    now = database_now()
    rows = OAuthGrant.objects.across_workspaces().filter(
        expires_at__lte=now + timedelta(seconds=AHEAD_SECONDS),
        expires_at__gt=now - timedelta(seconds=LATE_SECONDS),
        last_used_at__gte=now - timedelta(days=USED_DAYS),
        server__is_active=True,
        server__workspace__is_active=True,
        lost_reason="",
    )
    # Not always the same first ones, should there be more than one round can do.
    return list(rows.select_related("server").order_by("?")[:MOST_AT_ONCE])


def _start(holder: Holder, generation: int) -> asyncio.Task[AccessToken | NoToken]:
    running, loop = _running.get(holder), asyncio.get_running_loop()
    if running is None or running.done() or running.get_loop() is not loop:
        running = loop.create_task(_renew(holder, generation))
        _running[holder] = running
        running.add_done_callback(lambda done: _forget(holder, done))
    return running


def _obtain(holder: Holder) -> asyncio.Task[bool]:
    running, loop = _obtaining.get(holder), asyncio.get_running_loop()
    if running is None or running.done() or running.get_loop() is not loop:
        running = loop.create_task(obtain(holder))
        _obtaining[holder] = running
        running.add_done_callback(lambda done: _obtaining.pop(holder, None))
    return running


def _forget(holder: Holder, done: asyncio.Task[AccessToken | NoToken]) -> None:
    if _running.get(holder) is done:
        del _running[holder]
    if not done.cancelled() and done.exception() is not None:
        logger.error("a token could not be renewed", exc_info=done.exception())


async def _renew(holder: Holder, generation: int) -> AccessToken | NoToken:
    """Fetch a new token, or wait for the process that does."""
    pause = 0.02
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while (found := await in_database(_claim, holder, generation)) is None:
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311  spreads load, keeps no secret
                pause = min(pause * 1.5, 0.5)
    except TimeoutError:
        return NoToken.FOR_NOW
    # Bounded by itself. Cut off, it could lose a token that the issuer has given already.
    return await _fetch(found) if isinstance(found, _Work) else found


async def _fetch(work: _Work) -> AccessToken | NoToken:
    try:
        if work.refresh_token:
            given = await tokens.refresh(
                workspace_id=work.holder.workspace_id,
                token_endpoint=work.token_endpoint,
                issuer=work.issuer,
                identity=work.identity,
                refresh_token=work.refresh_token,
                resource=work.resource,
            )
        else:
            given = await tokens.request_as_client(
                workspace_id=work.holder.workspace_id,
                token_endpoint=work.token_endpoint,
                issuer=work.issuer,
                identity=work.identity,
                resource=work.resource,
                scope=work.scope,
            )
    except SignInFailed as error:
        logger.info("token_not_renewed", extra={"reason": error.reason.value})
        return await in_database(_give_up, work, error.reason)
    except BaseException:
        await asyncio.shield(in_database(_release, work))
        raise
    return await _keep(work, given)


async def _keep(work: _Work, given: TokenResponse) -> AccessToken | NoToken:
    """Store a new token, also where the database is away for a moment: the issuer gave it once, and the old one may be void."""
    loop = asyncio.get_running_loop()
    until = loop.time() + STORE_SECONDS
    while True:
        try:
            return await in_database(_store, work, given)
        except (DatabaseError, InterfaceError) as error:
            if not is_unavailable(error) or loop.time() > until:
                raise
            logger.warning("token_not_stored_yet")
        await asyncio.sleep(_STORE_PAUSE)


def _read_token(holder: Holder) -> AccessToken | int | None:
    """The token as it stands; its generation alone if it has run out; None without any."""
    grant = find_grant(holder)
    if grant is None or not has_usable_tokens(grant):
        return None
    now = database_now()
    if grant.last_used_at is None or grant.last_used_at < now - timedelta(seconds=USED_SECONDS):
        OAuthGrant.objects.for_workspace(holder.workspace_id).filter(pk=grant.pk).update(
            last_used_at=now
        )
    left = (grant.expires_at - now).total_seconds() if grant.expires_at else None
    if left is not None and left < LAST_SECONDS and _can_renew(grant):
        return grant.generation
    return _token_of(
        grant, is_ageing=left is not None and left < _lead_of(grant) and _can_renew(grant)
    )


def _lead_of(grant: OAuthGrant) -> float:
    """How long before its end a token is renewed, in seconds: not at the same moment for all."""
    begun = grant.refreshed_at or grant.granted_at
    lifetime = (grant.expires_at - begun).total_seconds() if grant.expires_at else 0.0
    spread = 0.75 + random.Random(f"{grant.pk}.{grant.generation}").random() / 2  # noqa: S311  keeps no secret
    return min(MOST_LEAD_SECONDS, lifetime / 5) * spread


def _can_renew(grant: OAuthGrant) -> bool:
    return grant.server.auth_type == AuthType.OAUTH_CLIENT or "refresh_token" in _stored(grant)


def _stored(grant: OAuthGrant) -> dict[str, str]:
    return grant.tokens.reveal_json("signing in to an MCP server") if grant.tokens else {}


def _token_of(grant: OAuthGrant, *, is_ageing: bool = False) -> AccessToken:
    return AccessToken(
        value=_stored(grant)["access_token"], generation=grant.generation, is_ageing=is_ageing
    )


def _claim(holder: Holder, generation: int) -> _Work | AccessToken | NoToken | None:
    """Take the right to fetch the next token; what somebody else fetched meanwhile; None while somebody else fetches."""
    grant = find_grant(holder)
    if grant is None or not has_usable_tokens(grant):
        return NoToken.SIGN_IN
    if grant.generation != generation:
        return _token_of(grant)
    if not _can_renew(grant):
        return _lose(
            holder,
            generation,
            "The server no longer accepts this sign-in, and there is no way to renew it.",
        )
    now = database_now()
    claimed = (
        OAuthGrant.objects.for_workspace(holder.workspace_id)
        .filter(pk=grant.pk, generation=generation)
        .filter(Q(refreshing_until__isnull=True) | Q(refreshing_until__lte=now))
        .update(refreshing_until=now + timedelta(seconds=CLAIM_SECONDS))
    )
    if not claimed:
        return None
    try:
        known_as = identity_of(grant.client, grant.server)
    except SignInFailed as error:
        return _lose(holder, generation, WORDS[error.reason])
    return _Work(
        holder=holder,
        generation=generation,
        identity=known_as,
        issuer=issuer_of(grant.client),
        token_endpoint=grant.token_endpoint,
        resource=grant.resource,
        scope=grant.scope,
        refresh_token=_stored(grant).get("refresh_token", ""),
    )


@transaction.atomic
def _store(work: _Work, given: TokenResponse) -> AccessToken | NoToken:
    """Keep a new token, before anybody uses it; none if the grant is gone."""
    grant = _locked(work.holder, work.generation)
    if grant is None:
        return _newer(work.holder, work.generation)
    now = database_now()
    grant.tokens = given.as_stored()
    grant.generation += 1
    grant.refreshed_at = now
    grant.expires_at = now + timedelta(seconds=given.expires_in) if given.expires_in else None
    grant.refreshing_until = None
    if given.scope is not None:
        grant.scope = given.scope
    grant.save(
        update_fields=[
            *("tokens", "generation", "refreshed_at", "expires_at", "refreshing_until", "scope"),
            "updated_at",
        ]
    )
    return _token_of(grant)


@transaction.atomic
def _give_up(work: _Work, reason: Reason) -> AccessToken | NoToken:
    """A fetch brought nothing: for good, or for now. The old token is given as long as it may serve."""
    if reason is Reason.CLIENT_REFUSED:
        forget_registration(work.holder.server_id, work.holder.workspace_id, work.identity)
    if reason in _FINAL:
        why = "The sign-in service no longer renews this sign-in."
        return _lose(work.holder, work.generation, why)
    grant = _locked(work.holder, work.generation)
    if grant is None:
        return _newer(work.holder, work.generation)
    grant.refreshing_until = None
    grant.save(update_fields=["refreshing_until", "updated_at"])
    has_run_out = grant.expires_at is not None and grant.expires_at <= database_now()
    return NoToken.FOR_NOW if has_run_out else _token_of(grant)


@transaction.atomic
def _release(work: _Work) -> None:
    grant = _locked(work.holder, work.generation)
    if grant is not None:
        grant.refreshing_until = None
        grant.save(update_fields=["refreshing_until", "updated_at"])


def _locked(holder: Holder, generation: int) -> OAuthGrant | None:
    """The grant, as long as it still has the token of this generation."""
    rows = OAuthGrant.objects.for_workspace(holder.workspace_id).of(holder.user_id)
    row: OAuthGrant | None = (
        rows.select_for_update(of=("self",))
        .select_related("server")
        .filter(server_id=holder.server_id, generation=generation)
        .first()
    )
    return row


def _newer(holder: Holder, generation: int) -> AccessToken | NoToken:
    """What came in the place of a token meanwhile: somebody has signed in anew, or the answer to our own commit was lost."""
    grant = find_grant(holder)
    if grant is None or not has_usable_tokens(grant) or grant.generation <= generation:
        return NoToken.SIGN_IN
    return _token_of(grant)


@transaction.atomic
def _lose(holder: Holder, generation: int, why: str) -> AccessToken | NoToken:
    """The grant serves no more: its tokens go, and a person is asked to sign in when it is needed.

    Unless somebody has signed in anew meanwhile.
    """
    grant = _locked(holder, generation)
    if grant is None:
        return _newer(holder, generation)
    grant.tokens = None
    grant.lost_reason = why
    grant.refreshing_until = None
    grant.save(update_fields=["tokens", "lost_reason", "refreshing_until", "updated_at"])
    actor = Actor.system(label="sign-in", source=Source.TASK, workspace_id=grant.workspace_id)
    record_grant(grant, Action.GRANT_LOST, actor, details={"reason": why})
    return NoToken.SIGN_IN
