"""Deletions at the provider, noted with what they follow from, and tried until it has made them or knows of nothing.

Rows of hosted instances are deleted at once; whatever deletes one, a service or a cascade, notes the deletion over there
in the same transaction.
"""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Collection, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.signals import pre_delete
from django.utils import timezone

from mcp_servers.klavis.asking import account_of, dialect_of, external_id, run
from mcp_servers.klavis.client import KlavisApi, api_for, find_dialect
from mcp_servers.klavis.errors import KeyRefused, KlavisError, NotThere, TooManyRequests
from mcp_servers.klavis.http import KlavisCredentials, KlavisHttp
from mcp_servers.klavis.models import (
    InstanceKind,
    KlavisAccount,
    KlavisInstance,
    KlavisRemoval,
    RemovalKind,
)
from workspaces.actors import Actor
from workspaces.changes import record_deleted
from workspaces.errors import DomainError
from workspaces.roles import Permission, require
from workspaces.secrets import SecretUnreadable

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 30.0
LONGEST_PAUSE_SECONDS: Final = 6 * 3600.0
CLAIM_SECONDS: Final = 180
"""How long one attempt may take before another process makes one."""


def listen_to_deletions() -> None:
    """Note what has to be deleted at the provider, whatever deletes the rows. Called once at start."""
    pre_delete.connect(
        _instance_goes, sender=KlavisInstance, dispatch_uid="mcp_servers.klavis.instance"
    )
    pre_delete.connect(
        _account_goes, sender=KlavisAccount, dispatch_uid="mcp_servers.klavis.account"
    )


def _instance_goes(sender: type[KlavisInstance], instance: KlavisInstance, **_: Any) -> None:
    account = account_of(instance.workspace_id)
    if account is not None:
        with _as_far_as_readable():
            note_instance(instance, account)


def _account_goes(sender: type[KlavisAccount], instance: KlavisAccount, **_: Any) -> None:
    """Everything that the provider keeps of the workspace goes; of its people, as their memberships end or it does."""
    users: set[UUID | None] = {None}
    rows = KlavisInstance.objects.for_workspace(instance.workspace_id).order_by()
    users |= set(rows.values_list("user_id", flat=True).distinct())
    for user_id in users:
        note_user(instance, user_id, "An account")


def note_instance(instance: KlavisInstance, account: KlavisAccount) -> None:
    """An instance is to be deleted at the provider, if it was ever made there."""
    if not instance.instance_id:
        return
    is_strata = instance.kind == InstanceKind.STRATA
    kind = RemovalKind.STRATA if is_strata else RemovalKind.INSTANCE
    remote_id = instance.instance_id.reveal("deleting it at the hosted MCP provider")
    note(account, kind, remote_id, instance.title)


def note_user(account: KlavisAccount, user_id: UUID | None, label: str) -> None:
    """All that the provider keeps of a person, or of the workspace itself, is to be deleted."""
    with _as_far_as_readable():
        note(account, RemovalKind.USER, external_id(account, user_id), label)


@contextlib.contextmanager
def _as_far_as_readable() -> Iterator[None]:
    """What was encrypted under a key that is gone keeps nobody from leaving and nothing from being deleted here."""
    try:
        yield
    except SecretUnreadable:
        logger.warning("klavis_removal_not_noted", exc_info=True)


def note(account: KlavisAccount, kind: RemovalKind, remote_id: str, label: str) -> None:
    """Something is to be deleted at the provider, as soon as the transaction has committed."""
    if not account.api_key:
        return  # it never had anything, or the key was dropped together with what it had
    row = KlavisRemoval.objects.create(
        workspace_id=account.workspace_id,
        base_url=account.base_url,
        dialect=dialect_of(account),
        api_key=account.api_key.reveal("deleting at the hosted MCP provider"),
        kind=kind,
        remote_id=remote_id,
        label=label[:100],
    )
    transaction.on_commit(partial(_hand_out, row.workspace_id, row.pk))


def withdraw(workspace_id: UUID, remote_ids: Collection[str]) -> None:
    """What was to be deleted is in use again: making is idempotent, and gave back what was still there."""
    for row in KlavisRemoval.objects.for_workspace(workspace_id):
        # One that cannot be read any more deletes nothing either.
        with contextlib.suppress(SecretUnreadable):
            if row.remote_id.reveal("comparing deletions at the hosted MCP provider") in remote_ids:
                row.delete()


