"""Buds that the demo model still answers for, in a workspace that has a model of its own by now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from chat.models import Bud, ModelProvider
from chat.providers.choosing import platform_provider
from chat.providers.shared import switched_off
from chat.services.buds import update_bud
from chat.services.version_notes import ANSWERED_BY
from workspaces.database.prepared import PreparedRows
from workspaces.errors import DomainError
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from chat.models.buds import BudQuerySet
    from workspaces.actors import Actor

MOST_BUDS: Final = 200
"""Changed in one go: somebody waits for the page."""


@dataclass(slots=True)
class ModelAssignment:
    """Which buds a model answers for from now on."""

    names: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Names of the others, each with the reason."""


def provider_in_place_of_demo(workspace_id: UUID) -> ModelProvider | None:
    """The workspace's provider whose model a new bud begins with; None where the platform has a real model, or there is none."""
    if not platform_provider().is_demo:
        return None
    rows = _ANSWERING.all(workspace_id)
    return next((row for row in rows if row.offers(row.default_model)), None)


def _answering(workspace_id: UUID) -> Any:
    return ModelProvider.objects.for_workspace(workspace_id).answering().order_by("name", "id")


_ANSWERING = PreparedRows[ModelProvider](_answering, UUID)


def demo_buds(workspace_id: UUID, actor: Actor) -> BudQuerySet:
    """The buds that this person may change and the demo model answers for, by name; none where the platform has a real model."""
    rows = Bud.objects.for_workspace(workspace_id).usable_by(actor.user_id)
    if not platform_provider().is_demo:
        return rows.none()
    return rows.filter(provider=None, is_archived=False, is_draft=False).order_by("name", "id")


def give_model_to_demo_buds(*, provider: ModelProvider, actor: Actor) -> ModelAssignment:
    """Let the default model of a provider answer for these buds, each as a version of its own.

    What one bud refuses, such as one that demands its checks first, undoes nothing of the others.

    Raises:
        PermissionDenied: the actor may not manage buds.
        ProviderSwitchedOff: it is off, so no bud would get an answer.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    if not provider.answers:
        raise switched_off(provider)
    given = ModelAssignment()
    note = ANSWERED_BY % {"model": provider.default_model, "provider": provider.name}
    for bud in demo_buds(provider.workspace_id, actor)[:MOST_BUDS]:
        try:
            update_bud(
                bud=bud,
                actor=actor,
                values={"model": ""},
                provider_id=provider.pk,
                has_provider=True,
                note=note,
            )
        except DomainError as error:
            given.refused.append(f"{bud.name}: {error.message}")
        else:
            given.names.append(bud.name)
    return given
