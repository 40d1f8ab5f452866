"""Requests that need somebody's account at the server: whoever is there is asked to sign in, and the request goes on.

Where nobody is there it fails: never with another person's account, and never with a question to nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.utils.translation import gettext_noop as _

from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.errors import AuthenticationRequired, InputMissing, McpServersError
from mcp_servers.client.transports.targets import HttpSpec
from mcp_servers.gate.checkpoints import SignInCheckpoint, SignInFirstCheckpoint
from mcp_servers.models import OAUTH_TYPES, AuthType, InputStatus
from mcp_servers.models.hosting import note_lost_sign_in, provider_of
from mcp_servers.oauth.grants import is_renewed_since, person_of, want_scope
from mcp_servers.oauth.values import Challenge, scopes_of
from mcp_servers.registry.elicitation.checks import InvalidInputRequest
from mcp_servers.registry.elicitation.sign_ins import (
    MOST_SIGN_INS,
    OWN,
    SignInReason,
    WantedSignIn,
    account_of,
    open_sign_in,
    sign_ins_of,
)
from workspaces.database import database_now, in_database
from workspaces.errors import DomainError

if TYPE_CHECKING:
    from datetime import datetime

    from mcp_servers.client.spec import ConnectionSpec
    from mcp_servers.gate.caller import CallerOnItsLoop
    from mcp_servers.gate.checkpoints import TaskCheckpoint
    from mcp_servers.gate.dialogue import Dialogue
    from mcp_servers.gate.operation import ServerOperation
    from mcp_servers.models import InputRequest, McpServer
    from mcp_servers.registry.elicitation import QuestionOrigin

T = TypeVar("T")
What = TypeVar("What")


class CannotGoOn(McpServersError):
    """The request ends here, unmade: nobody signed in, or today's rules no longer allow it."""

    code = "auth_required"
    status = 409

    def __init__(self, message: str, *, kind: str = "auth_required", sign_in: str = "") -> None:
        super().__init__(message)
        self.facts = {"kind": kind, "sign_in": sign_in} if sign_in else {"kind": kind}


class SigningIn:
    """One operation's way to the account that it needs."""

    def __init__(self, operation: ServerOperation[Any], dialogue: Dialogue) -> None:
        self._operation = operation
        self._origin = operation.origin
        self._dialogue = dialogue

    async def with_account(
        self,
        send: Callable[[ConnectionSpec, What], Awaitable[T]],
        what: What,
        task: TaskCheckpoint | None = None,
    ) -> T:
        """Send something, once somebody has signed in who has to.

        Args:
            send: is called again after a sign-in, or once with a renewed token; the server refused what it sent
                before, and did nothing. It sees to it that each sending is in the log.
            task: what the server made of the call, if it did.

        Raises:
            InputMissing: somebody has to sign in first, and the request was put aside.
            CannotGoOn: nobody did, or it did not help.
        """
        was_renewed = False
        sign_ins = 0
        while sign_ins <= MOST_SIGN_INS:
            since = await self._now()
            try:
                if self._operation.spec.needs_sign_in:
                    raise AuthenticationRequired(words_for_nobody(self._origin.server))
                return await send(self._operation.spec, what)
            except (CallFailed, AuthenticationRequired) as error:
                if not was_renewed and since is not None and await self._is_renewed(error, since):
                    was_renewed = True
                    continue
                wanted = self._wanted(error)
                if wanted is None or since is None:
                    raise
            if wanted.reason is SignInReason.REFUSED:
                await in_database(partial(note_lost_sign_in, self._origin.server))
            if wanted.reason is SignInReason.SCOPE:
                # Whoever signs in next, here or elsewhere, is asked for it.
                scope = " ".join(wanted.scopes)
                await in_database(partial(want_scope, scope=scope, **self._holder()))
            if not self._operation.can_ask or person_of(self._origin.actor) is None:
                is_there = person_of(self._origin.actor) is not None
                raise CannotGoOn(words_unasked(self._origin.server, is_there=is_there))
            await self._sign_in(wanted, since, task)
            sign_ins += 1
        raise lost_again(self._origin.server)

    async def _now(self) -> datetime | None:
        """By the clock that grants are dated by; None where nobody signs in."""
        server = self._origin.server
        if not server.hosted_by and server.auth_type not in OAUTH_TYPES:
            return None
        return await in_database(database_now)

    async def _is_renewed(
        self, error: CallFailed | AuthenticationRequired, since: datetime
    ) -> bool:
        """Whether the server refused a token that has been renewed since."""
        if error.details.get("http_status") != HTTPStatus.UNAUTHORIZED:
            return False
        return await in_database(partial(is_renewed_since, since=since, **self._holder()))

    def _holder(self) -> dict[str, Any]:
        return {"server": self._origin.server, "user_id": person_of(self._origin.actor)}

    async def resume(self) -> None:
        """For a request that was put aside: whether somebody has signed in meanwhile.

        Raises:
            InputMissing: not yet.
            CannotGoOn: and nobody will.
        """
        row = await in_database(lambda: sign_ins_of(self._origin).last())
        if row is None:
            return
        if row.status == InputStatus.PENDING:
            raise InputMissing(_("Someone has to sign in first."))
        self._check(row)

    async def _sign_in(
        self, wanted: WantedSignIn, since: datetime, task: TaskCheckpoint | None
    ) -> None:
        operation = self._operation
        if operation.can_wait_elsewhere:
            # Kept before anybody is asked, so that a crash in between leaves a call that can go on.
            await operation.keep(SignInCheckpoint(task=task, was_refused=operation.was_sent))
        try:
            row = await self._dialogue.ask_to_sign_in(
                lambda: open_sign_in(wanted, self._origin, since=since)
            )
        except InvalidInputRequest as error:
            raise lost_again(self._origin.server) from error
        if row is not None:
            if operation.can_wait_elsewhere:
                raise InputMissing(_("Someone has to sign in first."))
            await self._wait(row)
        elif operation.can_wait_elsewhere:
            await operation.keep(task)
        try:
            operation.spec = await in_database(operation.renew)
        except DomainError as error:
            raise CannotGoOn(error.message, kind="refused") from error

    async def _wait(self, row: InputRequest) -> None:
        self._operation.give_slot_back()
        self._check(await self._dialogue.wait_for_sign_in(row))
        try:
            await self._operation.take_slot()
        except DomainError as error:
            raise CannotGoOn(error.message, kind="busy") from error

    def _check(self, row: InputRequest) -> None:
        if row.status != InputStatus.ACCEPTED:
            words = _WORDS_OF.get(str(row.status), _WORDS_OF[InputStatus.CANCELLED.value])
            raise CannotGoOn(words.format(name=self._origin.server.name), sign_in=str(row.status))

    def _wanted(self, error: CallFailed | AuthenticationRequired) -> WantedSignIn | None:
        """The sign-in that would help; None if none would, as after a plain 403."""
        server = self._origin.server
        if error.kind != "auth_required":
            return None
        if server.auth_type != AuthType.OAUTH and not server.hosted_by:
            return None
        if self._operation.spec.needs_sign_in:
            return self._want(SignInReason.MISSING)
        if server.hosted_by:
            return self._want(SignInReason.REFUSED)
        status = error.details.get("http_status")
        challenge = Challenge.read(status if isinstance(status, int) else 0, error.challenge)
        if not challenge.asks_for_sign_in:
            return None
        reason = SignInReason.SCOPE if challenge.is_about_scope else SignInReason.REFUSED
        return self._want(reason, scopes_of(challenge.scope))

    def _want(self, reason: SignInReason, scopes: tuple[str, ...] = ()) -> WantedSignIn:
        return _sign_in_for(self._origin.server, self._operation.spec, reason, scopes)


