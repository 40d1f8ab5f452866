"""Pinning buds and models, and taking pins away."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from chat.models import Bud, ModelProvider, Pin
from workspaces.actors import Actor
from workspaces.errors import InvalidInput
from workspaces.holding import take_room
from workspaces.models import User, Workspace
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

MOST_PINS: Final = 50


def pins_of(workspace: Workspace, owner: User) -> WorkspaceQuerySet[Pin]:
    """What this person has pinned, oldest first."""
    return Pin.objects.for_workspace(workspace).visible_to(owner).order_by("pk")


def set_bud_pin(
    *, workspace: Workspace, owner: User, actor: Actor, bud_id: UUID, is_pinned: bool
) -> None:
    """Pin a bud, or take its pin away. Doing it twice changes nothing.

    Raises:
        InvalidInput: there is no such bud for this person, or they have too many pins.
    """
    require(actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    buds = Bud.objects.for_workspace(workspace).visible_to(owner).filter(is_draft=False)
    if is_pinned and buds.find(bud_id) is None:
        raise InvalidInput(fields={"bud_id": [_("There is no such bud.")]})
    _set(workspace, owner, is_pinned=is_pinned, bud_id=bud_id)


def set_model_pin(
    *,
    workspace: Workspace,
    owner: User,
    actor: Actor,
    provider_id: UUID | None,
    model: str,
    is_pinned: bool,
) -> None:
    """Pin a model, or take its pin away. One that is gone stays pinned and is shown nowhere.

    Args:
        provider_id: None for the platform's own.

    Raises:
        InvalidInput: there is no such provider here, or they have too many pins.
    """
    require(actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    providers = ModelProvider.objects.for_workspace(workspace)
    if is_pinned and provider_id is not None and providers.find(provider_id) is None:
        raise InvalidInput(fields={"provider_id": [_("There is no such provider.")]})
    _set(workspace, owner, is_pinned=is_pinned, provider_id=provider_id, model=model)


def _set(
    workspace: Workspace,
    owner: User,
    *,
    is_pinned: bool,
    bud_id: UUID | None = None,
    provider_id: UUID | None = None,
    model: str = "",
) -> None:
    mine = Pin.objects.for_workspace(workspace).filter(owner=owner)
    this = {"bud_id": bud_id, "provider_id": provider_id, "model": model}
    if not is_pinned:
        mine.filter(**this).delete()
        return
    with transaction.atomic():
        if mine.filter(**this).exists():
            return
        message = _("You can pin %(most)s buds and models. Remove a pin first.")
        take_room(
            mine,
            most=MOST_PINS,
            refusal=InvalidInput(message % {"most": MOST_PINS}),
            workspace_id=workspace.pk,
            person_id=owner.pk,
        )
        # Two devices may pin the same at one moment.
        new = Pin(workspace=workspace, owner=owner, **this)
        Pin.objects.bulk_create([new], ignore_conflicts=True)
