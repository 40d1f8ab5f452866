"""Removing a model provider of a workspace: what uses it, what becomes of that, and doing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import models, transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import Bud, Conversation, ModelProvider, WithheldReason
from chat.services.bud_drafts import forget_draft
from workspaces.actors import Actor
from workspaces.changes import record_deleted
from workspaces.errors import Conflict
from workspaces.holding import hold
from workspaces.roles import Permission, require
from workspaces.words.formats import whole

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
    checks: int
    """Copies of buds whose checks run now."""
    tests: int
    """Unsaved buds that somebody tries in the editor."""
    stands_in_for: tuple[str, ...]
    """Providers that ask it when they fail; some of them, if there are many."""
    chats: int
    """In which somebody chose one of its models."""

    @property
    def is_needed(self) -> bool:
        """Whether it cannot be deleted."""
        return bool(self.buds or self.more_buds or self.checks)


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
        checks=rows.filter(is_sandboxed=True).count(),
        tests=rows.tried().count(),
        stands_in_for=tuple(behind.order_by("name").values_list("name", flat=True)[:MOST_NAMED]),
        chats=chats.count(),
    )


def needed_in_words(uses: ProviderUses) -> str:
    """Why it cannot be deleted, in a sentence; empty: it can."""
    if not uses.is_needed:
        return ""
    users = [bud.name for bud in uses.buds[:5]]
    if others := uses.more_buds + len(uses.buds) - len(users):
        sentence = (
            ngettext("%(count)s bud more", "%(count)s buds more", others)
            if users
            else ngettext("%(count)s bud of others", "%(count)s buds of others", others)
        )
        users.append(sentence % {"count": whole(others)})
    if uses.checks:
        sentence = ngettext(
            "a check of a bud that runs now", "%(count)s checks of buds that run now", uses.checks
        )
        users.append(sentence % {"count": whole(uses.checks)})
    return _("This is still in use by %(users)s.") % {"users": ", ".join(users)}


def consequences_of_deletion(uses: ProviderUses) -> list[str]:
    """What becomes of everything else that uses it, in sentences."""
    sentences = [
        _("“%(name)s” asks it when it fails. From then on it asks no other provider.")
        % {"name": name}
        for name in uses.stands_in_for
    ]
    if uses.tests:
        sentence = ngettext(
            "Somebody tries it with a bud in the editor. This test chat is erased.",
            "People try it with buds in the editor. These %(count)s test chats are erased.",
            uses.tests,
        )
        sentences.append(sentence % {"count": whole(uses.tests)})
    if uses.chats:
        sentence = ngettext(
            "Somebody chose one of its models in %(count)s chat. The model of its bud answers there then.",
            "People chose one of its models in %(count)s chats. The models of their buds answer there then.",
            uses.chats,
        )
        sentences.append(sentence % {"count": whole(uses.chats)})
    return sentences


@transaction.atomic
def remove_provider(*, provider: ModelProvider, actor: Actor) -> None:
    """Remove a provider with its key, what is known of its models, and the test chats of unsaved buds that use it.

    Raises:
        PermissionDenied: the actor may not manage models.
        NotFound: it was removed before.
        Conflict: buds use it, or it is the platform's and not withdrawn.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    hold(provider)
    if provider.is_shared and provider.withheld != WithheldReason.WITHDRAWN.value:
        message = _("“%(name)s” is shared by the platform. Only its owner can withdraw it.")
        raise Conflict(message % {"name": provider.name})
    if reason := needed_in_words(uses_of_provider(provider, actor)):
        raise Conflict(reason)
    for draft in Bud.objects.for_workspace(provider.workspace_id).tried().filter(provider=provider):
        forget_draft(draft=draft, actor=actor)
    record_deleted(provider, actor=actor)
    try:
        provider.delete()
    except models.ProtectedError as error:  # since the moment before
        raise Conflict(needed_in_words(uses_of_provider(provider, actor))) from error
