"""What is known of a provider's models, and what they cost: added, changed and removed row by row."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.models import ModelProvider, ProviderModel
from chat.services.providers import ModelDraft, refuse_withheld
from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import InvalidInput
from workspaces.roles import Permission, require

PRICES: Final = ("prompt_price", "cached_price", "completion_price")
BELOW_ZERO: Final = gettext_lazy("A price is not below zero.")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModelDraft(ModelDraft):
    """A row of the table of models and prices as somebody wants it."""

    provider: ModelProvider | None
    """None: the platform's own."""
    model: str
    learned_protocol: str
    """The tool protocol that it was found to need; empty: nothing has been found out."""


def model_draft_of(row: ProviderModel) -> KnownModelDraft:
    """Give what a row says, to change some of it."""
    return KnownModelDraft(
        provider=row.provider,
        model=row.model,
        context_tokens=row.context_tokens,
        prompt_price=row.prompt_price,
        cached_price=row.cached_price,
        completion_price=row.completion_price,
        sees_pictures=row.sees_pictures,
        calls_tools=row.calls_tools,
        reasons=row.reasons,
        learned_protocol=row.learned_protocol,
    )


def add_known_model(*, workspace_id: UUID, draft: KnownModelDraft, actor: Actor) -> ProviderModel:
    """Add a model to the table of models and prices.

    Raises:
        PermissionDenied: the actor may not manage models.
        InvalidInput: with each faulty field, also a model that is listed already or that the platform withholds.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=workspace_id)
    row = ProviderModel(workspace_id=workspace_id)
    with transaction.atomic():
        _save(row, draft)
        record_created(row, actor=actor)
    return row


def change_known_model(
    *, row: ProviderModel, draft: KnownModelDraft, actor: Actor
) -> ProviderModel:
    """Change what is known of a model.

    Raises:
        PermissionDenied, InvalidInput: as above.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=row.workspace_id)
    with tracked_change(row, actor=actor):
        _save(row, draft)
    return row


@transaction.atomic
def remove_known_model(*, row: ProviderModel, actor: Actor) -> None:
    """Forget what is known of a model. Whoever uses it goes on, with list prices if Trellis knows some.

    Raises:
        PermissionDenied: the actor may not manage models.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=row.workspace_id)
    record_deleted(row, actor=actor)
    row.delete()


def _save(row: ProviderModel, draft: KnownModelDraft) -> None:
    if draft.provider is not None:
        refuse_withheld(draft.provider, draft.model, "model")
    for name in PRICES:
        price = getattr(draft, name)
        if price is not None and price < 0:
            raise InvalidInput(fields={name: [str(BELOW_ZERO)]})
    for one in fields(draft):
        setattr(row, one.name, getattr(draft, one.name))
    try:
        row.full_clean(exclude=["workspace", "provider"], validate_unique=False)
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    others = ProviderModel.objects.for_workspace(row.workspace_id).exclude(pk=row.pk)
    listed = InvalidInput(fields={"model": [_("This model is listed already.")]})
    if others.filter(provider=draft.provider, model=draft.model).exists():
        raise listed
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:  # somebody added it at the same moment
        raise listed from error
