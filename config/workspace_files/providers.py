"""The model providers of a workspace's file, with what is known of their models."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from chat.models import ModelProvider, ProviderModel
from chat.providers.errors import ProviderKeyUntested
from chat.services.offered_models import offered_models
from chat.services.provider_check import try_draft
from chat.services.providers import (
    ModelDraft,
    ProviderDraft,
    add_provider,
    change_provider,
    describe_model,
)
from config.workspace_files.shapes import ModelFile, ProviderFile
from config.workspace_files.target import WorkspaceTarget, faults_at, stored_or_given
from workspaces.errors import InvalidInput
from workspaces.secret_memory import without_secrets

_SAME_NAME: Final = (
    *("name", "default_model", "is_active", "most_at_once", "most_a_minute", "embedding_model"),
)
_OF_THE_PLATFORM: Final = ("most_at_once", "most_a_minute")
_FACTS: Final = tuple(ModelFile.model_fields)
KEYS_SECONDS: Final = 60.0
"""How long new keys are tested; then no further test begins."""


class KeysUntested(InvalidInput):
    """New keys could not be tested, and none was refused: they may be stored all the same, if somebody says so."""


def provider_files(target: WorkspaceTarget) -> list[ProviderFile]:
    """Every provider of the workspace, by name."""
    known: dict[UUID | None, dict[str, ModelFile]] = {}
    rows = offered_models(target.pk).exclude(provider=None)
    for row in rows.order_by("model"):
        facts = _facts_of(row)
        if facts != ModelFile():
            known.setdefault(row.provider_id, {})[row.model] = facts
    return [_provider_file(row, known.get(row.pk, {})) for row in _providers(target)]


def _providers(target: WorkspaceTarget) -> Iterable[ModelProvider]:
    rows = ModelProvider.objects.for_workspace(target.pk)
    return rows.select_related("fallback").order_by("name")


def _provider_file(row: ModelProvider, models: dict[str, ModelFile]) -> ProviderFile:
    values = {name: getattr(row, name) for name in _SAME_NAME}
    if row.is_shared:
        # What the platform's owner says of this workspace is no value of its file.
        values |= dict.fromkeys(_OF_THE_PLATFORM)
    return ProviderFile(
        **values,
        shared=row.is_shared,
        base_url=without_secrets(row.base_url),
        fallback=row.fallback.name if row.fallback else None,
        models=models,
    )


def _facts_of(row: ProviderModel) -> ModelFile:
    return ModelFile(**{name: getattr(row, name) for name in _FACTS})


def try_new_keys(target: WorkspaceTarget, wanted: Sequence[ProviderFile]) -> dict[str, str]:
    """Ask each provider for a word with the key that the file gives it, unless that is stored already.

    It waits for others, so it goes before the transaction that applies the file.

    Returns:
        The address at which each key works, by the provider's name.

    Raises:
        InvalidInput: a provider refused its key, or is faulty; told at the fields.
        KeysUntested: no key was refused, but some could not be tested.
    """
    ends_at = time.monotonic() + KEYS_SECONDS
    works_at: dict[str, str] = {}
    refused: dict[str, list[str]] = {}
    untested: dict[str, list[str]] = {}
    for one, row, draft in _with_new_keys(target, wanted):
        where = f"providers.{one.name}"
        if time.monotonic() > ends_at:
            message = _("There was no time left to test this key, so nothing was changed.")
            untested[f"{where}.api_key"] = [message]
            continue
        provider = row or ModelProvider(workspace=target.workspace, name=one.name)
        try:
            with faults_at(where):
                try_draft(provider=provider, draft=draft, actor=target.actor)
            works_at[one.name] = draft.base_url
        except ProviderKeyUntested as error:
            untested[f"{where}.api_key"] = [error.message]
        except InvalidInput as error:
            refused |= {field: list(texts) for field, texts in error.fields.items()}
    if refused:
        raise InvalidInput(fields=refused | untested)
    if untested:
        raise KeysUntested(fields=untested)
    return works_at


def note_untested_keys(target: WorkspaceTarget, wanted: Sequence[ProviderFile]) -> None:
    """Say which keys are stored though nobody knows whether they work."""
    for one, _row, _draft_of in _with_new_keys(target, wanted):
        target.notes.append(
            _("The key of “%(name)s” is not tested. Test the connection on its page.")
            % {"name": one.name}
        )


def _with_new_keys(
    target: WorkspaceTarget, wanted: Sequence[ProviderFile]
) -> list[tuple[ProviderFile, ModelProvider | None, ProviderDraft]]:
    """Those with a key that is not stored for this address, as they are stored and as they shall be."""
    stored = {row.name: row for row in _providers(target)}
    found = []
    for one in wanted:
        if not one.api_key:
            continue
        row = stored.get(one.name)
        now = row.base_url if row is not None else None
        with faults_at(f"providers.{one.name}"):
            written = without_secrets(now) if now is not None else None
            base_url = stored_or_given("base_url", one.base_url, written, now)
        if row is None or not _is_stored(row, base_url, one.api_key):
            found.append((one, row, _draft(one, base_url=base_url)))
    return found


def _is_stored(row: ModelProvider, base_url: str, key: str) -> bool:
    is_key = bool(row.api_key) and row.api_key.is_same(key.strip())
    return is_key and row.base_url == base_url.strip()


def put_providers(
    target: WorkspaceTarget, wanted: Sequence[ProviderFile], works_at: Mapping[str, str]
) -> None:
    """Add providers, or change those of the same names.

    Args:
        works_at: where new keys were tested. A key goes to no other address.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    present = {one.name: one for one in provider_files(target)}
    for one in wanted:
        with faults_at(f"providers.{one.name}"):
            _refuse_other_kind(one, present.get(one.name))
    for one in wanted:
        # Without those that stand in for others: they may come later in the file.
        if one.name not in present:
            _add(target, one)
    ids = {row.name: row.pk for row in _providers(target)}
    for one in wanted:
        _change(target, one, present.get(one.name), ids, works_at.get(one.name))


