"""Servers that a workspace has from the platform or from a provider: what is decided about them."""

from __future__ import annotations

from uuid import UUID

from django.utils.translation import gettext as _

from config.workspace_files.offers import decided_of, put_offers
from config.workspace_files.shapes import ActionFile, GivenServerFile, OffersFile, offers_in
from config.workspace_files.target import WorkspaceTarget, faults_at
from mcp_servers.client.values import Effect
from mcp_servers.models import ActionRule, GlobalServer, McpServer, ServerScope, meta_tools
from mcp_servers.registry.scopes.platform import switch_off, switch_on
from mcp_servers.registry.services.actions import remove_action_rule, set_action_rule
from workspaces.errors import InvalidInput
from workspaces.scoping import WorkspaceQuerySet


def _given(workspace_id: UUID) -> WorkspaceQuerySet[McpServer]:
    rows = McpServer.objects.for_workspace(workspace_id).filter(owner=None)
    own = {"scope": ServerScope.WORKSPACE, "hosted_by": ""}
    return rows.exclude(**own).select_related("global_server", "workspace")


def given_server_files(target: WorkspaceTarget) -> list[GivenServerFile]:
    """Every server of the platform that is on by choice, and every other one about which something is decided."""
    decided, actions = decided_of(target.pk), _actions_of(target.pk)
    files = []
    for row in _given(target.pk).order_by("name"):
        offers = decided.get(row.pk, OffersFile())
        file = GivenServerFile.model_validate(
            {"name": row.name, "actions": actions.get(row.pk, []), **dict(offers)}
        )
        is_chosen = row.global_server is not None and not row.global_server.is_required
        if is_chosen or file != GivenServerFile(name=row.name):
            files.append(file)
    return files


def _actions_of(workspace_id: UUID) -> dict[UUID, list[ActionFile]]:
    found: dict[UUID, list[ActionFile]] = {}
    rules = ActionRule.objects.for_workspace(workspace_id)
    for rule in rules.order_by("service", "category", "action", "id"):
        found.setdefault(rule.server_id, []).append(_file_of(rule))
    return found


def _file_of(rule: ActionRule) -> ActionFile:
    return ActionFile(
        action=rule.action,
        service=rule.service,
        category=rule.category,
        effect=Effect(rule.effect),
    )


def put_given_server(target: WorkspaceTarget, wanted: GivenServerFile) -> None:
    """Switch a server of the platform on or off, and decide about what a given server offers.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    where = f"given_servers.{wanted.name}"
    with faults_at(where):
        row = _given(target.pk).filter(name=wanted.name).first()
        known = GlobalServer.objects.filter(name=wanted.name, is_present=True).first()
        if row is None and known is not None and wanted.is_on:
            row = switch_on(workspace_id=target.pk, global_server=known, actor=target.actor)
        elif row is not None and row.global_server is not None and not wanted.is_on:
            switch_off(workspace_id=target.pk, global_server=row.global_server, actor=target.actor)
            return
        elif row is not None and not wanted.is_on:
            message = _("A provider gives this server. Uninstall it on the servers page.")
            raise InvalidInput(fields={"is_on": [message]})
    if row is None:
        if wanted.is_on:
            message = _("“%(name)s” is not here. Install it, then apply the file again.")
            target.notes.append(message % {"name": wanted.name})
        return
    put_offers(target, row, offers_in(wanted), where)
    _put_actions(target, row, wanted, where)


def _put_actions(
    target: WorkspaceTarget, server: McpServer, wanted: GivenServerFile, where: str
) -> None:
    rules = ActionRule.objects.for_workspace(target.pk).filter(server=server)
    now = {rule.key: rule for rule in rules.select_related("server__workspace")}
    kept = {_key_of(one): one for one in wanted.actions}
    with faults_at(f"{where}.actions"):
        if len(kept) < len(wanted.actions):
            raise InvalidInput(_("An action is named twice."))
        # Those that go make room for those that come.
        for key, rule in now.items():
            if key not in kept:
                remove_action_rule(rule=rule, actor=target.actor)
        for key, one in kept.items():
            if key not in now or now[key].effect != one.effect.value:
                set_action_rule(
                    server=server,
                    service=one.service,
                    category=one.category,
                    action=one.action,
                    effect=one.effect,
                    actor=target.actor,
                )


def _key_of(one: ActionFile) -> str:
    """By which Trellis knows the action, however it is written."""
    named = meta_tools.read_action(
        meta_tools.RUNNING,
        {
            "server_name": one.service,
            "category_name": one.category,
            "action_name": one.action,
        },
    )
    return named.key if named is not None else one.action
