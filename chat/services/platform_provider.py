"""The model provider that the environment gives to all workspaces: how it is set, whether it answers, and who uses it.

Workspaces see its name and models, and nothing else of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q, Sum

from chat.models import SharedProvider, Turn
from chat.providers.base import ProviderSpec
from chat.providers.choosing import platform_embedding_model, platform_provider
from chat.providers.errors import ProviderError
from chat.providers.listing import TOTAL_SECONDS, ModelListing, list_models
from chat.providers.specs import trial_spec_of
from chat.services.provider_check import ask_for_a_word
from mcp_servers.client.connections import runtime
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.models import Workspace
from workspaces.roles import require_platform_owner
from workspaces.secret_memory import without_secrets

USAGE_DAYS: Final = 30
MOST_WORKSPACES: Final = 100
"""Those that use it most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSetting:
    """One variable of the environment, as far as it may be shown."""

    variable: str
    value: str
    """Empty: it is not set. Of the key there is no value."""
    is_set: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTrial:
    """What came of asking it."""

    listing: ModelListing | None = None
    list_fault: str = ""
    """Why it told no models; some endpoints have no list, and answer all the same."""
    took_ms: int = 0
    """Until the default model had said a word."""
    fault: str = ""
    """Why it did not; empty: it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceUsage:
    """What one workspace asked of it."""

    workspace: Workspace
    questions: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal | None
    """By the workspace's own prices; None: none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUsage:
    """Of all workspaces."""

    rows: Sequence[WorkspaceUsage]
    left_out: int
    """Workspaces beyond MOST_WORKSPACES."""


def settings_of() -> list[EnvironmentSetting]:
    """What of the environment decides about it."""
    config = settings.TRELLIS
    plain = {
        "OPENAI_BASE_URL": without_secrets(config.openai_base_url or ""),
        "OPENAI_MODEL": config.openai_model,
        "OPENAI_EMBEDDING_MODEL": config.openai_embedding_model,
        "OPENAI_MOST_AT_ONCE": config.openai_most_at_once,
        "OPENAI_MOST_A_MINUTE": config.openai_most_a_minute,
        "TRELLIS_OLLAMA_URL": without_secrets(config.ollama_url or ""),
    }
    key = EnvironmentSetting(
        variable="OPENAI_API_KEY", value="", is_set=bool(config.openai_api_key)
    )
    return [
        key,
        *(
            EnvironmentSetting(variable=name, value=str(value or ""), is_set=bool(value))
            for name, value in plain.items()
        ),
    ]


def embedding_model() -> str:
    """What finds passages of knowledge files by meaning; empty: nothing does."""
    return platform_embedding_model()


def try_shared_provider(*, actor: Actor, shared: SharedProvider | None = None) -> ProviderTrial:
    """Ask it for its models, and its default model for a word.

    Args:
        shared: ask this one instead.

    Raises:
        PermissionDenied: the actor does not own the platform.
    """
    require_platform_owner(actor)
    spec = trial_spec_of(shared) if shared else replace(platform_provider(), limits=None)
    listing, list_fault = _listing_of(spec)
    started = time.monotonic()
    try:
        ask_for_a_word(spec)
    except ProviderError as error:
        return ProviderTrial(listing=listing, list_fault=list_fault, fault=error.message)
    took_ms = round((time.monotonic() - started) * 1000)
    return ProviderTrial(listing=listing, list_fault=list_fault, took_ms=took_ms)


def _listing_of(spec: ProviderSpec) -> tuple[ModelListing | None, str]:
    if spec.is_demo:
        return None, ""
    try:
        return runtime.run_sync(list_models(spec), timeout_seconds=TOTAL_SECONDS + 5), ""
    except ProviderError as error:
        return None, error.message


def usage_by_workspace(*, actor: Actor, shared: SharedProvider | None = None) -> SharedUsage:
    """Count the last days' questions that go to it, as chats and buds are set now. One statement.

    Args:
        shared: count those that go to this one instead.

    Raises:
        PermissionDenied: the actor does not own the platform.
    """
    require_platform_owner(actor)
    since = database_now() - timedelta(days=USAGE_DAYS)
    rows = (
        Turn.objects.across_workspaces()
        .filter(_goes_to(shared), created_at__gte=since)
        .order_by()
        .values_list("workspace_id")
        .annotate(
            questions=Count("pk"),
            prompt=Sum("prompt_tokens"),
            completion=Sum("completion_tokens"),
            money=Sum("cost"),
        )
        .order_by("-questions", "workspace_id")
    )
    counted: list[tuple[UUID, int, int, int, Decimal | None]] = list(rows)
    shown = counted[:MOST_WORKSPACES]
    workspaces = Workspace.objects.in_bulk([row[0] for row in shown])
    return SharedUsage(
        rows=[
            WorkspaceUsage(
                workspace=workspaces[workspace_id],
                questions=questions,
                prompt_tokens=prompt,
                completion_tokens=completion,
                cost=cost,
            )
            for workspace_id, questions, prompt, completion, cost in shown
            if workspace_id in workspaces
        ],
        left_out=len(counted) - len(shown),
    )


def _goes_to(shared: SharedProvider | None) -> Q:
    """Of turns: this serves them; None: no provider of the workspace. The same as `provider_of_turn`, as a condition."""
    mentioned = Q(mentioned_bud__isnull=False)
    of_mentioned = mentioned & _served(shared, "mentioned_bud", "chosen_model")
    usual = ("chosen_model", "conversation__chosen_model")
    by_chat = _served(shared, "conversation__bud", *usual)
    return of_mentioned | (Q(mentioned_bud__isnull=True) & by_chat)


def _served(shared: SharedProvider | None, bud: str, *choices: str) -> Q:
    """A chosen model comes before the bud's own, and a bud may allow none but its own."""

    def is_its(path: str) -> Q:
        if shared is None:
            return Q(**{f"{path}__provider__isnull": True})
        return Q(**{f"{path}__provider__shared": shared})

    is_open = Q(**{f"{bud}__is_model_fixed": False})
    by_bud = is_its(bud)
    found = Q(**{f"{bud}__is_model_fixed": True}) & by_bud
    none_yet = Q()
    for choice in choices:
        chosen = Q(**{f"{choice}__isnull": False})
        found |= is_open & none_yet & chosen & is_its(choice)
        none_yet &= Q(**{f"{choice}__isnull": True})
    return found | (is_open & none_yet & by_bud)
