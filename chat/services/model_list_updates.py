"""Asking every provider for its models once a day, one after another, and remembering what changed.

Nothing of what a workspace knows of its models is changed by it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from chat.models import ModelProvider, ProviderList, SharedProvider, SharedProviderList
from chat.models.provider_lists import ENVIRONMENTS, MOST_NAMES
from chat.providers.base import ProviderSpec
from chat.providers.choosing import platform_provider
from chat.providers.errors import ProviderError
from chat.providers.known_lists import digest_of
from chat.providers.list_changes import changes_after, first_changes
from chat.providers.listing import TOTAL_SECONDS, ModelListing, list_models
from chat.providers.specs import list_spec_of, trial_spec_of
from mcp_servers.client.connections import runtime
from workspaces.database import database_now
from workspaces.database.row_security import everywhere
from workspaces.words.texts import gettext_noop as _

logger = logging.getLogger(__name__)

EVERY: Final = timedelta(hours=23)
"""Less than a day, so that a provider is asked at about the same hour."""
RUN_SECONDS: Final = 300.0
"""Then no further provider is asked, and the next run goes on."""
MOST_IN_A_RUN: Final = 200
_LONGEST_AGO: Final = F("listed__asked_at").asc(nulls_first=True)
_EMPTY: Final = _("The provider's list of models is empty.")
_BROKEN: Final = _("The provider's list of models could not be read.")


def look_at_lists() -> int:
    """Ask those whose list is a day old, as long as there is time; gives how many were asked."""
    until = time.monotonic() + RUN_SECONDS
    number = 0
    for asked in _due():
        if time.monotonic() > until or number >= MOST_IN_A_RUN:
            break
        if _look(*asked):
            number += 1
    return number


_Asked = tuple[ProviderSpec, Any, dict[str, Any]]
"""Whom to ask, the rows that know its list, and what names its row among them."""


def _due() -> Iterator[_Asked]:
    before = database_now() - EVERY
    is_due = Q(listed=None) | Q(listed__asked_at__lt=before)
    own = ModelProvider.objects.across_workspaces().answering().filter(is_due, shared=None)
    for provider in own.exclude(base_url="").order_by(_LONGEST_AGO, "pk")[:MOST_IN_A_RUN]:
        rows = ProviderList.objects.for_workspace(provider.workspace_id)
        named = {"workspace_id": provider.workspace_id, "provider_id": provider.pk}
        yield list_spec_of(provider), rows, named
    with everywhere():
        due = SharedProvider.objects.filter(is_due, is_active=True)
        shared = list(due.order_by(_LONGEST_AGO, "pk")[:MOST_IN_A_RUN])
    for one in shared:
        yield trial_spec_of(one), SharedProviderList.objects, {"pk": one.pk, "shared_id": one.pk}
    platform = platform_provider()
    if not platform.is_demo:
        yield platform, SharedProviderList.objects, {"pk": ENVIRONMENTS}


def _look(spec: ProviderSpec, rows: Any, named: dict[str, Any]) -> bool:
    """Ask one; False: another process has asked it meanwhile."""
    digest = digest_of(spec.base_url)
    if not _take_on(rows, named, digest):
        return False
    listing, fault = _ask(spec)
    with transaction.atomic(), everywhere():
        row = rows.select_for_update().filter(**named).first()
        if row is None:  # the provider was deleted meanwhile
            return True
        if listing is not None:
            _remember(row, listing, digest)
        row.fault = fault[:500]
        row.save()
    return True


def _take_on(rows: Any, named: dict[str, Any], digest: str) -> bool:
    now = database_now()
    with everywhere():
        if rows.filter(**named, asked_at__lt=now - EVERY).update(asked_at=now):
            return True
        if rows.filter(**named).exists():
            return False
        try:
            with transaction.atomic():
                rows.create(**named, address_digest=digest, asked_at=now)
        except IntegrityError:  # another process did, or the provider is deleted
            return False
    return True


def _ask(spec: ProviderSpec) -> tuple[ModelListing | None, str]:
    """The list, or why there is none: a provider that fails is no error of Trellis."""
    try:
        asking = list_models(spec, most=MOST_NAMES)
        listing = runtime.run_sync(asking, timeout_seconds=TOTAL_SECONDS + 5)
    except ProviderError as error:
        logger.info("provider_list_not_read", extra={"provider": spec.name, "code": error.code})
        return None, error.message
    except Exception:
        # One provider must not keep others from being asked.
        logger.exception("provider_list_broken", extra={"provider": spec.name})
        return None, _BROKEN
    return (listing, "") if listing.models else (None, _EMPTY)


def _remember(row: ProviderList | SharedProviderList, listing: ModelListing, digest: str) -> None:
    today = datetime.now(UTC).date()
    if row.listed_at is None or row.address_digest != digest:
        changes = first_changes(listing)
    else:
        changes = changes_after(row.list_changes, row.names, listing, today)
    row.names = [one.name for one in listing.models]
    row.changes = changes.model_dump(mode="json")
    row.address_digest = digest
    row.listed_at = database_now()
