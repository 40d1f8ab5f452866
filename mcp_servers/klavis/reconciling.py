"""Our table is the truth; now and then the provider is asked what became of what stands in it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.core.cache import cache
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from audit.actions import Action
from mcp_servers.klavis import instance_state
from mcp_servers.klavis.accounts import read_catalogue
from mcp_servers.klavis.asking import account_of, ask
from mcp_servers.klavis.entries import record_sign_in
from mcp_servers.klavis.errors import NotThere
from mcp_servers.klavis.installing import make_again
from mcp_servers.klavis.instance_locks import find_locked
from mcp_servers.klavis.models import InstanceKind, InstanceState, KlavisAccount, KlavisInstance
from workspaces.errors import DomainError

logger = logging.getLogger(__name__)

EVERY: Final = timedelta(minutes=10)
INTERRUPTED_AFTER: Final = timedelta(minutes=3)
CATALOGUE_EVERY: Final = timedelta(hours=12)
VANISHED: Final = "Klavis does not have this server any more. Install it again."
SIGNED_OUT: Final = "The sign-in at Klavis has ended. Sign in again."


def due_checks(limit: int = 500) -> list[tuple[UUID, UUID]]:
    """Workspace and id of each instance that has not been looked at for a while, or whose making was interrupted."""
    now = timezone.now()
    is_old = Q(last_checked_at__isnull=True) | Q(last_checked_at__lte=now - EVERY)
    rows = KlavisInstance.objects.across_workspaces().filter(
        Q(state=InstanceState.READY) & is_old
        | Q(state=InstanceState.CREATING, updated_at__lte=now - INTERRUPTED_AFTER) & is_old,
        workspace__is_active=True,
    )
    return list(rows.order_by("last_checked_at").values_list("workspace_id", "pk")[:limit])


def claim(workspace_id: UUID, instance_id: UUID) -> None:
    """Count an instance as looked at, so that the next round does not hand it out again."""
    rows = KlavisInstance.objects.for_workspace(workspace_id).filter(pk=instance_id)
    rows.update(last_checked_at=timezone.now())


def check(workspace_id: UUID, instance_id: UUID) -> None:
    """Look at one instance, unless it is gone or the provider is not to be asked."""
    rows = KlavisInstance.objects.for_workspace(workspace_id)
    instance = rows.select_related("workspace").find(instance_id)
    account = account_of(workspace_id)
    if instance is None or account is None or not account.is_usable:
        return
    if instance.state == InstanceState.CREATING:
        if timezone.now() - instance.updated_at >= INTERRUPTED_AFTER:
            make_again(instance, account)
        return
    if instance.state != InstanceState.READY or not instance.instance_id:
        return
    rows.filter(pk=instance.pk).update(last_checked_at=timezone.now())
    try:
        is_signed_in = _is_signed_in(instance, account)
    except NotThere:
        if _is_missed_again(instance):
            _settle(instance, InstanceState.FAILED, VANISHED)
    except DomainError:  # also where a key is gone that something is encrypted under
        logger.info("klavis_not_checked", exc_info=True)
    else:
        cache.delete(f"klavis.missed.{instance.pk}")
        if not is_signed_in:
            _settle(instance, InstanceState.WAITING_FOR_SIGN_IN, SIGNED_OUT)


def old_catalogues() -> list[UUID]:
    """Workspaces whose account's catalogue was not read for a while."""
    limit = timezone.now() - CATALOGUE_EVERY
    accounts = KlavisAccount.objects.across_workspaces().filter(
        Q(catalogue_read_at__isnull=True) | Q(catalogue_read_at__lte=limit),
        is_active=True,
        workspace__is_active=True,
    )
    return list(accounts.values_list("workspace_id", flat=True))


def read_catalogue_of(workspace_id: UUID) -> None:
    """Read a workspace's catalogue anew; what comes in between waits for the next time."""
    account = account_of(workspace_id)
    if account is None or not account.is_usable:
        return
    try:
        read_catalogue(account)
    except DomainError:
        logger.info("klavis_catalogue_not_read", exc_info=True)


def _is_missed_again(instance: KlavisInstance) -> bool:
    """Whether the look before this one did not find it either; a gateway, or another form of the API, answers 404 too."""
    if not cache.add(f"klavis.missed.{instance.pk}", True, timeout=6 * EVERY.total_seconds()):
        return True
    rows = KlavisAccount.objects.for_workspace(instance.workspace_id)
    rows.update(found_dialect="")  # found out anew by the next look
    return False


def _is_signed_in(instance: KlavisInstance, account: KlavisAccount) -> bool:
    remote_id = instance.instance_id.reveal("asking whether it still works")
    if instance.kind == InstanceKind.STRATA:
        ask(account, lambda api: api.get_strata(remote_id))
        return True
    return ask(account, lambda api: api.get_instance(remote_id)).may_be_used


def note_signed_out(instance: KlavisInstance) -> None:
    """The server refused a call for want of an account: it waits for a sign-in from now on."""
    _settle(instance, InstanceState.WAITING_FOR_SIGN_IN, SIGNED_OUT)


@transaction.atomic
def _settle(instance: KlavisInstance, state: InstanceState, reason: str) -> None:
    """Unless a person was at work on it meanwhile."""
    row = find_locked(instance)
    if row is None or row.state != InstanceState.READY:
        return
    why = "vanished" if state == InstanceState.FAILED else "signed out"
    record_sign_in(row, Action.GRANT_LOST, instance_state.actor_for(row), reason=why)
    row.oauth_urls, row.next_poll_at = None, None
    if state == InstanceState.FAILED:
        row.server_url = None  # and its id stays, to be deleted over there with the row
    instance_state.set_state(row, state, reason)
