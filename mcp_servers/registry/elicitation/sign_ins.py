"""Our own question to a person: to sign in to a server. No answer settles it, but a grant does.

It is put on the platform's behalf, so neither the server's right to ask nor its rate counts. Whoever opens one and
whoever stores a grant hold the server's row for that moment, so that no sign-in is missed in between.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_noop as _

from audit.actions import Action
from audit.services import record
from mcp_servers.client.canonical import JsonValue, canonical_json
from mcp_servers.client.inputs import InputKind
from mcp_servers.models import InputRequest, InputStatus, McpServer, OAuthGrant
from mcp_servers.models.hosting import waits_for_sign_in
from mcp_servers.oauth.grants import usable_grant, uses_own_accounts
from mcp_servers.oauth.values import scopes_of
from mcp_servers.registry.elicitation.checks import InvalidInputRequest
from mcp_servers.registry.elicitation.rows import (
    QuestionOrigin,
    announce_row,
    draft_of,
    facts_of,
    lock,
    settle,
    tell_listener,
)
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.errors import DomainError
from workspaces.jobs.sweeping import sweep

logger = logging.getLogger(__name__)

_MOST_COMPLETED: Final = 500
"""In one round; the next one goes on."""

MOST_SIGN_INS: Final = 3
"""For one call; a server that refuses what it was granted each time is given up."""
_FORGOTTEN_AFTER: Final = timedelta(minutes=1)
OWN: Final = "user"
SHARED: Final = "workspace"


class SignInReason(StrEnum):
    """Why somebody has to sign in."""

    MISSING = "missing"
    REFUSED = "refused"
    SCOPE = "scope"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSignIn:
    """What a call lacks."""

    reason: SignInReason
    host: str
    scopes: tuple[str, ...] = ()
    """What the server asked for, if it said so."""


def account_of(server: McpServer) -> str:
    """Whose account a server is used with: user, each person's own; workspace, one for everybody."""
    if server.hosted_by:
        return OWN if server.owner_id is not None else SHARED
    return OWN if uses_own_accounts(server) else SHARED


@transaction.atomic
def open_sign_in(
    wanted: WantedSignIn, origin: QuestionOrigin, *, since: datetime
) -> InputRequest | None:
    """Ask the person for whom the call is made to sign in; None if it is worth another try without.

    Args:
        since: when the try began that failed; a grant given later was not part of it.

    Raises:
        InvalidInputRequest: nobody is there, or signing in has not helped so far.
        AuditUnavailable: it could not be recorded, so nobody is asked.
    """
    user_id = origin.actor.user_id
    if user_id is None:
        raise InvalidInputRequest(_("nobody is there to be asked."))
    server = _hold(origin.server.workspace_id, origin.server.pk)
    if server is None:
        return None  # which the next look at today's rows tells in its own words
    earlier = sign_ins_of(origin)
    open_one: InputRequest | None = earlier.filter(status=InputStatus.PENDING).first()
    if open_one is not None:
        return open_one
    if server.hosted_by and not waits_for_sign_in(server):
        return None  # somebody signed in at the provider meanwhile
    grant = usable_grant(server, user_id)
    if grant is not None and (wanted.reason is SignInReason.MISSING or grant.granted_at > since):
        return None
    if earlier.count() >= MOST_SIGN_INS:
        raise InvalidInputRequest(_("signing in has not helped."))
    account = account_of(server)
    scopes = wanted.scopes or _scopes_known(server, user_id if account == OWN else None)
    params: dict[str, JsonValue] = {
        "server_id": str(server.pk),
        "account": account,
        "host": wanted.host,
        "scopes": list(scopes),
        "reason": wanted.reason.value,
    }
    row = InputRequest.objects.create(
        workspace_id=server.workspace_id,
        call_id=origin.call_id,
        conversation_id=origin.conversation_id,
        turn_id=origin.turn_id,
        asked_of_id=user_id,
        server_id=server.pk,
        server_name=server.name,
        tool_name=origin.tool_name,
        kind=InputKind.SIGN_IN.value,
        key="sign_in",
        fingerprint=hashlib.sha256(canonical_json(params)).hexdigest(),
        message=_WORDS[wanted.reason, account].format(name=server.name),
        params=params,
        expires_at=database_now() + timedelta(seconds=settings.TRELLIS.approval_ttl_seconds),
    )
    record(draft_of(row, Action.INPUT_REQUESTED, origin.actor, details=facts_of(row)))
    announce_row(row)
    return row


def _scopes_known(server: McpServer, user_id: UUID | None) -> tuple[str, ...]:
    """What is likely to be asked for: as before, or as of the last one who signed in."""
    grants = OAuthGrant.objects.for_workspace(server.workspace_id).filter(server=server)
    grant = grants.of(user_id).first() or grants.first()
    return scopes_of(f"{grant.scope} {grant.wanted_scope}") if grant is not None else ()