def _refuse_other_kind(wanted: ProviderFile, now: ProviderFile | None) -> None:
    """What the platform shares comes from its owner, and no file makes it or takes its place.

    Raises:
        InvalidInput: the file and the workspace say otherwise.
    """
    if wanted.shared and now is None:
        message = _("“%(name)s” is not shared with this workspace. Ask whoever runs Trellis.")
    elif wanted.shared and now is not None and not now.shared:
        message = _("“%(name)s” is the workspace's own provider here.")
    elif not wanted.shared and now is not None and now.shared:
        message = _(
            "“%(name)s” is shared by the platform here. Write shared: true, or use another name."
        )
    else:
        return
    raise InvalidInput(fields={"shared": [message % {"name": wanted.name}]})


def _add(target: WorkspaceTarget, wanted: ProviderFile) -> None:
    with faults_at(f"providers.{wanted.name}"):
        draft = _draft(wanted, base_url=stored_or_given("base_url", wanted.base_url, None, None))
        add_provider(workspace=target.workspace, draft=draft, actor=target.actor)
    if not wanted.api_key:
        target.notes.append(
            _("“%(name)s” has no key yet. If it needs one, enter it on its page.")
            % {"name": wanted.name}
        )


def _change(
    target: WorkspaceTarget,
    wanted: ProviderFile,
    now: ProviderFile | None,
    ids: Mapping[str, UUID],
    works_at: str | None,
) -> None:
    provider = ModelProvider.objects.for_workspace(target.pk).get(name=wanted.name)
    with faults_at(f"providers.{wanted.name}"):
        if wanted.fallback is not None and wanted.fallback not in ids:
            message = _("There is no provider “%(fallback)s” here.") % {"fallback": wanted.fallback}
            raise InvalidInput(fields={"fallback": [message]})
        fallback = ids[wanted.fallback] if wanted.fallback is not None else None
        is_same = now is not None and wanted.model_copy(update={"models": now.models}) == now
        is_added = now is None and fallback is None
        if not is_same and not is_added:
            base_url = stored_or_given(
                "base_url",
                wanted.base_url,
                now.base_url if now is not None else None,
                provider.base_url,
            )
            if works_at is not None and works_at != base_url:
                message = _("Somebody has changed the address meanwhile. Apply the file again.")
                raise InvalidInput(fields={"base_url": [message]})
            draft = _draft(wanted, base_url=base_url, fallback_id=fallback)
            if provider.is_shared:
                kept = {
                    name: getattr(provider, name)
                    for name in _OF_THE_PLATFORM
                    if getattr(wanted, name) is None
                }
                draft = replace(draft, **kept)
            change_provider(provider=provider, draft=draft, actor=target.actor)
    known = now.models if now is not None else {}
    for name, facts in wanted.models.items():
        if facts == known.get(name):
            continue
        with faults_at(f"providers.{wanted.name}.models.{name}"):
            described = ModelDraft(**{field: getattr(facts, field) for field in _FACTS})
            describe_model(provider=provider, name=name, draft=described, actor=target.actor)


def _draft(
    wanted: ProviderFile, *, base_url: str, fallback_id: UUID | None = None
) -> ProviderDraft:
    return ProviderDraft(
        **{name: getattr(wanted, name) for name in _SAME_NAME},
        base_url=base_url,
        fallback_id=fallback_id,
        api_key=wanted.api_key or "",
    )
