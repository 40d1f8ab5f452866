"""What the platform's owner shares with workspaces: the one place where its address and key are read for them.

The rows are the platform's, so row-level security hides them from every workspace's transaction. They are read in
queries of their own, never beside a workspace's rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.utils.translation import gettext_noop as _

from chat.models import ModelProvider, SharedProvider, WithheldReason
from chat.providers.errors import ProviderModelWithheld, ProviderSwitchedOff
from workspaces.database.row_security import everywhere


def find_shared(shared_id: UUID) -> SharedProvider | None:
    """The row itself; None: it is deleted."""
    with everywhere():
        return SharedProvider.objects.filter(pk=shared_id).first()


def fetch_shared(provider: ModelProvider) -> SharedProvider:
    """Where a provider that is shared with a workspace is, and with which key.

    Raises:
        ProviderSwitchedOff: the workspace may not use it.
    """
    assert provider.shared_id is not None
    found = None if provider.withheld else find_shared(provider.shared_id)
    if found is None or not found.is_active:
        raise switched_off(provider)
    return found


def hold_shared(shared_id: UUID) -> SharedProvider | None:
    """The row, locked until the transaction ends."""
    with everywhere():
        return SharedProvider.objects.select_for_update(no_key=True).filter(pk=shared_id).first()


def addresses_of(providers: Iterable[ModelProvider]) -> dict[UUID, str]:
    """Give each provider's address, as published prices are known by. One statement, none where nothing is shared."""
    rows = list(providers)
    wanted = {row.shared_id for row in rows if row.shared_id is not None}
    shared: dict[UUID, str] = {}
    if wanted:
        with everywhere():
            found = SharedProvider.objects.filter(pk__in=wanted)
            shared = dict(found.values_list("pk", "base_url"))
    return {
        row.pk: row.base_url if row.shared_id is None else shared.get(row.shared_id, "")
        for row in rows
    }


def withheld_model(provider: ModelProvider, model: str) -> ProviderModelWithheld:
    """Why a model of a provider that is on does not answer, with what to do."""
    message = _(
        "Whoever runs Trellis no longer lets this workspace use “%(model)s” of “%(name)s”. Choose another model, or"
        " ask them."
    )
    return ProviderModelWithheld(message % {"model": model, "name": provider.name})


def switched_off(provider: ModelProvider) -> ProviderSwitchedOff:
    """Why a provider that is off does not answer, with who can change that."""
    if provider.withheld == WithheldReason.WITHDRAWN:
        message = _(
            "“%(name)s” is no longer shared with this workspace. Choose another model, or ask whoever runs Trellis."
        )
    elif provider.withheld:
        message = _(
            "“%(name)s” is shared by whoever runs Trellis, and they have switched it off. Choose another model,"
            " or ask them."
        )
    else:
        return ProviderSwitchedOff()
    return ProviderSwitchedOff(message % {"name": provider.name})
