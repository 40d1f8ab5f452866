"""What is known from the lists of models of a workspace's providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from uuid import UUID

from chat.models import ListChanges, ModelProvider, ProviderList, SharedProviderList
from chat.models.provider_lists import ENVIRONMENTS
from chat.providers.choosing import platform_provider
from workspaces.database.row_security import everywhere


def digest_of(base_url: str) -> str:
    """What an address is compared by."""
    return sha256(base_url.encode()).hexdigest()


def changes_of(
    workspace_id: UUID, providers: Iterable[ModelProvider], addresses: Mapping[UUID, str]
) -> dict[UUID | None, ListChanges]:
    """What changed in their lists, and under None in that of the platform's own provider. At most two statements.

    Args:
        addresses: where each of them is, as `addresses_of` gives them.
    """
    rows = list(providers)
    found: dict[UUID | None, ListChanges] = {}
    own = [row.pk for row in rows if row.shared_id is None]
    if own:
        lists = ProviderList.objects.for_workspace(workspace_id).filter(provider__in=own)
        for one in lists.defer("names"):
            if one.address_digest == digest_of(addresses[one.provider_id]):
                found[one.provider_id] = one.list_changes
    behind = {row.shared_id: row.pk for row in rows if row.shared_id is not None}
    platform = platform_provider()
    wanted = [*behind, *([] if platform.is_demo else [ENVIRONMENTS])]
    for shared_list in _shared_lists(wanted):
        is_environments = shared_list.pk == ENVIRONMENTS
        pk = None if is_environments else behind[shared_list.pk]
        address = platform.base_url if pk is None else addresses[pk]
        if shared_list.address_digest == digest_of(address):
            found[pk] = shared_list.list_changes
    return found


def _shared_lists(wanted: list[UUID]) -> list[SharedProviderList]:
    if not wanted:
        return []
    with everywhere():
        return list(SharedProviderList.objects.filter(pk__in=wanted).defer("names"))


def offered_changes(provider: ModelProvider, changes: ListChanges) -> ListChanges:
    """Those of models that the workspace may use."""
    return ListChanges(
        **{
            field: {name: on for name, on in days.items() if provider.offers(name)}
            for field, days in (
                ("new", changes.new),
                ("gone", changes.gone),
                ("ends", changes.ends),
            )
        }
    )


def platforms_list(base_url: str, list_id: UUID) -> SharedProviderList | None:
    """What is known from the list of a provider of the platform.

    Args:
        list_id: the shared provider's, or `ENVIRONMENTS`.
    """
    row = next(iter(_shared_lists([list_id])), None)
    return row if row is not None and row.address_digest == digest_of(base_url) else None


def list_of(provider: ModelProvider, address: str) -> ProviderList | SharedProviderList | None:
    """What is known from one provider's list, with when it was asked; None: nothing."""
    if provider.shared_id is not None:
        return platforms_list(address, provider.shared_id)
    rows = ProviderList.objects.for_workspace(provider.workspace_id)
    row: ProviderList | None = rows.filter(provider=provider).defer("names").first()
    return row if row is not None and row.address_digest == digest_of(address) else None
