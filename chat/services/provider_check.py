"""Trying a model provider: whether it answers, which models it has, and keeping what it says of them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from chat.engine.side_requests import ask_aside
from chat.models import ModelProvider, ProviderModel
from chat.providers import model_requests
from chat.providers.base import ProviderSpec
from chat.providers.errors import (
    ProviderBadAnswer,
    ProviderError,
    ProviderKeyRefused,
    ProviderKeyUntested,
    ProviderListMissing,
    ProviderModelUnknown,
    ProviderRefusedRequest,
    ProviderStalled,
)
from chat.providers.key_changes import refused_key
from chat.providers.listing import (
    LONGEST_NAME,
    TOTAL_SECONDS,
    ListedModel,
    ModelListing,
    list_models,
)
from chat.providers.specs import list_spec_of, spec_of
from chat.services.providers import ProviderDraft, read_key, refuse_for_shared
from mcp_servers.client.connections import runtime
from workspaces.actors import Actor
from workspaces.changes import record_created, tracked_change
from workspaces.errors import Conflict, InvalidEndpoint, InvalidInput
from workspaces.outbound import enter_endpoint
from workspaces.roles import Permission, require
from workspaces.secrets import Secret

KEY_SECONDS: Final = 30.0
"""How long a new key is tried: a local model may have to be loaded first."""
_TRIAL_PROMPT: Final = "Answer with one word."
_TRIAL_QUESTION: Final = "Say yes."
_LONGEST_WORD: Final = 40
_TRIED_TEXT: Final = "The quick brown fox jumps over the lazy dog."
_FACTS: Final = ("context_tokens", "sees_pictures", "prompt_price", "completion_price")
"""Kept where nobody has entered anything."""


def check_provider(*, provider: ModelProvider, actor: Actor) -> ModelListing:
    """Ask a provider for its models with the stored key.

    Some have no list of models. Their default model is asked for a word instead.

    Raises:
        PermissionDenied: the actor may not manage models.
        ProviderError: why it did not work, in words.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    try:
        return _list(list_spec_of(provider), offered=provider.offered_models)
    except ProviderListMissing as missing:
        started = time.monotonic()
        try:
            ask_for_a_word(replace(spec_of(provider), limits=None))
        except (ProviderModelUnknown, ProviderBadAnswer, ProviderRefusedRequest) as error:
            raise missing from error
        took_ms = round((time.monotonic() - started) * 1000)
        return ModelListing(models=(), left_out=0, took_ms=took_ms, is_told=False)


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
    started = time.monotonic()
    try:
        spec = spec_of(provider, provider.embedding_model)
        found = runtime.run_sync(
            model_requests.embed(spec, [_TRIED_TEXT], seconds=TOTAL_SECONDS, bill=None),
            timeout_seconds=TOTAL_SECONDS + 5,
        )
    except ProviderError as error:
        return EmbeddingTrial(model=provider.embedding_model, fault=error.message)
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


