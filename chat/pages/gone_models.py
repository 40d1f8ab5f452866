"""How pages tell what changed in providers' lists of models."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import ngettext

from chat.models import ModelProvider, ProviderList, SharedProviderList
from chat.providers.known_lists import list_of
from chat.services.changed_models import UsedModel, gone_models, used_models
from workspaces.words.formats import day, whole

MOST_NEW: Final = 20
"""New models on a provider's page. A test of the connection lists all of them."""


def gone_in_words(one: UsedModel) -> str:
    """Since when, and how many buds use it."""
    assert one.gone_since is not None
    message = ngettext(
        "%(model)s has been missing in the list of %(name)s since %(day)s: %(count)s bud uses it.",
        "%(model)s has been missing in the list of %(name)s since %(day)s: %(count)s buds use it.",
        one.buds,
    )
    return message % {
        "model": one.name,
        "name": one.provider_name,
        "day": day(one.gone_since),
        "count": whole(one.buds),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ListNews:
    """What a provider's page tells of its list of models."""

    listed: ProviderList | SharedProviderList
    new: Sequence[tuple[str, date]]
    """Models that came lately, the newest first."""
    new_left_out: int
    gone: Sequence[tuple[str, str]]
    """What is said of each model that buds use and that is missing, and the address of these buds."""


def news_of(provider: ModelProvider, address: str, kept: Collection[str]) -> ListNews | None:
    """What is new in it for the workspace; None: it was never asked.

    Args:
        address: where the provider is.
        kept: models that the workspace has in its table.
    """
    listed = list_of(provider, address)
    if listed is None:
        return None
    days = listed.list_changes.new.items()
    new = [(name, on) for name, on in days if name not in kept and provider.offers(name)]
    used = gone_models(used_models(provider.workspace_id, only={provider.pk}))
    return ListNews(
        listed=listed,
        new=new[:MOST_NEW],
        new_left_out=len(new[MOST_NEW:]),
        gone=[(gone_in_words(one), buds_address(one)) for one in used],
    )


def buds_address(one: UsedModel) -> str:
    """The admin's list of these buds."""
    # Buds without a model of their own take the provider's default one.
    wanted = {
        "model__in": f"{one.name}," if one.is_default else one.name,
        "is_archived__exact": "0",
    }
    if one.provider_id is None:
        wanted["provider__isnull"] = "1"
    else:
        wanted["provider__id__exact"] = str(one.provider_id)
    return f"{reverse('admin:chat_bud_changelist')}?{urlencode(wanted)}"
