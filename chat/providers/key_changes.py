"""A key that a provider refuses: the key that is stored by now, and what people are told where that is refused too."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from audit.models import Notice
from chat.models import ModelProvider, SharedProvider, Turn
from chat.providers.base import ProviderSpec
from chat.providers.errors import ProviderKeyRefused, ProviderKeyUnreadable, ProviderSwitchedOff
from chat.providers.shared import fetch_shared, find_shared
from chat.values import TurnStatus
from workspaces.actors import Role
from workspaces.database import database_now
from workspaces.delivery.bell import tell
from workspaces.models import Membership, User

_NOTICE: Final = "model.key_refused"
_TOLD_AGAIN: Final = timedelta(days=1)


def with_changed_key(spec: ProviderSpec) -> ProviderSpec | None:
    """The same with the key that is stored now; None: it is the one that was sent.

    A request may have waited for its turn, or for another attempt, while somebody changed the key.
    A key is sent only to the address that it is stored with.
    """
    if spec.provider_id is None or spec.workspace_id is None:
        return None
    row = ModelProvider.objects.for_workspace(spec.workspace_id).find(spec.provider_id)
    if row is None or row.shared_id != spec.shared_id:
        return None
    holder: ModelProvider | SharedProvider = row
    if row.is_shared:
        with suppress(ProviderSwitchedOff):
            holder = fetch_shared(row)
    if holder.base_url != spec.base_url or not holder.api_key:
        return None
    changed = replace(spec, api_key=holder.api_key)
    try:
        stored = changed.reveal_key("comparing keys")
    except ProviderKeyUnreadable:
        return None
    is_same = spec.api_key is not None and spec.api_key.is_same(stored)
    return None if is_same else changed


def refused_key(spec: ProviderSpec, error: ProviderKeyRefused) -> ProviderKeyRefused:
    """The refusal with whose key it is, and who can change it."""
    if isinstance(error, ProviderKeyUnreadable):
        return _unreadable_key(spec)
    if spec.shared_id is not None:
        message = _(
            "“%(name)s” is shared by whoever runs Trellis, and refused their API key, so it cannot answer. They can"
            " enter a working key on its page."
        ) % {"name": spec.name}
    elif spec.provider_id is not None and spec.api_key is None:
        message = _(
            "“%(name)s” wants an API key, and none is stored. A workspace admin can enter one under “Add a key” on the"
            " provider's page."
        ) % {"name": spec.name}
    elif spec.provider_id is not None:
        message = _(
            "“%(name)s” refused the API key that is stored for it, so it cannot answer. A workspace admin can enter"
            " a working key under “Change the key” on the provider's page."
        ) % {"name": spec.name}
    elif spec.is_platforms:
        message = _(
            "The platform's model provider refused its API key, so it cannot answer. Whoever runs Trellis can set"
            " a working key in OPENAI_API_KEY."
        )
    else:
        return error
    return ProviderKeyRefused(message, details=error.details)


def _unreadable_key(spec: ProviderSpec) -> ProviderKeyUnreadable:
    message = (
        _(
            "“%(name)s” is shared by whoever runs Trellis, and cannot answer: its stored API key can no longer be"
            " read, because the encryption key that protected it is gone. They can enter the API key again on its page."
        )
        if spec.shared_id is not None
        else _(
            "“%(name)s” cannot answer: its stored API key can no longer be read, because the encryption key that"
            " protected it is gone. A workspace admin can enter the API key again under “Change the key” on the"
            " provider's page."
        )
    )
    return ProviderKeyUnreadable(message % {"name": spec.name})


@transaction.atomic
def tell_admins(spec: ProviderSpec, error: ProviderKeyRefused) -> None:
    """Put a line into the bells of those who can change the key: once a day, and again after they have changed it.

    What is shared is the platform's owner's to change; they are told in the workspace where somebody asked.
    """
    if spec.provider_id is None or spec.workspace_id is None:
        return
    rows = ModelProvider.objects.for_workspace(spec.workspace_id)
    # Many questions may fail at one moment, and the first one tells.
    row = (
        rows.select_for_update(no_key=True, of=("self",))
        .select_related("workspace")
        .find(spec.provider_id)
    )
    if row is None:
        return
    shared = find_shared(row.shared_id) if row.shared_id is not None else None
    url = _key_page(row)
    changed_at = shared.updated_at if shared is not None else row.updated_at
    since = max(database_now() - _TOLD_AGAIN, changed_at)
    notices = Notice.objects.for_workspace(spec.workspace_id).filter(kind=_NOTICE, url=url)
    if notices.filter(created_at__gt=since).exists():
        return
    if shared is not None:
        people = User.objects.filter(is_superuser=True, is_active=True)
    else:
        admins = Membership.objects.for_workspace(spec.workspace_id).filter(
            role__in=[Role.OWNER.value, Role.ADMIN.value], user__is_active=True
        )
        people = User.objects.filter(pk__in=admins.values("user_id"))
    title = (
        gettext("The API key of “%(name)s” can't be read")
        if isinstance(error, ProviderKeyUnreadable)
        else gettext("“%(name)s” refused its API key")
    )
    text = gettext(
        "It cannot answer until somebody enters a working key. People read that in their chats."
    )
    tell(
        workspace_id=row.workspace_id,
        user_ids=people.values_list("pk", flat=True),
        kind=_NOTICE,
        title=title % {"name": row.name},
        text=text,
        url=url,
    )


def _key_page(row: ModelProvider) -> str:
    """Where its key is entered."""
    if row.shared_id is not None:
        return f"{reverse('chat:shared_provider_edit', args=[row.shared_id])}#id_api_key"
    return f"{reverse('chat:provider', args=[row.workspace.slug, row.pk])}#key-heading"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRefusal:
    """What people were told of a key that does not work."""

    title: str
    text: str
    url: str
    """Where another one is entered."""
    is_shared: bool
    """By the platform's owner, not by an administrator of the workspace."""


def key_refusals(providers: Iterable[ModelProvider]) -> list[KeyRefusal]:
    """Tell which of a workspace's providers refused the key that they have now, and gave no answer since.

    Args:
        providers: of one workspace, with `workspace` and `shared` loaded.
    """
    rows = {_key_page(row): row for row in providers}
    if not rows:
        return []
    workspace_id = next(iter(rows.values())).workspace_id
    notices = Notice.objects.for_workspace(workspace_id).filter(kind=_NOTICE, url__in=rows)
    newest = {one.url: one for one in notices.order_by("id")}
    return [
        KeyRefusal(title=one.title, text=one.text, url=url, is_shared=rows[url].is_shared)
        for url, one in newest.items()
        if _is_of_todays_key(one, rows[url]) and not _has_answered_since(one, rows[url])
    ]


def _is_of_todays_key(notice: Notice, row: ModelProvider) -> bool:
    return notice.created_at > (row.shared or row).updated_at


def _has_answered_since(notice: Notice, row: ModelProvider) -> bool:
    # Some refuse a key for a while, as until an account is paid for. Ids grow with time.
    turns = Turn.objects.for_workspace(row.workspace_id).filter(pk__gt=notice.pk)
    answered = turns.filter(status=TurnStatus.COMPLETED.value, mentioned_bud=None)
    return answered.filter(conversation__bud__provider=row).exists()
