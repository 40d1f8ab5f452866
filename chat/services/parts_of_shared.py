"""What the platform's owner lets one workspace have of a shared provider: models, requests, and cost a month."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from chat.models import ModelProvider, SharedProvider
from chat.providers.listing import LONGEST_NAME
from chat.services.given_providers import given_rows, holding, in_workspace
from chat.services.spending_limits import tell_anew
from workspaces.actors import Actor
from workspaces.changes import tracked_change
from workspaces.errors import InvalidInput, NotFound
from workspaces.models import Workspace
from workspaces.roles import require_platform_owner

_LIMITS: Final = (*("most_at_once", "most_a_minute", "most_cost_a_month", "most_tokens_a_month"),)
MOST_CHOSEN: Final = 200
"""Models that can be chosen one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartDraft:
    """What a workspace shall have of it."""

    has_own_offer: bool = False
    """False: the models of the shared provider, also when they change."""
    offered_models: Sequence[str] | None = None
    """Its own models otherwise; None: every one."""
    most_at_once: int | None = None
    most_a_minute: int | None = None
    """Requests of this workspace; further ones wait. None: no limit but that of all workspaces together."""
    most_cost_a_month: Decimal | None = None
    """In US dollars by the provider's list prices, which no workspace can change. None: no limit, 0: nothing."""
    most_tokens_a_month: int | None = None


def read_model_names(names: Iterable[str]) -> list[str]:
    """Names of models as somebody chose them, each once.

    Raises:
        InvalidInput: there are none, too many, or one is none, at `chosen_models`.
    """
    read = list(dict.fromkeys(name for one in names if (name := one.strip())))
    fault = ""
    if not read:
        fault = _("Name at least one model.")
    elif len(read) > MOST_CHOSEN:
        fault = _("Name at most %(most)s models.") % {"most": MOST_CHOSEN}
    elif any(len(name) > LONGEST_NAME or not name.isprintable() for name in read):
        fault = _("Write one name in each line, of at most %(most)s characters.") % {
            "most": LONGEST_NAME
        }
    if fault:
        raise InvalidInput(fields={"chosen_models": [fault]})
    return read


def find_part(*, shared: SharedProvider, workspace: Workspace, actor: Actor) -> ModelProvider:
    """What a workspace has of it now.

    Raises:
        PermissionDenied: the actor does not own the platform.
        NotFound: it was never given to this workspace.
    """
    require_platform_owner(actor)
    row: ModelProvider | None = given_rows(shared).filter(workspace=workspace).first()
    if row is None:
        raise NotFound(_("This workspace does not have this provider."))
    return row


def change_part(
    *, shared: SharedProvider, workspace: Workspace, draft: PartDraft, actor: Actor
) -> ModelProvider:
    """Say which models a workspace may use, and how much of it. It holds at once.

    Raises:
        PermissionDenied, NotFound: as above.
        InvalidInput: with each faulty field.
    """
    require_platform_owner(actor)
    with holding(shared) as stored:
        row = find_part(shared=stored, workspace=workspace, actor=actor)
        with tracked_change(row, actor=in_workspace(row.workspace_id, actor)):
            row.has_own_offer = draft.has_own_offer
            row.offered_models = offer_of(stored, draft)
            for name in _LIMITS:
                setattr(row, name, getattr(draft, name))
            try:
                row.clean_fields(
                    exclude={field.name for field in row._meta.fields if field.name not in _LIMITS}
                )
            except ValidationError as error:
                raise InvalidInput(fields=error.message_dict) from error
            row.save(update_fields=["has_own_offer", "offered_models", *_LIMITS, "updated_at"])
        tell_anew(row.workspace_id, shared.pk)
    return row


def offer_of(shared: SharedProvider, draft: PartDraft) -> list[str] | None:
    """The models that a draft lets a workspace use; None: every one.

    Raises:
        InvalidInput: as `read_model_names`.
    """
    if not draft.has_own_offer:
        return shared.offered_models
    return None if draft.offered_models is None else read_model_names(draft.offered_models)
