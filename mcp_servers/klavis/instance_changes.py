"""Changes of an installed instance, at the provider and here. Each function asks permission; none talks within a transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit.actions import Action
from mcp_servers.klavis import instance_state
from mcp_servers.klavis.asking import WAIT_SECONDS, ask, usable_account
from mcp_servers.klavis.entries import record_sign_in
from mcp_servers.klavis.errors import KlavisError
from mcp_servers.klavis.installing import known_names
from mcp_servers.klavis.instance_locks import fetch_locked
from mcp_servers.klavis.instance_server import look, make_ready
from mcp_servers.klavis.making import await_sign_in
from mcp_servers.klavis.models import InstanceKind, InstanceState, KlavisInstance
from mcp_servers.klavis.rights import require_to_manage
from mcp_servers.models import ServerState
from workspaces.changes import tracked_change
from workspaces.delivery.outbox import claim_until
from workspaces.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from mcp_servers.klavis.client import KlavisApi
    from workspaces.actors import Actor

MAX_CREDENTIAL: Final = 8000
_SAVING_SECONDS: Final = 15.0
"""For what comes after the provider's answer."""
_BUSY = gettext_lazy(
    "Somebody else is changing this server right now. Nothing was changed. Wait a moment, look what they did, and try again."
)
_OVERTAKEN = gettext_lazy(
    "Somebody else changed this server in the meantime. Nothing was changed. Look what they did, and try again."
)


def set_read_only(*, instance: KlavisInstance, is_read_only: bool, actor: Actor) -> KlavisInstance:
    """Have the provider offer only what reads, or everything.

    Raises:
        PermissionDenied: it is not the actor's to do.
        Conflict: somebody else was faster; nothing changed.
        KlavisError: the provider did not do it; nothing changed.
    """
    require_to_manage(actor, instance)
    account = usable_account(instance.workspace_id)
    remote_id = _remote_id(instance)
    if instance.kind == InstanceKind.STRATA:
        raise Conflict(_("A server with several services can't be made read-only."))
    with _claimed(instance, "is_read_only"):
        ask(account, lambda api: api.set_read_only(remote_id, is_read_only=is_read_only))
        with transaction.atomic():
            instance = fetch_locked(instance)
            with tracked_change(instance, actor=actor):
                instance.is_read_only = is_read_only
                instance.save(update_fields=["is_read_only", "updated_at"])
            instance_state.tell_instance(instance)
    look(instance)
    return instance


@transaction.atomic
def set_uses_rest(*, instance: KlavisInstance, uses_rest: bool, actor: Actor) -> KlavisInstance:
    """Reach it over the provider's API instead of directly, or directly again.

    Raises:
        PermissionDenied: it is not the actor's to do.
    """
    require_to_manage(actor, instance)
    instance = fetch_locked(instance)
    with tracked_change(instance, actor=actor):
        instance.uses_rest = uses_rest
        instance.save(update_fields=["uses_rest", "updated_at"])
    if instance.server_id is not None:
        states = ServerState.objects.for_workspace(instance.workspace_id)
        states.filter(pk=instance.server_id).update(resolved_transport="", next_check_at=None)
        instance_state.refresh_connection(instance.workspace_id, instance.server_id)
    instance_state.tell_instance(instance)
    return instance


def set_credential(*, instance: KlavisInstance, secret: str, actor: Actor) -> KlavisInstance:
    """Give a service its API key. It goes to the provider, and is kept nowhere here.

    Raises:
        PermissionDenied: it is not the actor's to do.
        InvalidInput: it is no key.
        KlavisError: the provider did not take it.
    """
    require_to_manage(actor, instance)
    key = secret.strip()
    if not key or len(key) > MAX_CREDENTIAL or not key.isprintable():
        raise InvalidInput(fields={"secret": [_("This is not a valid key.")]})
    account = usable_account(instance.workspace_id)
    remote_id = _remote_id(instance)

    async def give(api: KlavisApi) -> bool:
        await api.set_credential(remote_id, {"api_key": key})
        return (await api.get_instance(remote_id)).may_be_used

    record_sign_in(instance, Action.GRANT_REQUESTED, actor, by="api_key")
    try:
        may_be_used = ask(account, give)
    except KlavisError as error:
        record_sign_in(instance, Action.GRANT_FAILED, actor, by="api_key", reason=error.code)
        raise
    record_sign_in(instance, Action.GRANT_GIVEN, actor, by="api_key")
    return make_ready(instance) if may_be_used else instance


def change_services(
    *,
    instance: KlavisInstance,
    services: Sequence[str],
    actor: Actor,
    seen: Sequence[str] | None = None,
) -> KlavisInstance:
    """Have other services behind the one server.

    Args:
        seen: those that the actor was shown, if any were: what somebody has added since is not removed.

    Raises:
        PermissionDenied: it is not the actor's to do.
        Conflict: somebody else was faster; nothing changed.
        InvalidInput: a name is not in the provider's catalogue, or there is none.
        KlavisError: the provider did not do it.
    """
    require_to_manage(actor, instance)
    if instance.kind != InstanceKind.STRATA:
        raise Conflict(_("This server has one service only."))
    account = usable_account(instance.workspace_id)
    wanted = known_names(account, services)
    remote_id = _remote_id(instance)
    before = list(instance.services)
    if seen is not None and list(seen) != before:
        raise Conflict(_OVERTAKEN)
    more = [name for name in wanted if name not in before]
    fewer = [name for name in before if name not in wanted]

    async def change(api: KlavisApi) -> dict[str, str]:
        if more:
            await api.add_to_strata(remote_id, more)
        if fewer:
            await api.remove_from_strata(remote_id, fewer)
        return (await api.get_strata(remote_id)).oauth_urls

    with _claimed(instance, "services"):
        windows = ask(account, change)
        with transaction.atomic():
            instance = fetch_locked(instance)
            with tracked_change(instance, actor=actor):
                instance.services = wanted
                instance.begun_by_id = actor.user_id
                await_sign_in(instance, windows, actor)
                instance_state.set_state(instance, InstanceState.READY)
    look(instance)
    return instance


def _remote_id(instance: KlavisInstance) -> str:
    if not instance.instance_id:
        raise Conflict(_("Klavis has not made this server yet."))
    remote_id: str = instance.instance_id.reveal("asking the hosted MCP provider")
    return remote_id


@contextmanager
def _claimed(instance: KlavisInstance, name: str) -> Iterator[None]:
    """Change it at the provider and here, alone. No transaction stays open while the provider is asked.

    Args:
        name: of the field that changes.

    Raises:
        Conflict: somebody else is changing it, or has changed the field since it was read.
    """
    rows = KlavisInstance.objects.for_workspace(instance.workspace_id).filter(pk=instance.pk)
    if not claim_until(rows, seconds=WAIT_SECONDS + _SAVING_SECONDS):
        raise Conflict(_BUSY)
    try:
        if rows.values_list(name, flat=True).first() != getattr(instance, name):
            raise Conflict(_OVERTAKEN)
        yield
    finally:
        rows.update(claimed_until=None)
