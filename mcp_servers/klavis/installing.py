"""Installing services that the provider hosts, and removing them. Each function asks permission; none talks within a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from audit.actions import Action
from mcp_servers.client.canonical import clean_text
from mcp_servers.klavis import instance_state
from mcp_servers.klavis.asking import ask, usable_account
from mcp_servers.klavis.entries import record_sign_in
from mcp_servers.klavis.errors import KlavisError, NotThere
from mcp_servers.klavis.instance_locks import fetch_locked
from mcp_servers.klavis.making import failed, make_at_provider
from mcp_servers.klavis.models import InstanceKind, InstanceState, KlavisInstance
from mcp_servers.klavis.rights import require_to_manage, require_to_remove
from mcp_servers.models.servers import MAX_NAME_LENGTH
from mcp_servers.registry.bud_choices import EVERYWHERE, WhereUsed, check_buds
from mcp_servers.registry.rights import require_to_own
from mcp_servers.registry.services import ServerDraft, update_server
from mcp_servers.registry.services.servers import MAX_PERSONAL_SERVERS
from workspaces.changes import record_created
from workspaces.errors import Conflict, InvalidInput
from workspaces.holding import take_room
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from mcp_servers.klavis.models import KlavisAccount
    from workspaces.actors import Actor
    from workspaces.models import Workspace

STRATA_NAME: Final = "strata"
MAX_SERVICES: Final = 50
MAX_INSTANCES: Final = 200
"""Of one workspace, its people's included."""


def install(
    *,
    workspace: Workspace,
    server_name: str,
    actor: Actor,
    for_workspace: bool,
    is_read_only: bool = False,
    services: Sequence[str] = (),
    where: WhereUsed = EVERYWHERE,
) -> KlavisInstance:
    """Have a service run for the workspace or for the actor. What came of it stands in the row, also a failure.

    Args:
        server_name: as the provider's catalogue names it.
        where: where its server is used, as soon as it is there.
        services: several names, to have them all behind one server; then `server_name` is not looked at.

    Raises:
        PermissionDenied: the actor may not install that.
        NotSetUp: the workspace has no account that works.
        Conflict: it is installed already, or there are too many.
        InvalidInput: the provider's catalogue has no such service, or a bud is not there.
    """
    if for_workspace:
        require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
    else:
        require_to_own(actor, workspace)
    check_buds(workspace.pk, where.bud_ids)
    account = usable_account(workspace.pk)
    names = known_names(account, services or [server_name])
    user_id = None if for_workspace else actor.user_id
    instance = _take_up(workspace, names, user_id, actor, where, is_strata=bool(services))
    if is_read_only:
        instance.is_read_only = True
        instance.save(update_fields=["is_read_only"])
    return make_at_provider(instance, account, actor)


def begin_again(*, instance: KlavisInstance, actor: Actor) -> KlavisInstance:
    """Try a failed installation once more, or sign in anew; what is signed in now is signed out first.

    Raises:
        PermissionDenied: it is not the actor's to do.
        NotSetUp: the workspace has no account that works.
    """
    require_to_manage(actor, instance)
    account = usable_account(instance.workspace_id)
    if instance.instance_id and instance.kind == InstanceKind.SINGLE:
        remote_id = instance.instance_id.reveal("signing out at the hosted MCP provider")
        try:
            ask(account, lambda api: api.delete_credential(remote_id))
        except NotThere:
            pass  # it is made anew
        except KlavisError as error:
            record_sign_in(instance, Action.GRANT_FAILED, actor, reason=error.code)
            return failed(instance, error)
    with transaction.atomic():
        instance = fetch_locked(instance)
        if instance.server_id is not None and instance.kind == InstanceKind.SINGLE:
            record_sign_in(instance, Action.GRANT_REVOKED, actor, reason="signs in anew")
        instance.begun_by_id = actor.user_id
        instance.oauth_urls = None
        instance_state.set_state(instance, InstanceState.CREATING)
    return make_at_provider(instance, account, actor)


def make_again(instance: KlavisInstance, account: KlavisAccount) -> KlavisInstance:
    """Go on with an installation that stopped half way."""
    return make_at_provider(instance, account, instance_state.actor_for(instance))


@transaction.atomic
def uninstall(*, instance: KlavisInstance, actor: Actor) -> None:
    """Delete it here at once, with its server and tools; at the provider too, however often that takes.

    Raises:
        PermissionDenied: it is not the actor's to remove.
    """
    require_to_remove(actor, instance)
    instance_state.let_go(instance, actor=actor)


def known_names(account: KlavisAccount, names: Sequence[str]) -> list[str]:
    """As the catalogue spells them, each once."""
    catalogue = {str(entry["name"]).casefold(): str(entry["name"]) for entry in account.catalogue}
    found = [catalogue.get(name.strip().casefold()) for name in names]
    known = list(dict.fromkeys(name for name in found if name is not None))
    if None in found or not known:
        raise InvalidInput(fields={"service": [_("The catalogue of Klavis has no such service.")]})
    if len(known) > MAX_SERVICES:
        raise InvalidInput(
            fields={"service": [_("At most %(most)s services.") % {"most": MAX_SERVICES}]}
        )
    return known


@transaction.atomic
def _take_up(
    workspace: Workspace,
    names: list[str],
    user_id: UUID | None,
    actor: Actor,
    where: WhereUsed,
    *,
    is_strata: bool,
) -> KlavisInstance:
    """The row of a new installation, or of one that stopped."""
    name = STRATA_NAME if is_strata else names[0]
    rows = KlavisInstance.objects.for_workspace(workspace)
    mine = rows.filter(user_id=user_id) if user_id else rows.filter(user__isnull=True)
    instance = mine.select_for_update(of=("self",)).filter(server_name=name).first()
    if instance is not None:
        if instance.state == InstanceState.READY:
            raise Conflict(_("This service is installed already."))
        instance.begun_by_id = actor.user_id
        _note_where(instance, where)
        if instance.server is not None and where != EVERYWHERE:
            draft = ServerDraft().used(where)  # it is there from before, with the choice of then
            update_server(server=instance.server, draft=draft, actor=actor)
        if is_strata:
            instance.services = names
        instance_state.set_state(instance, InstanceState.CREATING)
        return instance
    message = _("A workspace may have %(most)s hosted servers.")
    take_room(
        rows,
        most=MAX_INSTANCES,
        refusal=Conflict(message % {"most": MAX_INSTANCES}),
        workspace_id=workspace.pk,
    )
    if user_id is not None and mine.count() >= MAX_PERSONAL_SERVERS:
        raise Conflict(
            _("One person may have %(most)s servers of their own.") % {"most": MAX_PERSONAL_SERVERS}
        )
    instance = KlavisInstance(
        workspace=workspace,
        user_id=user_id,
        begun_by_id=actor.user_id,
        server_name=name,
        title="Strata" if is_strata else clean_text(name)[:MAX_NAME_LENGTH],
        kind=InstanceKind.STRATA if is_strata else InstanceKind.SINGLE,
        services=names if is_strata else [],
    )
    _note_where(instance, where)
    try:
        with transaction.atomic():
            instance.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(
            _("Someone else is installing this service right now. Try again in a moment.")
        ) from error
    record_created(instance, actor=actor)
    instance_state.tell_instance(instance)
    return instance


def _note_where(instance: KlavisInstance, where: WhereUsed) -> None:
    instance.is_used_everywhere = where.is_used_everywhere
    instance.bud_ids = [str(one) for one in where.bud_ids]
