"""Saved views of the admin's lists: filters under a name, for oneself or for all administrators of the workspace.

Which lists there are, and which filters they have, the admin knows (`list_addresses`); here is who may save what. A
shared view changes what others see, so each change of one is told to the audit log.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.holding import hold_workspace, take_room
from workspaces.lists.view_names import faults_of_view
from workspaces.models import SavedListView
from workspaces.roles import Permission, has_permission
from workspaces.scoping import WorkspaceQuerySet

MOST: Final = 20
"""Of one person for one list, and as many shared ones for one list."""
_ADMINISTRATORS: Final = (
    *(Permission.MANAGE_BUDS, Permission.MANAGE_SERVERS),
    *(Permission.MANAGE_MEMBERS, Permission.MANAGE_WORKSPACE),
)


def may_share(actor: Actor, workspace_id: UUID) -> bool:
    """Whether the actor may change what all administrators see."""
    return any(has_permission(actor, one, workspace_id=workspace_id) for one in _ADMINISTRATORS)


def list_views_for(actor: Actor, workspace_id: UUID) -> WorkspaceQuerySet[SavedListView]:
    """The views that are the actor's own or shared. Which lists the actor may see is asked beside it."""
    rows = SavedListView.objects.for_workspace(workspace_id)
    return rows.filter(Q(owner_id=actor.user_id) | Q(is_shared=True)).select_related("owner")


def may_change(view: SavedListView, actor: Actor) -> bool:
    """Whether the actor may change or delete this view."""
    if view.is_shared:
        return may_share(actor, view.workspace_id)
    return actor.workspace_id == view.workspace_id and view.owner_id == actor.user_id


def save_list_view(
    *, workspace_id: UUID, actor: Actor, of_list: str, name: str, query: str, is_shared: bool
) -> SavedListView:
    """Keep a query, which the list knows, under a name.

    Raises:
        PermissionDenied: the actor is nobody, or may not share.
        InvalidInput: no name or no filters, too long, or the name is in use.
        Conflict: there are too many.
    """
    if actor.user_id is None or actor.workspace_id != workspace_id:
        raise PermissionDenied
    view = SavedListView(
        workspace_id=workspace_id,
        owner_id=actor.user_id,
        list=of_list,
        name=_clean(name),
        query=query,
        is_shared=is_shared,
    )
    _check(view)
    with transaction.atomic():
        if is_shared:
            _check_may_share(actor, workspace_id)
        _check_room(view)
        _store(view)
        if is_shared:
            record_created(view, actor=actor)
    return view


def change_list_view(
    *,
    view: SavedListView,
    actor: Actor,
    name: str | None = None,
    query: str | None = None,
    is_shared: bool | None = None,
    seen: str = "",
) -> SavedListView:
    """Keep what is given, and leave the rest as it is. A view that is no longer shared is the actor's own.

    `seen` is the view's `version_of` as the actor saw it; without one, nobody's change is looked for.

    Raises:
        NotFound: it is gone, or somebody else's.
        PermissionDenied: it is or would be shared, and the actor may not share.
        InvalidInput: no name or no filters, too long, or the name is in use.
        Conflict: there are too many, or somebody else has changed it.
    """
    with transaction.atomic():
        if is_shared is not None:
            hold_workspace(view.workspace_id)  # before the row, see there
        rows = list_views_for(actor, view.workspace_id).select_for_update(of=("self",), no_key=True)
        held: SavedListView = rows.fetch(view.pk)
        if not may_change(held, actor):
            raise PermissionDenied
        if seen and seen != version_of(held):
            raise Conflict(
                _("Somebody else changed this view in the meantime. Look at it, then save again.")
            )
        was_shared = held.is_shared
        is_told = was_shared or bool(is_shared)
        with tracked_change(held, actor=actor) if is_told else nullcontext():
            held.name = held.name if name is None else _clean(name)
            held.query = held.query if query is None else query
            if is_shared is not None and is_shared != was_shared:
                _check_may_share(actor, held.workspace_id)
                held.is_shared = is_shared
                held.owner_id = actor.user_id
                _check_room(held)
            _check(held)
            _store(held)
    return held


def delete_list_view(*, view: SavedListView, actor: Actor) -> None:
    """Delete one of one's own, or a shared one.

    Raises:
        NotFound: it is gone, or somebody else's.
        PermissionDenied: it is shared, and the actor may not share.
    """
    with transaction.atomic():
        held = list_views_for(actor, view.workspace_id).find(view.pk)
        if held is None:
            raise NotFound(_("Saved view not found."))
        if not may_change(held, actor):
            raise PermissionDenied
        if held.is_shared:
            record_deleted(held, actor=actor)
        held.delete()


def version_of(view: SavedListView) -> str:
    """What is another one after each change."""
    return view.updated_at.isoformat()


def _clean(name: str) -> str:
    return " ".join(name.replace("\x00", "").split())


def _check(view: SavedListView) -> None:
    faults = faults_of_view(name=view.name, query=view.query)
    if not view.query:
        faults["query"] = [_("Search, filter or sort the list first. Then save that as a view.")]
    if faults:
        raise InvalidInput(fields=faults)


def _check_may_share(actor: Actor, workspace_id: UUID) -> None:
    if not may_share(actor, workspace_id):
        raise PermissionDenied(_("Only administrators share views with others."))


def _check_room(view: SavedListView) -> None:
    rows = SavedListView.objects.for_workspace(view.workspace_id).filter(
        list=view.list, is_shared=view.is_shared
    )
    if not view.is_shared:
        rows = rows.filter(owner_id=view.owner_id)
    message = (
        _("This list has %(most)s shared views already. Delete one first.")
        if view.is_shared
        else _("You have %(most)s views of this list already. Delete one first.")
    )
    take_room(
        rows.exclude(pk=view.pk),
        most=MOST,
        refusal=Conflict(message % {"most": MOST}),
        workspace_id=view.workspace_id,
        person_id=None if view.is_shared else view.owner_id,
    )


def _store(view: SavedListView) -> None:
    try:
        with transaction.atomic():
            view.save()
    except IntegrityError as error:
        message = (
            _("This list has a shared view of that name already.")
            if view.is_shared
            else _("You have a view of that name already.")
        )
        raise InvalidInput(fields={"name": [message]}) from error
