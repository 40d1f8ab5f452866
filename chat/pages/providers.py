"""The page of a model provider: does it answer, and which models does it have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from chat.models import ModelProvider
from chat.pages.gone_models import news_of
from chat.providers.errors import ProviderError, ProviderKeyUntested
from chat.providers.known_models import days_of, prices_of
from chat.providers.limits import load_of
from chat.providers.listing import ModelListing
from chat.providers.shared import addresses_of, switched_off
from chat.providers.specs import limits_of
from chat.services.demo_buds import demo_buds, give_model_to_demo_buds
from chat.services.offered_models import offered_models_of
from chat.services.provider_check import (
    EmbeddingTrial,
    check_provider,
    choose_embedding_model,
    keep_facts,
    rotate_key,
    try_embedding,
)
from workspaces.errors import Conflict, InvalidInput
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission
from workspaces.secret_memory import without_secrets
from workspaces.words.formats import whole

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_MOST_NAMED: Final = 20


@dataclass(slots=True)
class _Outcome:
    """What came of what the page sent, as far as it got."""

    listing: ModelListing | None = None
    """The models that the provider lists."""
    trial: EmbeddingTrial | None = None
    fault: str = ""
    key_fault: str = ""
    """Why the new key was not stored, for its field."""
    may_skip_test: bool = False
    """Whether the key may be stored untested: nobody refused it."""
    status: int = 200
    is_done: bool = False
    """Whether nothing is left to show: the page is loaded anew."""


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def provider_page(
    request: WorkspaceRequest, workspace_slug: str, provider_id: UUID
) -> HttpResponse:
    """Test a provider's connection, and keep what it says of its models."""
    workspace = workspace_of(request, Permission.MANAGE_BUDS)
    provider: ModelProvider = ModelProvider.objects.for_workspace(workspace).fetch(provider_id)
    outcome = _Outcome()
    if request.method == "POST":
        try:
            _do(request, provider, outcome)
        except ProviderError as error:
            outcome.fault = error.message
        except (Conflict, InvalidInput) as error:
            outcome.fault, outcome.status = error.message, error.status
        else:
            if outcome.is_done:
                return redirect(
                    "chat:provider", workspace_slug=workspace_slug, provider_id=provider.pk
                )
    context = _context(request, provider, outcome)
    return render(request, "chat/provider.html", context, status=outcome.status)


def _do(request: WorkspaceRequest, provider: ModelProvider, outcome: _Outcome) -> None:
    """Do what the button asked for.

    Raises:
        ProviderError: the provider refused, or did not answer.
        Conflict: it is not possible now.
        InvalidInput: what was sent does not fit.
    """
    if "embedding_model" in request.POST:
        _choose_embedding_model(request, provider, outcome)
    elif "demo_buds" in request.POST:
        _give_model(request, provider)
        outcome.is_done = True
    elif "api_key" in request.POST:
        _change_key(request, provider, outcome)
    else:
        outcome.listing = check_provider(provider=provider, actor=request.actor)
        outcome.trial = try_embedding(provider=provider, actor=request.actor)
    if "keep" in request.POST and outcome.listing is not None and not outcome.is_done:
        number = keep_facts(
            provider=provider,
            names=request.POST.getlist("models"),
            listing=outcome.listing,
            actor=request.actor,
        )
        messages.success(
            request, _("Kept. New models in the table: %(number)s.") % {"number": number}
        )
        outcome.is_done = True


def _choose_embedding_model(
    request: WorkspaceRequest, provider: ModelProvider, outcome: _Outcome
) -> None:
    model = request.POST["embedding_model"]
    outcome.trial = choose_embedding_model(provider=provider, model=model, actor=request.actor)
    if outcome.trial.fault:
        outcome.listing = check_provider(provider=provider, actor=request.actor)
        return
    message = _("%(model)s works and is chosen. Knowledge files are being prepared.")
    messages.success(request, message % {"model": outcome.trial.model})
    outcome.is_done = True


def _give_model(request: WorkspaceRequest, provider: ModelProvider) -> None:
    """Let it answer for the buds of the demo model, and leave notes of which it does and which it does not."""
    given = give_model_to_demo_buds(provider=provider, actor=request.actor)
    if given.names:
        message = ngettext(
            "%(model)s answers for %(number)s bud from now on.",
            "%(model)s answers for %(number)s buds from now on.",
            len(given.names),
        ) % {"model": provider.default_model, "number": whole(len(given.names))}
        messages.success(request, message)
    for reason in given.refused[:_MOST_NAMED]:
        messages.warning(request, reason)


