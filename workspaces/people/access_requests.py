"""Members ask for a server or a tool that they miss; administrators decide."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from workspaces.actors import Actor, Role
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.delivery.announcements import REQUEST_CHANGED, Announcement, announce
from workspaces.delivery.bell import tell
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.holding import hold, hold_workspace, take_room
from workspaces.models import (
    AccessRequest,
    Membership,
    RequestKind,
    RequestStatus,
    Workspace,
)
from workspaces.roles import Permission, has_permission, require
from workspaces.scoping import WorkspaceQuerySet
from workspaces.words.formats import whole

MOST_OPEN: Final = 20
"""Of one person."""
LONGEST_NAME: Final = 200
LONGEST_REASON: Final = 1000
LONGEST_NOTE: Final = 500
DECIDERS: Final = Q(role__in=[Role.OWNER.value, Role.ADMIN.value], user__is_active=True)
"""The memberships whose people decide about requests."""


def may_decide(actor: Actor, workspace: Workspace) -> bool:
    """Whether the actor decides about requests here."""
    return has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)


def requests_for(workspace: Workspace, actor: Actor) -> WorkspaceQuerySet[AccessRequest]:
    """The actor's own requests; for whoever decides, everybody's."""
    rows = AccessRequest.objects.for_workspace(workspace)
    return rows if may_decide(actor, workspace) else rows.filter(requester_id=actor.user_id)


def requests_to_decide(workspace_id: UUID, person_id: UUID) -> WorkspaceQuerySet[AccessRequest]:
    """What others ask for and this person decides about, the oldest first; nothing for other members."""
    theirs = Membership.objects.for_workspace(workspace_id).filter(DECIDERS, user=person_id)
    rows = AccessRequest.objects.for_workspace(workspace_id).filter(
        Exists(theirs), status=RequestStatus.OPEN
    )
    return rows.exclude(requester=person_id).order_by("created_at", "id")


def path_to_set_up(request: AccessRequest) -> str:
    """The page where what was asked for is looked for and set up."""
    slug = request.workspace.slug
    if request.kind == RequestKind.OTHER:
        return _page(request.workspace)
    name = "catalogue" if request.kind == RequestKind.SERVER else "servers"
    query = urlencode({"q": request.name})
    return f"{reverse(f'mcp_servers:{name}', args=[slug])}?{query}"


@transaction.atomic
def ask(
    *, workspace: Workspace, kind: RequestKind, name: str, reason: str, actor: Actor
) -> AccessRequest:
    """Ask for something; administrators see it in their bell and on the page of requests.

    Raises:
        PermissionDenied: the actor is no member.
        InvalidInput: with each faulty field.
        Conflict: the person asks for that already, or for too much.
    """
    require(actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    if actor.user_id is None:
        raise PermissionDenied(_("Only people can send requests."))
    name, reason = name.strip(), reason.strip()
    faults: dict[str, list[str]] = {}
    if not name:
        faults["name"] = [_("Say what you need.")]
    elif len(name) > LONGEST_NAME:
        faults["name"] = [_("Write at most %(most)s characters.") % {"most": LONGEST_NAME}]
    if not reason:
        faults["reason"] = [_("Say what you need it for.")]
    elif len(reason) > LONGEST_REASON:
        faults["reason"] = [
            _("Write at most %(most)s characters.") % {"most": whole(LONGEST_REASON)}
        ]
    if faults:
        raise InvalidInput(fields=faults)
    hold_workspace(workspace.pk)  # a button that is pressed twice asks once
    own = AccessRequest.objects.for_workspace(workspace).filter(
        requester_id=actor.user_id, status=RequestStatus.OPEN
    )
    if own.filter(kind=kind, name__iexact=name).exists():
        raise Conflict(_("You have asked for this already. It waits for an administrator."))
    message = _("You have %(most)s requests waiting. Wait for an answer, or withdraw one.")
    take_room(
        own,
        most=MOST_OPEN,
        refusal=Conflict(message % {"most": MOST_OPEN}),
        workspace_id=workspace.pk,
    )
    row = AccessRequest.objects.create(
        workspace=workspace, requester_id=actor.user_id, kind=kind, name=name, reason=reason
    )
    record_created(row, actor=actor)
    deciders = Membership.objects.for_workspace(workspace).filter(DECIDERS)
    others = deciders.exclude(user_id=actor.user_id)
    tell(
        workspace_id=workspace.pk,
        user_ids=list(others.values_list("user_id", flat=True)),
        kind="request.made",
        title=f"{actor.label} asks for {name}",
        text=reason,
        url=_page(workspace),
    )
    _announce(row)
    return row


@transaction.atomic
def decide_request(
    *, request: AccessRequest, is_granted: bool, note: str, actor: Actor
) -> AccessRequest:
    """Say yes or no, with a note; the person is told. What was asked for is set up elsewhere.

    Raises:
        PermissionDenied: the actor does not manage servers.
        NotFound: it was withdrawn.
        Conflict: it was decided already.
        InvalidInput: the note is too long.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=request.workspace_id)
    note = note.strip()
    if len(note) > LONGEST_NOTE:
        raise InvalidInput(
            fields={"note": [_("Write at most %(most)s characters.") % {"most": LONGEST_NOTE}]}
        )
    rows = AccessRequest.objects.for_workspace(request.workspace_id).select_for_update(of=("self",))
    row: AccessRequest = rows.select_related("workspace").fetch(request.pk)
    if row.status != RequestStatus.OPEN:
        raise Conflict(_("This request was decided already."))
    with tracked_change(row, actor=actor):
        row.status = RequestStatus.GRANTED if is_granted else RequestStatus.DECLINED
        row.decided_by_id = actor.user_id
        row.decided_at = timezone.now()
        row.note = note
        row.save(update_fields=["status", "decided_by", "decided_at", "note", "updated_at"])
    verb = "granted" if is_granted else "declined"
    tell(
        workspace_id=row.workspace_id,
        user_ids=[row.requester_id],
        kind=f"request.{verb}",
        title=f"Your request for {row.name} was {verb}",
        text=note,
        url=_page(row.workspace),
    )
    _announce(row)
    return row


@transaction.atomic
def withdraw_request(*, request: AccessRequest, actor: Actor) -> None:
    """Take one's own request back.

    Raises:
        PermissionDenied: it is somebody else's.
        NotFound: it was withdrawn before.
        Conflict: it was decided already.
    """
    if request.requester_id != actor.user_id:
        raise PermissionDenied(_("Only the person who asked can withdraw a request."))
    hold(request, fields=["status"])
    if request.status != RequestStatus.OPEN:
        raise Conflict(_("This request was decided already."))
    record_deleted(request, actor=actor)
    _announce(request)
    request.delete()


def _announce(row: AccessRequest) -> None:
    announce(row.workspace_id, Announcement(kind=REQUEST_CHANGED, id=str(row.pk)))


def _page(workspace: Workspace) -> str:
    return reverse("workspaces:requests", args=[workspace.slug])
