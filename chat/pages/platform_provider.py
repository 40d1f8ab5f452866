"""The page of the model provider that the environment gives to all workspaces, for the platform's owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat.models.provider_lists import ENVIRONMENTS
from chat.pages.gone_models import MOST_NEW
from chat.providers.choosing import platform_provider
from chat.providers.known_lists import platforms_list
from chat.providers.known_models import days_of, prices_of
from chat.providers.limits import platform_load
from chat.services.platform_provider import (
    USAGE_DAYS,
    embedding_model,
    settings_of,
    try_shared_provider,
    usage_by_workspace,
)
from workspaces.pages.parts import for_platform_owner
from workspaces.secret_memory import without_secrets

if TYPE_CHECKING:
    from chat.providers.base import ProviderSpec
    from chat.providers.listing import ModelListing
    from workspaces.middleware import WorkspaceRequest


@require_http_methods(["GET", "HEAD", "POST"])
@for_platform_owner
def environment_provider(request: WorkspaceRequest) -> HttpResponse:
    """Show how it is set and who uses it; with POST, ask it whether it answers."""
    provider = platform_provider()
    variables = settings_of()
    is_set = {one.variable: one.is_set for one in variables}
    has_limits = is_set["OPENAI_MOST_AT_ONCE"] or is_set["OPENAI_MOST_A_MINUTE"]
    trial = try_shared_provider(actor=request.actor) if request.method == "POST" else None
    listing = trial.listing if trial else None
    models = shown_models(provider.base_url, listing)
    context: dict[str, Any] = {
        "section": "admin",
        "provider": provider,
        "model": provider.model,
        "address": "" if provider.is_demo else without_secrets(provider.base_url),
        "has_key": bool(provider.api_key),
        "source": _source_of(provider),
        "embedding_model": embedding_model(),
        "variables": variables,
        "load": platform_load() if has_limits and not provider.is_demo else None,
        "trial": trial,
        "listing": listing,
        "has_default": listing is None or any(one.name == provider.model for one in listing.models),
        "default_ends_on": listing.end_of(provider.model) if listing else None,
        "models": models,
        **list_news(provider.base_url, ENVIRONMENTS),
        **days_of(one["prices"] for one in models),
        "usage": usage_by_workspace(actor=request.actor),
        "days": USAGE_DAYS,
    }
    return render(request, "chat/platform_provider.html", context)


def _source_of(provider: ProviderSpec) -> str:
    """Why it is this one, in words."""
    if provider.is_demo:
        return _(
            "No provider is set, and no local Ollama answered when Trellis started. The built-in demo model answers."
        )
    if provider.name == "Ollama":
        return _("No provider is set, and a local Ollama answered when Trellis started.")
    return _("It is set in the environment.")


def list_news(base_url: str, list_id: UUID) -> dict[str, Any]:
    """What changed in the list of a provider of the platform, as its page tells it."""
    listed = platforms_list(base_url, list_id)
    if listed is None:
        return {"listed": None}
    changes = listed.list_changes
    return {
        "listed": listed,
        "new_models": list(changes.new.items())[:MOST_NEW],
        "gone_models": list(changes.gone.items())[:MOST_NEW],
    }


def shown_models(base_url: str, listing: ModelListing | None) -> list[dict[str, Any]]:
    """Models with their prices: those that they are listed with, or the provider's published ones."""
    return [
        {
            "model": one,
            "prices": prices_of(
                base_url, one.name, prompt=one.prompt_price, completion=one.completion_price
            ),
        }
        for one in (listing.models if listing else ())
    ]