def _change_key(request: WorkspaceRequest, provider: ModelProvider, outcome: _Outcome) -> None:
    """Store the new key, tested unless the form says otherwise, and leave a note of it.

    Raises:
        Conflict: as `rotate_key`.
    """
    is_tested = "untested" not in request.POST
    try:
        listing = rotate_key(
            provider=provider,
            new_key=request.POST["api_key"],
            actor=request.actor,
            is_tested=is_tested,
        )
    except (InvalidInput, ProviderKeyUntested) as error:
        outcome.key_fault, outcome.status = error.message, 422
        outcome.may_skip_test = isinstance(error, ProviderKeyUntested)
        if provider.is_shared:  # its page has no field for a key
            outcome.fault = error.message
        return
    provider.refresh_from_db()
    if not is_tested:
        message = _(
            "The new key is stored. Nobody knows yet whether it works: test the connection."
        )
        messages.warning(request, message)
        return
    message = _("The new key works, and answers from now on. You can revoke the old one.")
    messages.success(request, message)
    trial = try_embedding(provider=provider, actor=request.actor)
    outcome.listing, outcome.trial = (listing if listing.models else None), trial


def _context(
    request: WorkspaceRequest, provider: ModelProvider, outcome: _Outcome
) -> dict[str, Any]:
    [address] = addresses_of([provider]).values()
    listing = outcome.listing
    names: list[str] = []
    if provider.answers:
        waiting = demo_buds(provider.workspace_id, request.actor)
        names = list(waiting.values_list("name", flat=True)[: _MOST_NAMED + 1])
    kept = {
        row.model: (
            row,
            prices_of(
                address,
                row.model,
                prompt=row.prompt_price,
                completion=row.completion_price,
            ),
        )
        for row in offered_models_of(provider)
    }
    return {
        "section": "models",
        "provider": provider,
        "address": without_secrets(provider.base_url),
        "withheld": switched_off(provider).message if provider.withheld else "",
        "withheld_models": _withheld_models(provider),
        "has_key": bool(provider.api_key),
        "demo_buds": names[:_MOST_NAMED],
        "has_more_demo_buds": len(names) > _MOST_NAMED,
        "fault": outcome.fault,
        "key_fault": outcome.key_fault,
        "may_skip_test": outcome.may_skip_test,
        "listing": listing,
        "models": [
            {"model": one, "is_kept": one.name in kept}
            for one in (listing.models if listing else ())
        ],
        "trial": outcome.trial,
        "embedding_models": [one.name for one in listing.models if one.embeds]
        if listing and not provider.embedding_model
        else [],
        "has_default": listing is None
        or not listing.is_told
        or any(one.name == provider.default_model for one in listing.models),
        "kept": list(kept.values()),
        "news": news_of(provider, address, kept),
        "default_ends_on": listing.end_of(provider.default_model) if listing else None,
        "unknown_word": _("unknown"),
        **days_of(prices for _row, prices in kept.values()),
        "found_words": _("yes,no"),
        # Of what is shared, it would tell of other workspaces.
        "load": load_of(provider) if limits_of(provider) is not None else None,
        "edit_url": reverse("admin:chat_modelprovider_change", args=[provider.pk]),
        "list_url": reverse("admin:chat_modelprovider_changelist"),
    }


def _withheld_models(provider: ModelProvider) -> list[str]:
    """Which of the models that it is set to use the workspace may not use, each with what that stops and what to do."""
    notes = []
    if not provider.offers(provider.default_model):
        notes.append(
            _(
                "Whoever runs Trellis no longer lets this workspace use the default model “%(model)s”. Buds and chats"
                " that use it get no answers. Choose another default model with “Edit”, or ask them."
            )
            % {"model": provider.default_model}
        )
    if provider.embedding_model and not provider.offers(provider.embedding_model):
        notes.append(
            _(
                "Whoever runs Trellis no longer lets this workspace use “%(model)s”, so knowledge files are searched by"
                " words only. Choose another embedding model with “Edit”, or ask them."
            )
            % {"model": provider.embedding_model}
        )
    return notes
