"""One account's way to the provider: with its key, in the form it speaks, from a thread without a loop."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mcp_servers.client.connections import runtime
from mcp_servers.klavis.client import KlavisApi, api_for, find_dialect
from mcp_servers.klavis.errors import KeyRefused, KlavisUnavailable
from mcp_servers.klavis.http import TOTAL_SECONDS, KlavisCredentials, KlavisHttp
from mcp_servers.klavis.models import KlavisAccount, KlavisDialect
from workspaces.errors import Conflict

if TYPE_CHECKING:
    from mcp_servers.klavis.models import KlavisInstance

T = TypeVar("T")

WAIT_SECONDS: Final = 2 * TOTAL_SECONDS + 5
"""For a piece of work, which may be two requests."""


class NotSetUp(Conflict):
    """There is no account, it is switched off, or it has no key."""

    code = "klavis_not_set_up"
    default_message = _("Klavis is not set up in this workspace. An administrator can do that.")


def account_of(workspace_id: UUID) -> KlavisAccount | None:
    """The workspace's account, whatever its state."""
    return KlavisAccount.objects.for_workspace(workspace_id).first()


def is_set_up(workspace_id: UUID) -> bool:
    """Whether the workspace's account is switched on and has a key."""
    account = account_of(workspace_id)
    return account is not None and account.is_usable


def usable_account(workspace_id: UUID) -> KlavisAccount:
    """The workspace's account, ready to be used.

    Raises:
        NotSetUp: it is not.
    """
    account = account_of(workspace_id)
    if account is None or not account.is_usable:
        raise NotSetUp
    return account


def connection_of(account: KlavisAccount) -> KlavisCredentials:
    """Where the account is, with its key."""
    return KlavisCredentials(
        base_url=account.base_url, api_key=account.api_key.reveal("asking the hosted MCP provider")
    )


def ask(account: KlavisAccount, work: Callable[[KlavisApi], Awaitable[T]]) -> T:
    """Do something at the provider. Not within a transaction: it takes as long as the network does.

    Raises:
        KlavisError: one of its kinds; a refused key is noted on the account.
    """
    known = dialect_of(account)

    async def go() -> tuple[str, T]:
        async with KlavisHttp(connection_of(account)) as http:
            dialect = known or await find_dialect(http)
            return dialect, await work(api_for(http, dialect))

    try:
        dialect, result = run(go())
    except KeyRefused as error:
        note_problem(account, error.message)
        raise
    if not known:
        account.found_dialect = dialect
        rows = KlavisAccount.objects.for_workspace(account.workspace_id).filter(pk=account.pk)
        rows.update(found_dialect=dialect)
    return result


def run(work: Awaitable[T]) -> T:
    """Wait for something that is asked of the provider, for a bounded time.

    Raises:
        KlavisUnavailable: it took too long.
    """

    async def bounded() -> T:
        return await work

    try:
        return runtime.run_sync(bounded(), WAIT_SECONDS)
    except TimeoutError:
        raise KlavisUnavailable(kind="timeout") from None


def dialect_of(account: KlavisAccount) -> str:
    """The form of the API to speak; empty if that has to be found out."""
    if account.dialect != KlavisDialect.AUTO:
        return str(account.dialect)
    return str(account.found_dialect)


def note_problem(account: KlavisAccount, problem: str) -> None:
    """Keep why the provider cannot be used, for the administrators; empty: it can."""
    rows = KlavisAccount.objects.for_workspace(account.workspace_id).filter(pk=account.pk)
    rows.update(problem=problem[:300], checked_at=timezone.now())


def external_id(account: KlavisAccount, user_id: UUID | None) -> str:
    """Who somebody is at the provider: the same each time, and nothing that says who.

    Args:
        user_id: None for what belongs to the workspace.
    """
    key = account.user_key.reveal("naming people at the hosted MCP provider")
    who = f"{account.workspace_id}:{user_id or 'workspace'}"
    return "t-" + hmac.new(key.encode(), who.encode(), hashlib.sha256).hexdigest()[:40]


def external_id_of(account: KlavisAccount, instance: KlavisInstance) -> str:
    """Who an instance belongs to, at the provider."""
    return external_id(account, instance.user_id)
