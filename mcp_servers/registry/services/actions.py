"""Rules on actions that a tool of a hosted server runs by name."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from mcp_servers.client.values import Effect
from mcp_servers.models import ActionRule, McpServer, meta_tools
from mcp_servers.registry.rights import require_to_manage
from mcp_servers.registry.services.server_notices import tell
from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.holding import take_room

MAX_RULES: Final = 500
"""Of one server."""


@transaction.atomic
def set_action_rule(
    *,
    server: McpServer,
    service: str,
    category: str,
    action: str,
    effect: Effect,
    actor: Actor,
) -> ActionRule:
    """Say whether an action runs by itself, asks or is refused.

    What refuses or asks counts whatever category a call names, and also where it names no service.

    Raises:
        PermissionDenied: the actor may not manage the server, or lets an action of their own server run by itself.
        InvalidInput: a name is missing or no name.
        Conflict: no provider hosts the server, or it has too many rules.
    """
    require_to_manage(actor, server)
    if not server.hosted_by:
        raise Conflict(_("Rules on actions are for servers that a provider hosts."))
    if server.owner_id is not None and effect is Effect.AUTO:
        raise PermissionDenied(_("The tools of a personal server can't be trusted in advance."))
    named = meta_tools.read_action(
        meta_tools.RUNNING,
        {"server_name": service, "category_name": category, "action_name": action},
    )
    if named is None:
        raise InvalidInput(fields={"action": [_("Use a name of at most 200 visible characters.")]})
    rows = ActionRule.objects.for_workspace(server.workspace_id).filter(server=server)
    rule = rows.select_for_update().filter(key=named.key).first()
    if rule is not None:
        with tracked_change(rule, actor=actor):
            rule.effect = effect.value
            rule.save(update_fields=["effect", "updated_at"])
    else:
        message = _("One server may have %(most)s rules on actions.")
        take_room(
            rows,
            most=MAX_RULES,
            refusal=Conflict(message % {"most": MAX_RULES}),
            workspace_id=server.workspace_id,
        )
        rule = ActionRule.objects.create(
            workspace_id=server.workspace_id,
            server=server,
            key=named.key,
            service=named.service,
            category=named.category,
            action=named.action,
            effect=effect.value,
        )
        record_created(rule, actor=actor)
    tell(server)
    return rule


@transaction.atomic
def remove_action_rule(*, rule: ActionRule, actor: Actor) -> None:
    """Take a rule back; the action asks again.

    Raises:
        PermissionDenied: the actor may not manage the server.
    """
    require_to_manage(actor, rule.server)
    record_deleted(rule, actor=actor)
    server = rule.server
    rule.delete()
    tell(server)