def _hand_out(workspace_id: UUID, removal_id: UUID) -> None:
    try:
        from celery import current_app

        current_app.send_task(
            "mcp_servers.klavis.tasks.remove_at_klavis",
            (str(workspace_id), str(removal_id)),
            expires=CLAIM_SECONDS,
        )
    except Exception:  # without a broker the regular round does it
        logger.warning("klavis_removal_not_handed_out", exc_info=True)


def due_removals(limit: int = 200) -> list[tuple[UUID, UUID]]:
    """Workspace and id of those whose time has come, in every workspace, the oldest first."""
    rows = KlavisRemoval.objects.across_workspaces().filter(next_attempt_at__lte=timezone.now())
    return list(rows.values_list("workspace_id", "pk")[:limit])


def try_removal(workspace_id: UUID, removal_id: UUID) -> bool:
    """Make one attempt, unless another process does; whether it is done with."""
    now = timezone.now()
    rows = KlavisRemoval.objects.for_workspace(workspace_id).filter(pk=removal_id)
    claimed = rows.filter(next_attempt_at__lte=now).update(
        next_attempt_at=now + timedelta(seconds=CLAIM_SECONDS)
    )
    row = rows.first() if claimed else None
    if row is None:
        return False
    try:
        _remove(row)
    except NotThere:
        logger.info("klavis_removal_gone_already")
    except DomainError as error:
        _put_off(row, error)
        return False
    rows.delete()
    return True


@transaction.atomic
def forget_removal(*, removal: KlavisRemoval, actor: Actor) -> None:
    """Give a deletion up: for one that can no longer be made, because the key was withdrawn.

    Raises:
        PermissionDenied: the actor does not manage servers there.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=removal.workspace_id)
    record_deleted(removal, actor=actor)
    removal.delete()


def _remove(row: KlavisRemoval) -> None:
    """Raises KlavisError, or SecretUnreadable if its copy of the key cannot be read."""
    remote_id = row.remote_id.reveal("deleting it at the hosted MCP provider")
    keys = [row.api_key.reveal("deleting at the hosted MCP provider")]
    account = account_of(row.workspace_id)
    if account is not None and account.api_key and account.base_url == row.base_url:
        newest = account.api_key.reveal("deleting at the hosted MCP provider")
        keys = list(dict.fromkeys([newest, *keys]))
    for key in keys:
        try:
            run(_delete(KlavisCredentials(base_url=row.base_url, api_key=key), row, remote_id))
        except KeyRefused:
            if key == keys[-1]:
                raise
        else:
            return


async def _delete(connection: KlavisCredentials, row: KlavisRemoval, remote_id: str) -> None:
    async with KlavisHttp(connection) as http:
        api: KlavisApi = api_for(http, row.dialect or await find_dialect(http))
        if row.kind == RemovalKind.USER:
            await api.delete_user(remote_id)
        elif row.kind == RemovalKind.STRATA:
            found = await api.get_strata(remote_id)
            names = [name for name in found.connected_servers if isinstance(name, str)]
            if names:
                await api.remove_from_strata(remote_id, names)
        else:
            await api.delete_instance(remote_id)


def _put_off(row: KlavisRemoval, error: DomainError) -> None:
    row.attempts += 1
    wait = min(FIRST_PAUSE_SECONDS * 2 ** min(row.attempts - 1, 20), LONGEST_PAUSE_SECONDS)
    if isinstance(error, TooManyRequests) and error.retry_after_seconds:
        wait = max(wait, min(error.retry_after_seconds, LONGEST_PAUSE_SECONDS))
    wait *= random.uniform(0.9, 1.1)  # noqa: S311  spreads load, keeps no secret
    row.next_attempt_at = timezone.now() + timedelta(seconds=wait)
    row.last_error = error.message[:300]
    row.save(update_fields=["attempts", "next_attempt_at", "last_error"])
    level = logging.INFO if isinstance(error, KlavisError) else logging.WARNING
    logger.log(level, "klavis_removal_put_off", extra={"attempts": row.attempts})
