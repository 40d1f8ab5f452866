"""What uses a model provider of a workspace, and what becomes of it when the provider is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import Bud, Conversation, ModelProvider
from workspaces.actors import Actor
from workspaces.formats import whole

MOST_NAMED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BudOfProvider:
    """A bud that takes its answers from the provider."""

    id: UUID
    name: str
    is_archived: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderUses:
    """What uses a provider."""

    buds: tuple[BudOfProvider, ...]
    """By name, those that the person may see; some of them, if there are many."""
    more_buds: int
    """Further ones."""
    unseen_buds: int
    """Of these, those that are somebody else's alone."""
    tests: int
    """Buds that somebody only tries, in the editor or by its checks."""
    stands_in_for: tuple[str, ...]
    """Providers that ask it when they fail; some of them, if there are many."""
    chats: int
    """In which somebody chose one of its models."""

    @property
    def is_needed(self) -> bool:
        """Whether it cannot be deleted."""
        return bool(self.buds or self.more_buds or self.tests)


def uses_of_provider(provider: ModelProvider, actor: Actor) -> ProviderUses:
    """Look for what uses it, as far as the person may see it."""
    rows = Bud.objects.for_workspace(provider.workspace_id).filter(provider=provider)
    buds = rows.filter(is_draft=False).order_by("name", "pk")
    seen = buds.usable_by(actor.user_id)
    total, number_seen = buds.count(), seen.count()
    named = [
        BudOfProvider(id=pk, name=name, is_archived=is_archived)
        for pk, name, is_archived in seen.values_list("pk", "name", "is_archived")[:MOST_NAMED]
    ]
    behind = ModelProvider.objects.for_workspace(provider.workspace_id).filter(fallback=provider)
    chats = Conversation.objects.for_workspace(provider.workspace_id).filter(
        chosen_model__provider=provider, deleted_at=None, bud__is_draft=False
    )
    return ProviderUses(
        buds=tuple(named),
        more_buds=total - len(named),
        unseen_buds=total - number_seen,
        tests=rows.filter(is_draft=True).count(),
        stands_in_for=tuple(behind.order_by("name").values_list("name", flat=True)[:MOST_NAMED]),
        chats=chats.count(),
    )


def told_needed(uses: ProviderUses) -> str:
    """Why it cannot be deleted, in a sentence; empty: it can."""
    if not uses.is_needed:
        return ""
    users = [bud.name for bud in uses.buds[:5]]
    if others := uses.more_buds + len(uses.buds) - len(users):
        told = (
            ngettext("%(count)s bud more", "%(count)s buds more", others)
            if users
            else ngettext("%(count)s bud of others", "%(count)s buds of others", others)
        )
        users.append(told % {"count": whole(others)})
    if uses.tests:
        told = ngettext("%(count)s test of a bud", "%(count)s tests of buds", uses.tests)
        users.append(told % {"count": whole(uses.tests)})
    return _("This is still in use by %(users)s.") % {"users": ", ".join(users)}


def consequences_of_deletion(uses: ProviderUses) -> list[str]:
    """What becomes of everything else that uses it, in sentences."""
    told = [
        _("“%(name)s” asks it when it fails. From then on it asks no other provider.")
        % {"name": name}
        for name in uses.stands_in_for
    ]
    if uses.chats:
        sentence = ngettext(
            "Somebody chose one of its models in %(count)s chat. The model of its bud answers there then.",
            "People chose one of its models in %(count)s chats. The models of their buds answer there then.",
            uses.chats,
        )
        told.append(sentence % {"count": whole(uses.chats)})
    return told
