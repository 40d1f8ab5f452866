"""Sharing a conversation: who may read it, and the text that they read."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from audit.alerts.notices import notify
from chat.live.recording import Changes, changing
from chat.models import Conversation, ShareAudience, SharedChat, SharedChatReader, SharedChatText
from chat.services.conversations import active_status
from chat.services.share_ends import drop_share
from chat.services.shared_texts import BuiltText, build_text
from workspaces.actors import Actor, Source
from workspaces.changes import record_changed, record_created, tracked_change
from workspaces.delivery.mails import public_url
from workspaces.errors import InvalidInput
from workspaces.jobs.sweeping import sweep
from workspaces.models import Membership, User, Workspace
from workspaces.roles import Permission, require
from workspaces.secret_memory import remember_secret
from workspaces.secrets import SecretUnreadable

MOST_READERS: Final = 50
MOST_FOUND: Final = 20
MOST_ENDED: Final = 200
"""In one round; the next one goes on."""
_SAVED = ("audience", "with_files", "with_calls", "expires_at", "shared_at", "updated_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareChoice:
    """What a person chose in the dialog."""

    audience: ShareAudience
    people: Sequence[UUID] = field(default=())
    """Of `people`: who may read it."""
    with_files: bool = False
    with_calls: bool = False
    expires_at: datetime | None = None
    until: UUID | None = None
    """The message that it ends with; None: the end of what the chat shows now."""


def hash_of(token: str) -> str:
    """How the token of a link is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def share_conversation(
    *, conversation: Conversation, choice: ShareChoice, actor: Actor
) -> SharedChat:
    """Share a conversation, or replace what others read of it and who they are. Its link stays the same.

    Raises:
        InvalidInput: people who are no members, a date in the past, an audience that the workspace does not allow, or
            nothing or too much to share.
    """
    workspace_id = conversation.workspace_id
    require(actor, Permission.USE_CHAT, workspace_id=workspace_id)
    with changing(conversation.pk, workspace_id) as changes:
        row = changes.conversation
        people = _check(row, choice)
        built = build_text(
            row,
            until=choice.until,
            with_files=choice.with_files,
            with_calls=choice.with_calls,
        )
        shared = _save(row, choice, actor)
        _save_text(shared, built)
        _save_readers(shared, people, actor)
        _show(changes, shared.shared_at)
    return shared


def stop_sharing(*, shared: SharedChat, actor: Actor) -> None:
    """Let nobody read it any more. Its owner may, and administrators of the workspace."""
    permission = (
        Permission.USE_CHAT if actor.user_id == shared.owner_id else Permission.MANAGE_MEMBERS
    )
    require(actor, permission, workspace_id=shared.workspace_id)
    _stop(shared, actor)


def end_expired() -> int:
    """Drop what ran out, with its text; gives how many."""
    rows = SharedChat.objects.across_workspaces().filter(expires_at__lte=timezone.now())
    return sweep(
        rows.order_by("expires_at"), _end_expired, label="end_shared_chats", most=MOST_ENDED
    )


def _end_expired(shared: SharedChat) -> bool:
    workspace_id = shared.workspace_id
    actor = Actor.system(label="shared chats", source=Source.TASK, workspace_id=workspace_id)
    return _stop(shared, actor, only_expired=True)


def find_people(*, workspace: Workspace, person: User, typed: str) -> list[User]:
    """Find members by name or address for the dialog, without the person: at most 20, by name."""
    users = User.objects.filter(
        pk__in=_members(workspace.pk).exclude(user=person).values("user_id")
    )
    for word in typed.split()[:5]:
        users = users.filter(name__icontains=word) | users.filter(email__icontains=word)
    return list(users.order_by("name", "email", "pk")[:MOST_FOUND])


def link_of(shared: SharedChat) -> str:
    """The whole address by which a shared chat is read; empty: the key that protected it is gone, and others still have it."""
    try:
        token = shared.token.reveal("giving the link to a reader") if shared.token else ""
    except SecretUnreadable:
        return ""
    return public_url(reverse("chat:shared_chat", args=[token]))


def readers_of(shared: SharedChat) -> list[User]:
    """The people who were chosen, by name. Lists read `readers__person` ahead."""
    readers = [row.person for row in shared.readers.all()]
    return sorted(readers, key=lambda user: (user.display_name.lower(), user.email))


def _members(workspace_id: UUID) -> Any:
    return Membership.objects.for_workspace(workspace_id).filter(user__is_active=True)


