"""Trying a model provider: whether it answers, which models it has, and keeping what it says of them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from chat.models import ModelProvider, ProviderModel
from chat.providers import limits
from chat.providers.errors import ProviderError
from chat.providers.listing import (
    LONGEST_NAME,
    TOTAL_SECONDS,
    ListedModel,
    Listing,
    list_models,
)
from chat.providers.specs import spec_of
from mcp_servers.client.connections import runtime
from workspaces.actors import Actor
from workspaces.changes import record_created, tracked_change
from workspaces.errors import Conflict, InvalidInput
from workspaces.roles import Permission, require
from workspaces.secrets import Secret

LONGEST_KEY: Final = 2_000
_TRIED_TEXT: Final = "The quick brown fox jumps over the lazy dog."
_FACTS: Final = ("context_tokens", "sees_pictures", "prompt_price", "completion_price")


def check_provider(*, provider: ModelProvider, actor: Actor) -> Listing:
    """Ask a provider for its models with the stored key.

    Raises:
        PermissionDenied: the actor may not manage models.
        ProviderError: why it did not work, in words.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    return _list(provider, provider.api_key or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingTrial:
    """How a provider's embedding model answered."""

    model: str
    took_ms: int = 0
    numbers: int = 0
    """In its vectors."""
    fault: str = ""
    """Why it did not answer, in words; empty: it did."""


def try_embedding(*, provider: ModelProvider, actor: Actor) -> EmbeddingTrial | None:
    """Ask a provider's embedding model once; None: it has none.

    Raises:
        PermissionDenied: the actor may not manage models.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    if not provider.embedding_model:
        return None
    spec = spec_of(provider, provider.embedding_model)
    started = time.monotonic()
    try:
        found = runtime.run_sync(
            limits.embed(spec, [_TRIED_TEXT], seconds=TOTAL_SECONDS),
            timeout_seconds=TOTAL_SECONDS + 5,
        )
    except ProviderError as error:
        return EmbeddingTrial(model=spec.model, fault=error.message)
    took_ms = round((time.monotonic() - started) * 1000)
    return EmbeddingTrial(model=spec.model, took_ms=took_ms, numbers=len(found.vectors[0]))


def choose_embedding_model(*, provider: ModelProvider, model: str, actor: Actor) -> EmbeddingTrial:
    """Have a provider's buds find passages by meaning, if this model answers; otherwise all stays as it is.

    Raises:
        PermissionDenied: the actor may not manage models.
        InvalidInput: that is no name of a model.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    name = model.strip()
    if not name or len(name) > LONGEST_NAME:
        raise InvalidInput(fields={"embedding_model": [_("Choose a model.")]})
    before, provider.embedding_model = provider.embedding_model, name
    trial = try_embedding(provider=provider, actor=actor)
    provider.embedding_model = before
    assert trial is not None
    if trial.fault:
        return trial
    with transaction.atomic():
        rows = ModelProvider.objects.for_workspace(provider.workspace_id).select_for_update()
        stored: ModelProvider = rows.fetch(provider.pk)
        with tracked_change(stored, actor=actor):
            stored.embedding_model = name
            stored.save(update_fields=["embedding_model", "updated_at"])
    return trial


def rotate_key(*, provider: ModelProvider, new_key: str, actor: Actor) -> Listing:
    """Put a new key in the old one's place once the provider takes it. Requests under way end with the old one.

    Raises:
        PermissionDenied: the actor may not manage models.
        InvalidInput: no key was given, or it is not one.
        ProviderError: the provider did not take it, and the old key stays; why, in words.
        Conflict: the provider's address was changed meanwhile, and the old key stays.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    key = new_key.strip()
    if not key or not key.isascii() or not key.isprintable() or len(key) > LONGEST_KEY:
        raise InvalidInput(fields={"api_key": [_("Paste the new key.")]})
    listing = _list(provider, Secret(key))
    with transaction.atomic():
        rows = ModelProvider.objects.for_workspace(provider.workspace_id).select_for_update()
        stored: ModelProvider = rows.fetch(provider.pk)
        if stored.origin != provider.origin:
            raise Conflict(_("The provider's address changed in the meantime. Try again."))
        with tracked_change(stored, actor=actor):
            stored.api_key = Secret(key)
            stored.save(update_fields=["api_key", "updated_at"])
    return listing


def _list(provider: ModelProvider, key: Secret | None) -> Listing:
    spec = replace(spec_of(provider), api_key=key)
    return runtime.run_sync(list_models(spec), timeout_seconds=TOTAL_SECONDS + 5)


def keep_facts(
    *, provider: ModelProvider, names: Iterable[str], listing: Listing, actor: Actor
) -> int:
    """Keep what a provider says of some of its models. What an administrator has entered stays; how many are new.

    Raises:
        PermissionDenied: the actor may not manage models.
        InvalidInput: the provider has no such model.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    known = {one.name: one for one in listing.models}
    wanted = list(dict.fromkeys(names))
    if not wanted:
        raise InvalidInput(fields={"models": [_("Choose at least one model.")]})
    if gone := [name for name in wanted if name not in known]:
        told = _("The provider has no model “%(gone)s” any more.") % {"gone": gone[0][:100]}
        raise InvalidInput(fields={"models": [told]})
    rows = ProviderModel.objects.for_workspace(provider.workspace_id).filter(provider=provider)
    with transaction.atomic():
        stored = {row.model: row for row in rows.filter(model__in=wanted).select_for_update()}
        for name in wanted:
            _keep(stored.get(name), known[name], provider, actor)
    return len(set(wanted) - set(stored))


def _keep(
    row: ProviderModel | None, told: ListedModel, provider: ModelProvider, actor: Actor
) -> None:
    given = {name: getattr(told, name) for name in _FACTS}
    if row is None:
        made: ProviderModel = ProviderModel.objects.create(
            workspace_id=provider.workspace_id, provider=provider, model=told.name, **given
        )
        record_created(made, actor=actor)
        return
    with tracked_change(row, actor=actor):
        for name, value in given.items():
            if getattr(row, name) is None:
                setattr(row, name, value)
        row.save()
