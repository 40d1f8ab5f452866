"""Installing from the catalogue, uninstalling, and saying who may. Each function asks permission first."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from mcp_servers.models import CatalogueChoice, McpServer
from mcp_servers.registry.bud_choices import EVERYWHERE, WhereUsed, check_buds
from mcp_servers.registry.catalogue.listing import entry_of
from mcp_servers.registry.catalogue.sources import source_of
from mcp_servers.registry.catalogue.values import CatalogueEntry, InstallableBy, Installing
from mcp_servers.registry.rights import require_to_own
from workspaces.changes import record_created, tracked_change
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.models import Workspace


def install_entry(
    *,
    workspace: Workspace,
    source: str,
    slug: str,
    actor: Actor,
    for_workspace: bool,
    secret: str = "",
    where: WhereUsed = EVERYWHERE,
) -> Installing:
    """Install an entry: for the workspace, which administrators may, or for oneself, where that is allowed.

    Raises:
        PermissionDenied: not for this actor.
        NotFound: there is no such entry for them.
        Conflict: it is here already, or cannot be installed, and why.
        InvalidInput: its secret is missing.
    """
    if for_workspace:
        require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
    else:
        require_to_own(actor, workspace)
    entry = entry_of(workspace=workspace, actor=actor, source=source, slug=slug)
    _check(entry, workspace=workspace, actor=actor, for_workspace=for_workspace)
    if entry.needs_secret and not secret:
        raise InvalidInput(
            fields={
                "secret": [
                    _("%(title)s needs a secret: %(needs_secret)s.")
                    % {"title": entry.title, "needs_secret": entry.needs_secret}
                ]
            }
        )
    # Before anything is made elsewhere: it would be left behind there.
    if where.bud_ids and not for_workspace:
        raise InvalidInput(fields={"bud_ids": [_("Buds can't use personal servers.")]})
    check_buds(workspace.pk, where.bud_ids)
    return source_of(source).install(
        workspace=workspace,
        entry=entry,
        actor=actor,
        for_workspace=for_workspace,
        secret=secret,
        where=where,
    )


def _check(
    entry: CatalogueEntry, *, workspace: Workspace, actor: Actor, for_workspace: bool
) -> None:
    if entry.problem:
        raise Conflict(entry.problem)
    if entry.is_shared_here if for_workspace else entry.is_mine:
        raise Conflict(_("%(title)s is installed already.") % {"title": entry.title})
    if for_workspace:
        if entry.needs_parameters:
            raise Conflict(_("Fill in this program's parameters on the servers page."))
        return
    if entry.is_program:
        raise PermissionDenied(
            _("A personal server needs a URL. Only administrators can add programs.")
        )
    is_admin = has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
    if not is_admin and entry.audience is not InstallableBy.EVERYBODY:
        raise PermissionDenied(_("Only administrators of this workspace may install this."))


def uninstall_entry(
    *, workspace: Workspace, source: str, slug: str, server_id: UUID, actor: Actor
) -> None:
    """Remove a server that came from an entry.

    Raises:
        PermissionDenied: it is not the actor's to remove.
        NotFound: there is no such entry, or the server is not of it.
    """
    entry = entry_of(workspace=workspace, actor=actor, source=source, slug=slug)
    if all(one.id != server_id for one in entry.installed):
        raise NotFound
    rows = McpServer.objects.for_workspace(workspace).select_related("workspace", "global_server")
    source_of(source).uninstall(server=rows.fetch(server_id), entry=entry, actor=actor)


@transaction.atomic
def set_audience(
    *, workspace: Workspace, source: str, slug: str, is_for_everybody: bool, actor: Actor
) -> CatalogueChoice:
    """Say whether members may install an entry for themselves.

    Raises:
        PermissionDenied: only those who manage servers may.
        NotFound: there is no such entry.
        Conflict: it is a program.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
    entry = entry_of(workspace=workspace, actor=actor, source=source, slug=slug)
    if entry.is_program and is_for_everybody:
        raise Conflict(_("Programs run beside Trellis, so only administrators can add them."))
    rows = CatalogueChoice.objects.for_workspace(workspace).select_for_update()
    choice = rows.filter(source=source, slug=slug).first()
    if choice is None:
        choice = CatalogueChoice(
            workspace=workspace, source=source, slug=slug, is_for_everybody=is_for_everybody
        )
        try:
            with transaction.atomic():
                choice.save(force_insert=True)
        except IntegrityError as error:
            raise Conflict(
                _("Someone else changed this a moment ago. Reload and try again.")
            ) from error
        record_created(choice, actor=actor)
        return choice
    with tracked_change(choice, actor=actor):
        choice.is_for_everybody = is_for_everybody
        choice.save(update_fields=["is_for_everybody", "updated_at"])
    return choice
