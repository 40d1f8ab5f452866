"""Which browser sessions people use in a workspace, so that they can be seen and ended."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext

from workspaces.actors import Actor, Role
from workspaces.changes import record_deleted, tracked_change
from workspaces.models import Membership, User, Workspace, WorkspaceSession
from workspaces.people.services import require_not_above
from workspaces.people.session_store import delete_sessions
from workspaces.people.sessions import end_access
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

SESSION_ORDER: Final = "-last_seen_at"
"""One that is used meanwhile moves to the first page."""
_KEY: Final = "noted"
_EVERY: Final = 600
"""Seconds after which a session that goes on is noted again."""
_BROWSERS: Final = (
    ("Edge", "Edg"),
    ("Opera", "OPR/"),
    ("Firefox", "Firefox/|FxiOS"),
    ("Chrome", "Chrome/|CriOS"),
    ("Safari", "Safari/"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iOS", "iPhone|iPad"),
    ("Windows", "Windows"),
    ("macOS", "Mac OS X|Macintosh"),
    ("Linux", "Linux|X11"),
)


def note_visit(request: HttpRequest, user: User, workspace: Workspace, *, is_new: bool) -> None:
    """Note that the request's session is in use here: when it enters, and every ten minutes after."""
    session_key = request.session.session_key
    if session_key is None:
        return
    now = timezone.now()
    mark = [session_key[:8], int(now.timestamp())]
    last = request.session.get(_KEY)
    if not is_new and last and last[0] == mark[0] and mark[1] - last[1] < _EVERY:
        return
    request.session[_KEY] = mark
    try:
        with transaction.atomic():
            WorkspaceSession.unscoped.update_or_create(
                workspace=workspace,
                session_id=session_key,
                defaults={
                    "user": user,
                    "user_agent": request.headers.get("User-Agent", "").replace("\x00", "")[:300],
                    "ip_address": request.META.get("REMOTE_ADDR") or None,
                    "last_seen_at": now,
                },
            )
    except IntegrityError:
        return  # the session was ended meanwhile


def sessions_of(user_id: UUID, workspace: Workspace) -> WorkspaceQuerySet[WorkspaceSession]:
    """A person's sessions that still live, the latest used first."""
    rows = WorkspaceSession.objects.for_workspace(workspace).filter(
        user_id=user_id, session__expire_date__gt=timezone.now()
    )
    return rows.order_by(SESSION_ORDER, "-id")


def last_seen_of(user_ids: Collection[UUID], workspace: Workspace) -> dict[UUID, datetime]:
    """When each of them last opened a page here, as far as living sessions tell."""
    rows = WorkspaceSession.objects.for_workspace(workspace).filter(user_id__in=user_ids)
    return dict(rows.order_by().values_list("user_id").annotate(Max("last_seen_at")))


def last_entered_of(user_ids: Collection[UUID], workspace_id: UUID) -> dict[UUID, datetime]:
    """When each of them last came with a session that was new here, as far as living sessions tell."""
    rows = WorkspaceSession.objects.for_workspace(workspace_id).filter(user_id__in=user_ids)
    return dict(rows.order_by().values_list("user_id").annotate(Max("created_at")))


def device(user_agent: str) -> str:
    """What a browser says of itself, in words."""
    browser = next((name for name, mark in _BROWSERS if re.search(mark, user_agent)), "")
    system = next((name for name, mark in _SYSTEMS if re.search(mark, user_agent)), "")
    if browser and system:
        return gettext("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or gettext("Unknown device")


@transaction.atomic
def end_sessions(
    *, membership: Membership, session_ids: Collection[UUID] | None = None, actor: Actor
) -> int:
    """Sign a person out of these sessions, or of all that were used here. Gives how many ended.

    Raises:
        PermissionDenied: they are somebody else's, and the actor may not manage members of that role.
    """
    if membership.user_id != actor.user_id:
        require(actor, Permission.MANAGE_MEMBERS, workspace_id=membership.workspace_id)
        require_not_above(actor, Role(membership.role))
    rows = WorkspaceSession.objects.for_workspace(membership.workspace_id).filter(
        user_id=membership.user_id
    )
    return _end(rows if session_ids is None else rows.filter(pk__in=session_ids), actor)


@transaction.atomic
def end_own_session(*, session_id: UUID, session_key: str | None, actor: Actor) -> int:
    """Sign oneself out of one of one's other browsers, as it was used in this workspace. Gives how many ended."""
    assert actor.workspace_id is not None
    assert actor.user_id is not None
    rows = WorkspaceSession.objects.for_workspace(actor.workspace_id)
    own = rows.filter(user_id=actor.user_id, pk=session_id).exclude(session_id=session_key)
    return _end(own, actor)


def _end(rows: WorkspaceQuerySet[WorkspaceSession], actor: Actor) -> int:
    ended = list(rows)
    for row in ended:
        record_deleted(row, actor=actor)
    if ended:
        delete_sessions(row.session_id for row in ended)
        for user_id in {row.user_id for row in ended}:
            end_access(user_id)
    return len(ended)


@transaction.atomic
def end_other_sessions(*, user: User, session: SessionBase, actor: Actor) -> int:
    """Sign a person out of all their browsers but this one. Gives how many of them were used in workspaces.

    Those that were used in none have no row. Like all others, they do not know of this moment. Each workspace has
    an entry of each session that was used in it, and the platform one of the moment.
    """
    person = User.objects.select_for_update().get(pk=user.pk)
    with tracked_change(person, actor=replace(actor, workspace_id=None, role=None)):
        person.others_signed_out_at = timezone.now()
        person.save(update_fields=["others_signed_out_at", "updated_at"])
    # Saved before the commit: open pages of this browser ask at once whether they may stay.
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    rows: WorkspaceQuerySet[WorkspaceSession] = WorkspaceSession.objects.across_workspaces()
    living = rows.filter(user=user, session__expire_date__gt=timezone.now())
    ended = list(living.exclude(session_id=session.session_key).select_related("user"))
    roles = dict(
        Membership.objects.across_workspaces()
        .filter(user=user, workspace_id__in={row.workspace_id for row in ended})
        .values_list("workspace_id", "role")
    )
    for row in ended:
        role = roles.get(row.workspace_id)
        there = replace(
            actor,
            workspace_id=row.workspace_id,
            role=Role(role) if role else None,
            is_auditor=False,
        )
        is_here = row.workspace_id == actor.workspace_id
        record_deleted(row, actor=actor if is_here else there)
    keys = {row.session_id for row in ended}
    delete_sessions(keys)
    end_access(user.pk)
    return len(keys)
