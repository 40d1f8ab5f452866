"""The server that stands for an instance, from when nobody has to sign in any more."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from audit.actions import Action
from mcp_servers.client.transports import STREAMABLE_HTTP
from mcp_servers.klavis import instance_state
from mcp_servers.klavis.entries import record_sign_in
from mcp_servers.klavis.instance_locks import find_locked
from mcp_servers.klavis.models import HOST, InstanceState, KlavisInstance
from mcp_servers.models import McpServer, ServerScope
from mcp_servers.models.servers import MAX_NAME_LENGTH
from mcp_servers.registry.bud_choices import buds_of, give_to_buds
from mcp_servers.registry.services.server_notices import tell
from workspaces.changes import record_created
from workspaces.errors import DomainError

if TYPE_CHECKING:
    from workspaces.actors import Actor


def make_ready(instance: KlavisInstance, *, signed_in_by: Actor | None = None) -> KlavisInstance:
    """Nobody has to sign in any more: the server is there from now on, with its tools; unless it is begun anew by now.

    Args:
        signed_in_by: who connected an account; none: nobody had to, or it is on record already.
    """
    reason = ""
    with transaction.atomic():
        row = find_locked(instance)
        if row is None or (row.state, row.poll_until) != (instance.state, instance.poll_until):
            # It is uninstalled, or was begun anew: what was seen is of the time before.
            return row or instance
        instance = row
        if instance.server_id is None:
            instance.server = _add_server(instance)
            reason = _give_to_buds(instance.server, instance)
        if signed_in_by is not None:
            record_sign_in(instance, Action.GRANT_GIVEN, signed_in_by)
        instance_state.set_state(instance, InstanceState.READY, reason)
    look(instance)
    return instance


def look(instance: KlavisInstance) -> None:
    """Read what it offers now, for who installed it: of a server that is new, what is seen is accepted."""
    from mcp_servers.registry.services.inspection import look_as

    server = McpServer.objects.for_workspace(instance.workspace_id).find(instance.server_id)
    if server is not None:
        look_as(server=server, actor=instance_state.who_began(instance))


def _add_server(instance: KlavisInstance) -> McpServer:
    """The server that stands for it, on record as made by who began it."""
    rows = McpServer.objects.for_workspace(instance.workspace_id)
    taken = set(rows.filter(owner_id=instance.user_id).values_list("name", flat=True))
    name, number = instance.title, 1
    while name in taken:
        number += 1
        name = f"{instance.title[: MAX_NAME_LENGTH - 4]} {number}"
    server = McpServer(
        is_used_everywhere=instance.is_used_everywhere,
        workspace_id=instance.workspace_id,
        name=name,
        scope=ServerScope.PERSONAL if instance.user_id else ServerScope.WORKSPACE,
        owner_id=instance.user_id,
        hosted_by=HOST,
        transport=STREAMABLE_HTTP,
    )
    server.check_values()
    server.save(force_insert=True)
    record_created(server, actor=instance_state.who_began(instance))
    tell(server)
    return server


def _give_to_buds(server: McpServer, instance: KlavisInstance) -> str:
    """Put it into the buds that were chosen and are still there; give why that failed. Then none of them has it."""
    there = {str(bud.id) for bud in buds_of(instance.workspace_id)}
    chosen = [UUID(one) for one in instance.bud_ids if one in there]
    if not chosen:
        return ""
    try:
        with transaction.atomic():
            give_to_buds(server, chosen, instance_state.who_began(instance))
    except DomainError as error:
        return _("The buds that were chosen do not use it: %(reason)s") % {"reason": error.message}
    return ""
