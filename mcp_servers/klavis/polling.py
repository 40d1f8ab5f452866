"""Whether somebody has signed in by now: asked in the background and whenever a page asks, ever more rarely, for a bounded time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from mcp_servers.klavis import instance_state
from mcp_servers.klavis.asking import account_of, ask
from mcp_servers.klavis.entries import record_sign_in
from mcp_servers.klavis.errors import KeyRefused, NotThere
from mcp_servers.klavis.instance_locks import find_locked
from mcp_servers.klavis.instance_server import make_ready
from mcp_servers.klavis.models import InstanceKind, InstanceState, KlavisAccount, KlavisInstance
from mcp_servers.klavis.rights import may_follow_sign_in
from mcp_servers.klavis.web_addresses import is_web_address
from workspaces.errors import DomainError, PermissionDenied

if TYPE_CHECKING:
    from mcp_servers.klavis import shapes
    from workspaces.actors import Actor

PAUSES: Final = (3, 3, 5, 5, 8, 8, 15, 15, 30)
"""Seconds between two questions; the last one goes on until the time is over."""
CLAIM: Final = timedelta(seconds=90)
EXPIRED: Final = "Nobody signed in in time. Begin the sign-in again."


def due_polls(limit: int = 200) -> list[tuple[UUID, UUID]]:
    """Workspace and id of each instance that is waited for and whose time has come."""
    rows = KlavisInstance.objects.across_workspaces().filter(
        next_poll_at__lte=timezone.now(), workspace__is_active=True
    )
    return list(rows.order_by("next_poll_at").values_list("workspace_id", "pk")[:limit])


def poll_for(*, instance: KlavisInstance, actor: Actor) -> KlavisInstance:
    """What became of a sign-in, for whoever began it; the provider is asked if its time has come.

    Raises:
        PermissionDenied: somebody else began it.
    """
    if not may_follow_sign_in(actor, instance):
        raise PermissionDenied
    return poll(instance.workspace_id, instance.pk) or instance


def poll(workspace_id: UUID, instance_id: UUID) -> KlavisInstance | None:
    """Ask the provider once, unless it is not time yet or somebody else does; the row as it is then."""
    now = timezone.now()
    rows = KlavisInstance.objects.for_workspace(workspace_id).filter(pk=instance_id)
    claimed = rows.filter(next_poll_at__lte=now).update(next_poll_at=now + CLAIM)
    instance = rows.select_related("workspace").first()
    if not claimed or instance is None:
        return instance
    account = account_of(workspace_id)
    if account is None or not account.is_usable or not instance.instance_id:
        return _next(instance)
    try:
        if instance.kind == InstanceKind.STRATA:
            return _ask_strata(instance, account)
        return _ask_single(instance, account)
    except NotThere as error:
        return _fail(instance, error.message, error.code)
    except KeyRefused as error:
        if instance.state == InstanceState.READY:
            return _next(instance)  # it serves as before; the administrators see it on the account
        return _fail(instance, error.message, error.code)
    except DomainError:  # also where a key is gone that something is encrypted under
        return _next(instance)


def _ask_single(instance: KlavisInstance, account: KlavisAccount) -> KlavisInstance:
    remote_id = instance.instance_id.reveal("asking whether somebody signed in")
    seen: shapes.Instance = ask(account, lambda api: api.get_instance(remote_id))
    if seen.may_be_used:
        who = instance_state.who_began(instance) if seen.is_authenticated else None
        return make_ready(instance, signed_in_by=who)
    return _next(instance)


def _ask_strata(instance: KlavisInstance, account: KlavisAccount) -> KlavisInstance:
    remote_id = instance.instance_id.reveal("asking whether somebody signed in")
    found: shapes.Strata = ask(account, lambda api: api.get_strata(remote_id))
    windows = {name: url for name, url in found.oauth_urls.items() if is_web_address(url)}
    with transaction.atomic():
        row = find_locked(instance)
        if row is None:
            return instance
        before = row.oauth_urls.reveal_json("telling who has signed in") if row.oauth_urls else {}
        signed_in = before.keys() - windows.keys()
        if signed_in:
            who = instance_state.who_began(row)
            record_sign_in(row, Action.GRANT_GIVEN, who, services=signed_in)
        row.oauth_urls = windows or None
        row.save(update_fields=["oauth_urls"])
    if windows:
        return _next(instance)
    instance.oauth_urls = None
    return _stop(instance)


def _next(instance: KlavisInstance) -> KlavisInstance:
    """Ask again later, or end."""
    now = timezone.now()
    if instance.poll_until is None or now >= instance.poll_until:
        is_waiting = instance.state == InstanceState.WAITING_FOR_SIGN_IN
        return _fail(instance, EXPIRED, "expired") if is_waiting else _stop(instance)
    pause = PAUSES[min(instance.polls, len(PAUSES) - 1)]
    instance.polls += 1
    instance.next_poll_at = min(now + timedelta(seconds=pause), instance.poll_until)
    rows = KlavisInstance.objects.for_workspace(instance.workspace_id).filter(pk=instance.pk)
    rows.update(polls=instance.polls, next_poll_at=instance.next_poll_at)
    return instance


def _stop(instance: KlavisInstance) -> KlavisInstance:
    with transaction.atomic():
        row = find_locked(instance)
        if row is None:
            return instance
        row.next_poll_at, row.oauth_urls = None, None
        row.save(update_fields=["next_poll_at", "oauth_urls"])
        instance_state.tell_instance(row)
    return row


def _fail(instance: KlavisInstance, reason: str, code: str) -> KlavisInstance:
    with transaction.atomic():
        row = find_locked(instance)
        if row is None or row.poll_until != instance.poll_until:
            return row or instance  # uninstalled, or begun anew
        record_sign_in(row, Action.GRANT_FAILED, instance_state.actor_for(row), reason=code)
        instance_state.set_state(row, InstanceState.FAILED, reason)
    return row
