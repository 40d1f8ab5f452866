"""Filters of a page under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from audit.models import SavedView
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.holding import take_room
from workspaces.lists.view_names import faults_of_view
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.scoping import WorkspaceQuerySet

MOST = 100


def views_for(actor: Actor, workspace_id: UUID) -> WorkspaceQuerySet[SavedView]:
    """Give the views that are the actor's own or shared.

    Raises:
        PermissionDenied: the actor does not see the log.
    """
    require(actor, Permission.VIEW_AUDIT, workspace_id=workspace_id)
    mine = Q(owner_id=actor.user_id) | Q(is_shared=True)
    rows = SavedView.objects.for_workspace(workspace_id).filter(mine)
    return rows.select_related("owner")


def save_view(
    *, workspace_id: UUID, actor: Actor, page: str, name: str, query: str, is_shared: bool
) -> SavedView:
    """Keep a page's filters.

    Raises:
        PermissionDenied: the actor does not see the log.
        InvalidInput: no name, no such page, or too long.
        Conflict: the name is in use, or there are too many.
    """
    require(actor, Permission.VIEW_AUDIT, workspace_id=workspace_id)
    if actor.user_id is None:
        raise PermissionDenied
    name = name.replace("\x00", "").strip()
    faults = faults_of_view(name=name, query=query)
    if page not in SavedView.Page.values:
        faults["page"] = [_("There is no such page.")]
    if faults:
        raise InvalidInput(fields=faults)
    mine = SavedView.objects.for_workspace(workspace_id).filter(owner_id=actor.user_id)
    full = Conflict(_("You have %(most)s views already. Delete one first.") % {"most": MOST})
    try:
        with transaction.atomic():
            take_room(
                mine,
                most=MOST,
                refusal=full,
                workspace_id=workspace_id,
                person_id=actor.user_id,
            )
            return SavedView.objects.create(
                workspace_id=workspace_id,
                owner_id=actor.user_id,
                page=page,
                name=name,
                query=query.replace("\x00", ""),
                is_shared=is_shared,
            )
    except IntegrityError as error:
        raise Conflict(_("You have a view of that name already.")) from error


def change_view(*, view: SavedView, actor: Actor, query: str) -> SavedView:
    """Keep other filters under the name of a view of one's own.

    Raises:
        PermissionDenied: the actor does not see the log.
        InvalidInput: too long.
        Conflict: it is somebody else's.
    """
    require(actor, Permission.VIEW_AUDIT, workspace_id=view.workspace_id)
    if view.owner_id != actor.user_id:
        raise Conflict(_("Only the person who made this view can change it."))
    if faults := faults_of_view(query=query):
        raise InvalidInput(fields=faults)
    view.query = query.replace("\x00", "")
    view.save(update_fields=["query", "updated_at"])
    return view


def delete_view(*, workspace_id: UUID, actor: Actor, view_id: UUID) -> SavedView:
    """Forget a view of one's own.

    Raises:
        NotFound: there is none, or it is somebody else's.
    """
    require(actor, Permission.VIEW_AUDIT, workspace_id=workspace_id)
    view: SavedView = SavedView.objects.for_workspace(workspace_id).fetch(view_id)
    if view.owner_id != actor.user_id:
        raise NotFound(_("Saved view not found."))
    view.delete()
    return view