def _check(conversation: Conversation, choice: ShareChoice) -> list[User]:
    """The chosen people, if all of the choice fits."""
    faults: dict[str, list[str]] = {}
    people: list[User] = []
    if choice.expires_at is not None and choice.expires_at <= timezone.now():
        faults["expires_at"] = [_("Choose a date in the future.")]
    if choice.audience is ShareAudience.LINK:
        workspace = Workspace.objects.get(pk=conversation.workspace_id)
        if not workspace.allows_public_links:
            faults["audience"] = [
                _(
                    "This workspace does not allow links that anyone can open. An owner can allow them in the rules of the workspace."
                )
            ]
    if choice.audience is ShareAudience.PEOPLE:
        wanted = set(choice.people) - {conversation.owner_id}
        rows = _members(conversation.workspace_id).filter(user_id__in=wanted)
        people = [row.user for row in rows.select_related("user")]
        if not wanted:
            faults["people"] = [_("Choose at least one person.")]
        elif len(wanted) > MOST_READERS:
            faults["people"] = [_("Choose at most %(most)s people.") % {"most": MOST_READERS}]
        elif len(people) < len(wanted):
            faults["people"] = [_("One of these people is not a member of this workspace.")]
    if faults:
        raise InvalidInput(fields=faults)
    return people


def _save(conversation: Conversation, choice: ShareChoice, actor: Actor) -> SharedChat:
    rows = SharedChat.objects.for_workspace(conversation.workspace_id)
    shared: SharedChat | None = rows.filter(conversation=conversation).first()
    values = {
        "audience": choice.audience.value,
        "with_files": choice.with_files,
        "with_calls": choice.with_calls,
        "expires_at": choice.expires_at,
        "shared_at": timezone.now(),
    }
    if shared is None:
        token = secrets.token_urlsafe(32)
        remember_secret(token, workspace_id=conversation.workspace_id)
        shared = SharedChat.objects.create(
            workspace_id=conversation.workspace_id,
            conversation=conversation,
            owner_id=conversation.owner_id,
            token_hash=hash_of(token),
            token=token,
            **values,
        )
        record_created(shared, actor=actor)
        return shared
    with tracked_change(shared, actor=actor):
        for name, value in values.items():
            setattr(shared, name, value)
        shared.save(update_fields=_SAVED)
    return shared


def _save_text(shared: SharedChat, built: BuiltText) -> None:
    shared.text, _is_new = SharedChatText.objects.for_workspace(
        shared.workspace_id
    ).update_or_create(
        shared=shared,
        defaults={"end": built.end, "document": built.document.model_dump(mode="json")},
        create_defaults={
            "workspace_id": shared.workspace_id,
            "end": built.end,
            "document": built.document.model_dump(mode="json"),
        },
    )


def _save_readers(shared: SharedChat, people: Sequence[User], actor: Actor) -> None:
    rows = SharedChatReader.objects.for_workspace(shared.workspace_id).filter(shared=shared)
    before = {row.person_id: row.person for row in rows.select_related("person")}
    after = {user.pk: user for user in people}
    if before.keys() == after.keys():
        return
    rows.exclude(person_id__in=list(after)).delete()
    new = [user for pk, user in after.items() if pk not in before]
    SharedChatReader.objects.bulk_create(
        SharedChatReader(workspace_id=shared.workspace_id, shared=shared, person=user)
        for user in new
    )
    _tell_readers(shared, new)
    record_changed(
        shared,
        actor=actor,
        before={"readers": sorted(user.email for user in before.values())},
        after={"readers": sorted(user.email for user in after.values())},
    )


def _tell_readers(shared: SharedChat, people: Sequence[User]) -> None:
    """Put it into their bells: without its title or link, which would outlive it there."""
    notify(
        workspace_id=shared.workspace_id,
        user_ids=[user.pk for user in people if user.pk != shared.owner_id],
        kind="shared_chat",
        title=_("%(name)s shared a chat with you") % {"name": shared.owner.display_name},
        text=_("It is among your shared chats."),
        url=reverse("chat:shared_chats", args=[shared.workspace.slug]),
    )


def _stop(shared: SharedChat, actor: Actor, *, only_expired: bool = False) -> bool:
    workspace_id = shared.workspace_id
    with changing(shared.conversation_id, workspace_id) as changes:
        if only_expired:
            rows = SharedChat.objects.for_workspace(workspace_id)
            stored = rows.filter(conversation=changes.conversation).first()
            # Its owner may have chosen a later date since it was found.
            if stored is None or stored.expires_at is None or stored.expires_at > timezone.now():
                return False
        drop_share(changes.conversation, actor)
        _show(changes, None)
    return True


def _show(changes: Changes, shared_at: datetime | None) -> None:
    """Have the pages of its owner show whether it is shared."""
    changes.conversation.shared_at = shared_at
    changes.save_with_number("shared_at")
    changes.conversation_row(turn_status=active_status(changes.conversation))
