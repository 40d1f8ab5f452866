"""Having an instance made at the provider, and keeping what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from audit.actions import Action
from mcp_servers.klavis import instance_state, removals
from mcp_servers.klavis.asking import ask, external_id_of
from mcp_servers.klavis.entries import record_sign_in
from mcp_servers.klavis.errors import KlavisAnswerUnreadable, NotThere
from mcp_servers.klavis.instance_locks import find_locked
from mcp_servers.klavis.instance_server import make_ready
from mcp_servers.klavis.models import InstanceKind, InstanceState, KlavisInstance
from mcp_servers.klavis.web_addresses import is_web_address
from workspaces import outbound
from workspaces.errors import DomainError, InvalidEndpoint

if TYPE_CHECKING:
    from mcp_servers.klavis.client import KlavisApi
    from mcp_servers.klavis.models import KlavisAccount
    from mcp_servers.klavis.shapes import Instance
    from workspaces.actors import Actor

SIGN_IN_MINUTES: Final = 15
FIRST_POLL: Final = timedelta(seconds=3)


def make_at_provider(
    instance: KlavisInstance, account: KlavisAccount, actor: Actor
) -> KlavisInstance:
    """Have it made, whichever kind it is; a failure stands in the row."""
    user_id = external_id_of(account, instance)
    try:
        if instance.kind == InstanceKind.STRATA:
            return _make_strata(instance, account, user_id, actor)
        return _make_single(instance, account, user_id, actor)
    except DomainError as error:
        return failed(instance, error)


def _make_single(
    instance: KlavisInstance, account: KlavisAccount, user_id: str, actor: Actor
) -> KlavisInstance:
    name, is_read_only = instance.server_name, instance.is_read_only

    async def make(api: KlavisApi) -> tuple[str, str, str, Instance]:
        made = await api.create_instance(
            server_name=name, user_id=user_id, is_read_only=is_read_only
        )
        _check_url(made.server_url)
        seen = await api.get_instance(made.instance_id)
        window = made.oauth_url or seen.oauth_url
        return made.instance_id, made.server_url, window, seen

    remote_id, url, window, seen = ask(account, make)
    windows = {name: window} if window and not seen.may_be_used else {}
    kept = _keep(instance, account, remote_id, url, windows, actor=actor)
    if kept is None:
        return instance
    if not seen.may_be_used:
        return kept
    return make_ready(kept, signed_in_by=actor if seen.is_authenticated else None)


def _make_strata(
    instance: KlavisInstance, account: KlavisAccount, user_id: str, actor: Actor
) -> KlavisInstance:
    names = list(instance.services)
    known_id = (
        instance.instance_id.reveal("asking the hosted MCP provider")
        if instance.instance_id
        else ""
    )

    async def make(api: KlavisApi) -> tuple[str, str, dict[str, str]]:
        if known_id:
            try:
                made = await api.get_strata(known_id)
            except NotThere:
                made = await api.create_strata(user_id=user_id, servers=names)
        else:
            made = await api.create_strata(user_id=user_id, servers=names)
        _check_url(made.strata_server_url)
        return made.strata_id or known_id, made.strata_server_url, made.oauth_urls

    remote_id, url, windows = ask(account, make)
    kept = _keep(instance, account, remote_id, url, windows, actor=actor)
    # Each of its services says by itself that it needs a sign-in; the others can be used.
    return make_ready(kept) if kept is not None else instance


def _keep(
    instance: KlavisInstance,
    account: KlavisAccount,
    remote_id: str,
    url: str,
    windows: Mapping[str, str],
    *,
    actor: Actor,
) -> KlavisInstance | None:
    """Keep what was made; None if it was uninstalled meanwhile, in which case it is deleted over there too."""
    with transaction.atomic():
        row = find_locked(instance)
        if row is None:
            instance.instance_id = remote_id
            removals.note_instance(instance, account)
            return None
        removals.withdraw(row.workspace_id, {remote_id, external_id_of(account, row)})
        row.instance_id, row.server_url = remote_id, url
        await_sign_in(row, windows, actor)
        needs_key = "" if windows or row.services else "It needs its API key."
        instance_state.set_state(row, InstanceState.WAITING_FOR_SIGN_IN, needs_key)
    return row


def await_sign_in(instance: KlavisInstance, windows: Mapping[str, str], actor: Actor) -> None:
    safe = {name: url for name, url in windows.items() if is_web_address(url)}
    if safe:
        record_sign_in(instance, Action.GRANT_REQUESTED, actor, services=safe)
    instance.oauth_urls = safe or None
    instance.polls = 0
    now = timezone.now()
    instance.next_poll_at = now + FIRST_POLL if safe or not instance.services else None
    instance.poll_until = now + timedelta(minutes=SIGN_IN_MINUTES)


def failed(instance: KlavisInstance, error: DomainError) -> KlavisInstance:
    with transaction.atomic():
        row = find_locked(instance)
        if row is None:
            return instance
        instance_state.set_state(row, InstanceState.FAILED, error.message)
    return row


def _check_url(url: str) -> None:
    """The server's address is one that we would fetch."""
    try:
        outbound.parse_endpoint(url)
    except InvalidEndpoint:
        raise KlavisAnswerUnreadable(
            _("Klavis returned an address that is not a web address.")
        ) from None