def try_key(*, provider: ModelProvider, key: str, actor: Actor) -> None:
    """Ask the provider's default model for a word with a key that is not stored yet.

    An answer proves more than a list of models: some providers list them for everybody, and some keys may do
    nothing but list.

    Args:
        provider: as it shall be saved; its address and default model are asked.

    Raises:
        PermissionDenied: the actor may not manage models.
        InvalidInput: it is no key, or the provider refused it.
        ProviderKeyUntested: the provider gave no answer for another reason.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    refuse_for_shared(provider, "api_key")
    prove_key(_trial_of(provider, read_key(key)))


def prove_key(spec: ProviderSpec) -> None:
    """Have a model answer with a key that is not stored yet.

    Raises:
        InvalidInput, ProviderKeyUntested: as above.
    """
    try:
        ask_for_a_word(spec)
    except ProviderKeyRefused as error:
        message = _(
            "“%(name)s” did not accept this key, so nothing was changed. Check that you copied all of it, and that it"
            " is valid at the provider."
        ) % {"name": spec.name}
        raise InvalidInput(fields={"api_key": [message]}) from error
    except ProviderModelUnknown as error:
        # The key was taken, or the list says that it was not.
        if not _lists_models(spec):
            raise _untested(error) from error
    except ProviderError as error:
        raise _untested(error) from error


def try_draft(*, provider: ModelProvider, draft: ProviderDraft, actor: Actor) -> None:
    """Try the new key of a draft, where the draft says that the provider shall be.

    Raises:
        PermissionDenied, InvalidInput, ProviderKeyUntested: as above; also an address that may not be called.
    """
    refuse_for_shared(provider, "api_key")
    wanted = copy(provider)
    wanted.base_url, wanted.default_model = draft.base_url.strip(), draft.default_model.strip()
    try:
        enter_endpoint(wanted.base_url)
    except InvalidEndpoint as error:
        raise InvalidInput(fields={"base_url": [error.message]}) from error
    try_key(provider=wanted, key=draft.api_key, actor=actor)


def _trial_of(provider: ModelProvider, key: str) -> ProviderSpec:
    """Without the provider's id and limits: no stored key takes this one's place, and nobody waits."""
    spec = spec_of(provider)
    return replace(spec, api_key=Secret(key), provider_id=None, workspace_id=None, limits=None)


def ask_for_a_word(spec: ProviderSpec) -> None:
    """Have a model answer with a word, as a proof that it does.

    Raises:
        ProviderError: why it did not, in words.
    """
    try:
        ask_aside(
            spec,
            prompt=_TRIAL_PROMPT,
            question=_TRIAL_QUESTION,
            seconds=KEY_SECONDS,
            most=_LONGEST_WORD,
            bill=None,
        )
    except TimeoutError as error:
        raise ProviderStalled(_("The model provider did not answer in time.")) from error


def _lists_models(spec: ProviderSpec) -> bool:
    try:
        runtime.run_sync(list_models(spec), timeout_seconds=TOTAL_SECONDS + 5)
    except ProviderError:
        return False
    return True


def _untested(error: ProviderError) -> ProviderKeyUntested:
    message = _("Trellis could not test this key, so nothing was changed. %(why)s")
    return ProviderKeyUntested(message % {"why": error.message}, details=error.details)


def rotate_key(
    *, provider: ModelProvider, new_key: str, actor: Actor, is_tested: bool = True
) -> ModelListing:
    """Put a new key in the old one's place once the provider takes it. Requests under way end with the old one.

    Gives the models that the provider lists for the new key; a provider that lists none may still answer.

    Args:
        is_tested: False: store it though it could not be tried, as while the provider is down.

    Raises:
        PermissionDenied: the actor may not manage models.
        InvalidInput: it is no key, the stored one, or the provider refused it; the old key stays.
        ProviderKeyUntested: the provider did not answer, and the old key stays; why, in words.
        Conflict: the provider's address was changed meanwhile, and the old key stays.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    refuse_for_shared(provider, "api_key")
    key = read_key(new_key)
    if provider.api_key and provider.api_key.is_same(key):
        message = _(
            "This key is stored already. Make a new one at the provider, and paste it here."
        )
        raise InvalidInput(fields={"api_key": [message]})
    if is_tested:
        try_key(provider=provider, key=key, actor=actor)
    with transaction.atomic():
        rows = ModelProvider.objects.for_workspace(provider.workspace_id).select_for_update()
        stored: ModelProvider = rows.fetch(provider.pk)
        if stored.origin != provider.origin or stored.is_shared:
            raise Conflict(_("The provider's address changed in the meantime. Try again."))
        with tracked_change(stored, actor=actor):
            stored.api_key = Secret(key)
            stored.save(update_fields=["api_key", "updated_at"])
    if is_tested:
        with suppress(ProviderError):
            return _list(replace(spec_of(provider), api_key=Secret(key)))
    return ModelListing(models=(), left_out=0, took_ms=0)


def _list(spec: ProviderSpec, offered: Collection[str] | None = None) -> ModelListing:
    asking = list_models(spec, offered=offered)
    try:
        return runtime.run_sync(asking, timeout_seconds=TOTAL_SECONDS + 5)
    except ProviderKeyRefused as error:
        raise refused_key(spec, error) from error


def keep_facts(
    *, provider: ModelProvider, names: Iterable[str], listing: ModelListing, actor: Actor
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
    if missing := [name for name in wanted if name not in known]:
        message = _("The provider has no model “%(gone)s” any more.") % {"gone": missing[0][:100]}
        raise InvalidInput(fields={"models": [message]})
    rows = ProviderModel.objects.for_workspace(provider.workspace_id).filter(provider=provider)
    with transaction.atomic():
        stored = {row.model: row for row in rows.filter(model__in=wanted).select_for_update()}
        for name in wanted:
            _keep(stored.get(name), known[name], provider, actor)
    return len(set(wanted) - set(stored))


def _keep(
    row: ProviderModel | None, listed: ListedModel, provider: ModelProvider, actor: Actor
) -> None:
    given = {name: getattr(listed, name) for name in _FACTS}
    # Beside what an administrator says of them, which comes first wherever it is asked for.
    found = {"told_calls_tools": listed.calls_tools, "told_reasons": listed.reasons}
    if row is None:
        made: ProviderModel = ProviderModel.objects.create(
            workspace_id=provider.workspace_id,
            provider=provider,
            model=listed.name,
            **given,
            **found,
        )
        record_created(made, actor=actor)
        return
    with tracked_change(row, actor=actor):
        for name, value in given.items():
            if getattr(row, name) is None:
                setattr(row, name, value)
        row.told_calls_tools, row.told_reasons = found["told_calls_tools"], found["told_reasons"]
        row.save()
