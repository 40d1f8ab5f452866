"""A person's folders."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from chat.models import Folder
from chat.values import FolderColour
from workspaces.actors import Actor
from workspaces.delivery.announcements import Announcement, announce
from workspaces.errors import Conflict, InvalidInput
from workspaces.holding import hold, take_room
from workspaces.models import User
from workspaces.roles import Permission, require
from workspaces.words.names import seen_name

CHANGED: Final = "folder.changed"
"""A person's folders are others; what is open of theirs lists them anew."""
MOST_FOLDERS: Final = 100
LONGEST_NAME: Final = 60


def create_folder(
    *, workspace_id: UUID, owner: User, actor: Actor, name: str, colour: str = FolderColour.GREEN
) -> Folder:
    """Make a folder.

    Raises:
        InvalidInput: no name, or one that is taken.
        Conflict: there are too many.
    """
    require(actor, Permission.USE_CHAT, workspace_id=workspace_id)
    folder = Folder(workspace_id=workspace_id, owner=owner, colour=FolderColour(colour).value)
    with transaction.atomic():
        take_room_for_folder(workspace_id, owner.pk)
        return _save(folder, name)


def take_room_for_folder(workspace_id: UUID, owner_id: UUID) -> None:
    """In a transaction that is about to make a folder of that person.

    Raises:
        Conflict: there are too many.
    """
    take_room(
        Folder.objects.for_workspace(workspace_id).filter(owner_id=owner_id),
        most=MOST_FOLDERS,
        refusal=Conflict(_("You have %(most)s folders already.") % {"most": MOST_FOLDERS}),
        workspace_id=workspace_id,
        person_id=owner_id,
    )


def update_folder(
    *, folder: Folder, actor: Actor, name: str | None = None, colour: str | None = None
) -> Folder:
    """Rename a folder, or give it another colour; None leaves a value as it is.

    Raises:
        NotFound: it was deleted meanwhile.
        InvalidInput: as above.
    """
    require(actor, Permission.USE_CHAT, workspace_id=folder.workspace_id)
    with transaction.atomic():
        hold(folder)
        if colour is not None:
            folder.colour = FolderColour(colour).value
        return _save(folder, folder.name if name is None else name)


def delete_folder(*, folder: Folder, actor: Actor) -> None:
    """Delete a folder; its conversations stay, in no folder.

    Raises:
        NotFound: it is deleted already.
    """
    require(actor, Permission.USE_CHAT, workspace_id=folder.workspace_id)
    pk = folder.pk
    with transaction.atomic():
        hold(folder)  # whoever is sorting a conversation into it
        folder.delete()
        _tell(folder, pk)


def _save(folder: Folder, name: str) -> Folder:
    folder.name = " ".join(seen_name(name).split())
    is_plain = '"' not in folder.name and "\x00" not in folder.name
    if not is_plain or not 0 < len(folder.name) <= LONGEST_NAME:
        message = _("Give it a name of at most %(most)s characters, without quotation marks.") % {
            "most": LONGEST_NAME
        }
        raise InvalidInput(fields={"name": [message]})
    try:
        with transaction.atomic():
            folder.save()
            _tell(folder, folder.pk)
    except IntegrityError as error:
        taken = _("You have a folder of this name already.")
        raise InvalidInput(fields={"name": [taken]}) from error
    return folder


def _tell(folder: Folder, pk: UUID) -> None:
    announcement = Announcement(kind=CHANGED, id=str(pk), user_id=str(folder.owner_id))
    announce(folder.workspace_id, announcement)