def sign_ins_of(origin: QuestionOrigin) -> Any:
    """What was asked of this kind during a call, the oldest first."""
    known = InputRequest.objects.for_workspace(origin.server.workspace_id)
    return known.filter(call_id=origin.call_id, kind=InputKind.SIGN_IN.value).order_by("pk")


def complete_sign_ins(
    server_id: UUID, user_id: UUID | None, *, actor: Actor | None = None
) -> list[InputRequest]:
    """A grant was stored: whatever waited for it goes on, in whatever process.

    Call it once the grant is committed, or in its transaction.

    Args:
        user_id: whose grant; None: that of the workspace's account.
        actor: who signed in; none: the platform speaks for them.
    """
    waiting = InputRequest.objects.across_workspaces().filter(
        server_id=server_id,
        kind=InputKind.SIGN_IN.value,
        status=InputStatus.PENDING,
        params__account=SHARED if user_id is None else OWN,
    )
    if user_id is not None:
        waiting = waiting.filter(asked_of_id=user_id)
    with transaction.atomic():
        McpServer.objects.across_workspaces().select_for_update(of=("self",), no_key=True).filter(
            pk=server_id
        ).first()
        found = list(waiting.order_by("pk"))
    return _end_each(found, actor)


def complete_forgotten_sign_ins() -> int:
    """Settle what a process that died left open between storing a grant and telling of it; how many."""
    given_since = OAuthGrant.objects.across_workspaces().filter(
        workspace_id=OuterRef("workspace_id"),
        server_id=OuterRef("server_id"),
        granted_at__gt=OuterRef("created_at"),
        lost_reason="",
    )
    own, shared = given_since.filter(user_id=OuterRef("asked_of_id")), given_since.of(None)
    forgotten = InputRequest.objects.across_workspaces().filter(
        Q(Exists(own), params__account=OWN) | Q(Exists(shared), params__account=SHARED),
        kind=InputKind.SIGN_IN.value,
        status=InputStatus.PENDING,
        created_at__lt=database_now() - _FORGOTTEN_AFTER,
    )
    return sweep(
        forgotten.order_by("pk"),
        lambda row: _end(row, None) is not None,
        label="complete_sign_ins",
        most=_MOST_COMPLETED,
    )


def _end_each(rows: Iterable[InputRequest], actor: Actor | None) -> list[InputRequest]:
    """Those that were settled. One that cannot be now keeps no other waiting; the next sweep takes it up again."""
    done = []
    for row in rows:
        try:
            settled = _end(row, actor)
        except DomainError as error:
            logger.warning(
                "sign_in_not_completed", extra={"input": str(row.pk), "code": error.code}
            )
        else:
            done += [settled] if settled is not None else []
    return done


def withdraw_sign_ins(server: McpServer, actor: Actor) -> None:
    """Where people sign in has changed: what was asked is moot, and the calls end unmade."""
    known = InputRequest.objects.for_workspace(server.workspace_id)
    waiting = known.filter(
        server_id=server.pk, kind=InputKind.SIGN_IN.value, status=InputStatus.PENDING
    )
    for row in waiting.order_by("pk"):
        _end(row, actor, InputStatus.CANCELLED)


@transaction.atomic
def _end(
    row: InputRequest, actor: Actor | None, status: InputStatus = InputStatus.ACCEPTED
) -> InputRequest | None:
    locked = lock(row)
    if locked.status != InputStatus.PENDING:
        return None
    by = actor or Actor.system(label="sign-in", source=Source.TASK, workspace_id=row.workspace_id)
    settled = settle(locked, status, Action.INPUT_ANSWERED, by, {})
    tell_listener(settled)
    return settled


def _hold(workspace_id: UUID, server_id: UUID) -> McpServer | None:
    servers = McpServer.objects.for_workspace(workspace_id).select_for_update(
        of=("self",), no_key=True
    )
    held: McpServer | None = servers.filter(pk=server_id).first()
    return held


_WORDS: Final = {
    (SignInReason.MISSING, OWN): _("{name} wants you to sign in with your own account there."),
    (SignInReason.REFUSED, OWN): _("{name} no longer accepts your sign-in. Please sign in again."),
    (SignInReason.SCOPE, OWN): _("{name} wants more permissions than you have given so far."),
    (SignInReason.MISSING, SHARED): _(
        "{name} uses one account for everybody here, and nobody has connected it yet."
    ),
    (
        SignInReason.REFUSED,
        SHARED,
    ): _("{name} no longer accepts the account that everybody here uses."),
    (SignInReason.SCOPE, SHARED): _(
        "{name} wants more permissions than the account that everybody here uses was given."
    ),
}