async def sign_in_first(
    origin: QuestionOrigin, spec: ConnectionSpec, caller: CallerOnItsLoop
) -> None:
    """Ask for a sign-in before anybody is asked to approve a call that cannot run without it.

    Returns only if somebody has signed in meanwhile, so that the call may be admitted now.

    Raises:
        InputMissing: the person was asked; the call begins again from its checkpoint once they have signed in.
        CannotGoOn: they signed in several times, and it did not help.
    """
    # Kept before anybody is asked, so that a crash in between leaves a call that can go on.
    await caller.checkpointed(SignInFirstCheckpoint().as_text())
    wanted = _sign_in_for(origin.server, spec, SignInReason.MISSING)
    since = await in_database(database_now)
    try:
        row = await in_database(partial(open_sign_in, wanted, origin, since=since))
    except InvalidInputRequest as error:
        raise lost_again(origin.server) from error
    if row is not None:
        raise InputMissing(_("Someone has to sign in first."))
    await caller.checkpointed("")


def why_nobody_signed_in(origin: QuestionOrigin) -> str | None:
    """Why the last sign-in that a call asked for did not come about; None: it did, or none was asked for."""
    row = sign_ins_of(origin).last()
    words = _WORDS_OF.get(str(row.status)) if row is not None else None
    return words.format(name=origin.server.name) if words is not None else None


def _sign_in_for(
    server: McpServer,
    spec: ConnectionSpec,
    reason: SignInReason,
    scopes: tuple[str, ...] = (),
) -> WantedSignIn:
    target = spec.target
    host = target.endpoint.host if isinstance(target, HttpSpec) else ""
    if server.hosted_by:
        host = provider_of(server)  # where it is, is a secret
    scopes = scopes or scopes_of(server.oauth_scope)
    return WantedSignIn(reason=reason, host=host, scopes=scopes)


def lost_again(server: McpServer) -> CannotGoOn:
    """Signing in has not helped."""
    words = _("%(name)s still refuses access after several sign-ins.") % {"name": server.name}
    return CannotGoOn(words, sign_in="in_vain")


def words_for_nobody(server: McpServer) -> str:
    """What is missing, where nobody can be asked."""
    if account_of(server) == OWN:
        return _("%(name)s needs a person's sign-in.") % {"name": server.name}
    return _("%(name)s needs an administrator to connect the workspace's account first.") % {
        "name": server.name
    }


def words_unasked(server: McpServer, *, is_there: bool) -> str:
    """What is missing, where the caller cannot wait for a person.

    Args:
        is_there: the call is made for somebody.
    """
    if account_of(server) == OWN and is_there:
        return _(
            "%(name)s needs you to sign in. Please connect it under My connections, and try again."
        ) % {"name": server.name}
    if account_of(server) == OWN:
        return _(
            "%(name)s needs a person's sign-in, and nobody is present. Work without anybody present can only use servers that have an account of the workspace."
        ) % {"name": server.name}
    return words_for_nobody(server)


_WORDS_OF: Final = {
    InputStatus.DECLINED.value: _(
        "The person chose not to sign in to {name}, so the call was not made."
    ),
    InputStatus.EXPIRED.value: _("Nobody signed in to {name} in time, so the call was not made."),
    InputStatus.CANCELLED.value: _(
        "The sign-in to {name} was withdrawn, so the call was not made."
    ),
}
