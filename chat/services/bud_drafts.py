"""Trying an unsaved bud: its values stand in a draft of the person's own, which the engine takes like any bud."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from chat.models import Bud, BudVisibility, Conversation
from chat.services.bud_versions import free_slug
from chat.services.buds import assign_values, require_edit
from chat.services.conversations import create_conversation, erase_conversation
from workspaces.actors import Actor, Source
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.holding import hold_workspace
from workspaces.jobs.sweeping import sweep
from workspaces.models import User
from workspaces.roles import Permission, require

FORGOTTEN_AFTER: Final = timedelta(days=1)
MOST_FORGOTTEN: Final = 200


def save_draft(
    *,
    workspace_id: UUID,
    bud: Bud | None,
    person: User,
    actor: Actor,
    values: dict[str, Any],
    provider_id: UUID | None,
) -> Bud:
    """Keep what somebody has in the editor, for their test chat alone.

    Args:
        bud: the bud that they edit; None: a new one.

    Raises:
        PermissionDenied: they may not edit it.
        InvalidInput: a value does not fit, as when it is saved.
    """
    if bud is not None:
        require_edit(bud, actor)
    else:
        require(actor, Permission.MANAGE_BUDS, workspace_id=workspace_id)
    with transaction.atomic():
        hold_workspace(workspace_id)  # two tabs may try the same bud at one moment
        rows = Bud.objects.for_workspace(workspace_id).tried().filter(owner=person)
        draft: Bud | None = rows.filter(draft_of=bud).first()
        if draft is None:
            slug = free_slug(workspace_id, f"test-{person.pk.hex[-12:]}")
            draft = Bud(
                workspace_id=workspace_id, is_draft=True, owner=person, draft_of=bud, slug=slug
            )
        kept = {**values, "slug": draft.slug, "visibility": BudVisibility.OWNER.value}
        kept["is_archived"] = False
        draft.has_knowledge = bud is not None and bud.has_knowledge
        # In the log like any bud: it says what a test's model was told and could call.
        if draft._state.adding:
            assign_values(draft, kept, provider_id)
            draft.save(force_insert=True)
            record_created(draft, actor=actor)
        else:
            with tracked_change(draft, actor=actor):
                assign_values(draft, kept, provider_id)
                draft.save()
    return draft


def start_test(*, draft: Bud, person: User, actor: Actor) -> Conversation:
    """Open a test chat with a draft; the one before is erased."""
    forget_tests(draft=draft, actor=actor)
    return create_conversation(bud=draft, owner=person, actor=actor)


def forget_tests(*, draft: Bud, actor: Actor) -> None:
    """Erase the test chats of a draft. What they called stays in the log."""
    rows = Conversation.objects.for_workspace(draft.workspace_id).filter(bud=draft)
    for conversation in rows:
        erase_conversation(conversation=conversation, actor=actor)


def forget_draft(*, draft: Bud, actor: Actor) -> None:
    """Erase a draft with its test chats."""
    forget_tests(draft=draft, actor=actor)
    with transaction.atomic():
        record_deleted(draft, actor=actor)
        draft.delete()


def forget_old_drafts() -> int:
    """Erase drafts that nobody has touched for a day, with their chats; how many."""
    since = timezone.now() - FORGOTTEN_AFTER
    talks = Conversation.objects.across_workspaces().filter(
        bud=OuterRef("pk"), last_message_at__gte=since
    )
    old = Bud.objects.across_workspaces().filter(
        ~Exists(talks), is_draft=True, updated_at__lt=since
    )
    return sweep(old, _forget_old, label="forget_old_drafts", most=MOST_FORGOTTEN)


def _forget_old(draft: Bud) -> bool:
    workspace_id = draft.workspace_id
    actor = Actor.system(label="drafts", source=Source.TASK, workspace_id=workspace_id)
    forget_draft(draft=draft, actor=actor)
    return True
