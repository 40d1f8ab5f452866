"""The pages about members: all of them, and one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from workspaces.actors import Role
from workspaces.errors import DomainError, InvalidInput
from workspaces.lists.row_pages import (
    PageLinks,
    first_page_instead,
    page_faults,
    page_in_address,
    ways_from,
)
from workspaces.models import ROLE_CHOICES, ApiToken, Membership
from workspaces.pages.parts import id_of, picture_response, workspace_of
from workspaces.pages.seen_values import hold, saves_one_at_a_time
from workspaces.people import access
from workspaces.people.browser_sessions import (
    SESSION_ORDER,
    device,
    end_sessions,
    last_seen_of,
    sessions_of,
)
from workspaces.people.entering import members_without_second_step
from workspaces.people.ownership import transfer_ownership
from workspaces.people.pictures import picture_of_member
from workspaces.people.services import (
    change_membership,
    is_above,
    may_choose_auditors,
    remove_member,
    roles_to_give,
)
from workspaces.people.suspending import LONGEST_REASON, resume_member, suspend_member
from workspaces.roles import Permission, has_permission, permissions_of_role
from workspaces.words.text_values import unknown_filters

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_SESSIONS_AFTER = "sessions_after"
_TOKENS_AFTER = "tokens_after"


def _fetch(request: WorkspaceRequest, membership_id: UUID) -> Membership:
    rows = Membership.objects.also_suspended(workspace_of(request, Permission.MANAGE_MEMBERS))
    return rows.select_related("user", "workspace").fetch(membership_id)


@require_safe
@login_required
def members(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Everybody in the workspace, page by page."""
    workspace = workspace_of(request, Permission.MANAGE_MEMBERS)
    query = request.GET.get("q", "").replace("\x00", "").strip()[:100]
    rows = Membership.objects.also_suspended(workspace).select_related("user")
    if query:
        rows = rows.filter(Q(user__email__icontains=query) | Q(user__name__icontains=query))
    kept_out = members_without_second_step(workspace)
    only_kept_out = request.GET.get("two_steps") == "off"
    if only_kept_out:
        rows = rows.filter(pk__in=kept_out.values("pk"))
    known = {"q", "after", *(["two_steps"] if only_kept_out else [])}
    fault = next(iter(unknown_filters(request.GET, known)), "")
    page = page_in_address(rows, request.GET, by="user__email")
    seen = last_seen_of([one.user_id for one in page.rows], workspace)
    shown_as_kept_out: set[UUID] = set()
    if only_kept_out or workspace.requires_two_steps:
        here = kept_out.filter(pk__in=[one.pk for one in page.rows])
        shown_as_kept_out.update(here.values_list("pk", flat=True))
    context: dict[str, Any] = {
        "section": "people",
        "tab": "members",
        "query": query,
        "fault": fault,
        "only_kept_out": only_kept_out,
        "may_set_rules": has_permission(
            request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk
        ),
        "kept_out": shown_as_kept_out,
        "members": [(one, seen.get(one.user_id)) for one in page.rows],
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
    }
    return render(request, "workspaces/members.html", context)


@require_safe
@login_required
def picture(request: WorkspaceRequest, workspace_slug: str, user_id: UUID) -> HttpResponse:
    """The picture of somebody in the workspace, for everybody in it."""
    return picture_response(picture_of_member(workspace_of(request), user_id))


@require_safe
@login_required
def member(request: WorkspaceRequest, workspace_slug: str, membership_id: UUID) -> HttpResponse:
    """One person: role, access, and page by page their sessions and tokens."""
    membership = _fetch(request, membership_id)
    return _show(request, membership)


@require_POST
@login_required
@saves_one_at_a_time
def change_member(
    request: WorkspaceRequest, workspace_slug: str, membership_id: UUID, verb: str
) -> HttpResponse:
    """What a button of a person's page says."""
    membership = _fetch(request, membership_id)
    person, actor = membership.user.display_name, request.actor
    try:
        if verb == "role":
            role = request.POST.get("role", "")
            if role not in dict(ROLE_CHOICES):
                raise InvalidInput(fields={"role": [_("Choose one of the roles.")]})
            hold(request, membership)
            _check_seen(request, membership)
            change_membership(
                membership=membership,
                role=Role(role),
                is_auditor="is_auditor" in request.POST,
                actor=actor,
            )
            if _has_given_up(request, membership):
                messages.success(request, _("Saved. You are a member of this workspace now."))
                return redirect("chat:home", workspace_slug=workspace_slug)
            message = _("Saved.")
        elif verb == "suspend":
            reason = request.POST.get("reason", "").replace("\x00", "")
            suspend_member(membership=membership, reason=reason, actor=actor)
            message = _("%(name)s is suspended. Nothing of theirs was deleted.")
        elif verb == "resume":
            resume_member(membership=membership, actor=actor)
            message = _("%(name)s may enter again.")
        elif verb == "make-owner":
            typed = request.POST.get("confirmation", "").replace("\x00", "")
            transfer_ownership(to=membership, typed=typed, actor=actor)
            message = _("%(name)s owns the workspace now. You are an administrator.")
        elif verb == "sign-out":
            chosen = request.POST.get("session")
            number = end_sessions(
                membership=membership,
                session_ids=[id_of(chosen)] if chosen else None,
                actor=actor,
            )
            message = (
                _("%(name)s is signed out.") if number else _("There was nothing to sign out of.")
            )
        elif verb == "remove":
            remove_member(membership=membership, actor=actor)
            messages.success(request, _("%(name)s is no longer a member.") % {"name": person})
            return redirect("workspaces:members", workspace_slug=workspace_slug)
        else:
            raise Http404
    except InvalidInput as error:
        return _show(request, _fetch(request, membership_id), faults=error.fields)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, message % {"name": person})
    return redirect("workspaces:member", workspace_slug=workspace_slug, membership_id=membership_id)


def _has_given_up(request: WorkspaceRequest, membership: Membership) -> bool:
    """Whether somebody has taken from themselves what the page is for."""
    actor = request.actor
    is_own = membership.user_id == actor.user_id and not actor.is_superuser
    return is_own and Permission.MANAGE_MEMBERS not in permissions_of_role(membership.role)


def _without_them(faults: list[str]) -> list[str]:
    """What is wrong with an address, and what is shown all the same."""
    return [f"{fault} {_('The list is shown without it.')}" for fault in faults]


def rights_of(membership: Membership) -> str:
    """What the form of a person's role begins with."""
    return f"{membership.role} {membership.is_auditor}"


@require_safe
@login_required
def member_access(
    request: WorkspaceRequest, workspace_slug: str, membership_id: UUID
) -> HttpResponse:
    """All that one person may use, page by page."""
    membership = _fetch(request, membership_id)
    faults = unknown_filters(request.GET, {"kind", "after"})
    kind: str | None = request.GET.get("kind", "")
    if kind not in access.KINDS:
        faults += [_("There is no kind “%(kind)s”.") % {"kind": kind[:50]}] if kind else []
        kind = None
    faults = _without_them(faults)
    after = None
    try:
        after = access.AccessCursor.read(request.GET["after"]) if request.GET.get("after") else None
    except InvalidInput:
        faults.append(first_page_instead())
    page = access.access_page(membership, kind=kind, after=after)
    following = {"kind": kind} if kind else {}
    context: dict[str, Any] = {
        "section": "people",
        "one": membership,
        "kind": kind,
        "kinds": access.KINDS.items(),
        "rows": page.rows,
        "faults": faults,
        "ways": PageLinks(
            first=f"?{urlencode(following)}" if after is not None else "",
            following=f"?{urlencode({**following, 'after': str(page.following)})}"
            if page.following
            else "",
        ),
    }
    return render(request, "workspaces/member_access.html", context)


def _check_seen(request: WorkspaceRequest, membership: Membership) -> None:
    """Refuse to replace what somebody else has changed since the page was opened."""
    seen = request.POST.get("seen", "")
    if seen and seen != rights_of(membership):
        message = _(
            "Somebody else changed this while you had the form open. Look, then save again."
        )
        raise InvalidInput(fields={"role": [message]})


def _show(
    request: WorkspaceRequest,
    membership: Membership,
    *,
    faults: dict[str, list[str]] | None = None,
) -> HttpResponse:
    actor = request.actor
    asked = request.GET
    sessions = page_in_address(
        sessions_of(membership.user_id, membership.workspace),
        asked,
        _SESSIONS_AFTER,
        by=SESSION_ORDER,
        most=access.MOST_OF_KIND,
    )
    rows = ApiToken.objects.for_workspace(membership.workspace_id).filter(user=membership.user)
    tokens = page_in_address(rows, asked, _TOKENS_AFTER, by="name", most=access.MOST_OF_KIND)
    path = reverse("workspaces:member", args=[membership.workspace.slug, membership.pk])
    address_faults = _without_them(unknown_filters(asked, {_SESSIONS_AFTER, _TOKENS_AFTER}))
    address_faults += page_faults(sessions, tokens)
    context: dict[str, Any] = {
        "section": "people",
        "one": membership,
        "person": membership.user,
        "roles": roles_to_give(actor),
        "may_change": not is_above(actor, Role(membership.role)),
        "may_choose_auditors": may_choose_auditors(actor),
        "seen": rights_of(membership),
        "longest_reason": LONGEST_REASON,
        "faults": faults or {},
        "access": access.access_groups(membership),
        "most_of_kind": access.MOST_OF_KIND,
        "address_faults": address_faults,
        "sessions": [(row, device(row.user_agent)) for row in sessions.rows],
        "session_ways": ways_from(
            sessions, asked, _SESSIONS_AFTER, path=path, anchor="#sessions-heading"
        ),
        "tokens": tokens.rows,
        "token_ways": ways_from(tokens, asked, _TOKENS_AFTER, path=path, anchor="#tokens-heading"),
        "is_self": membership.user_id == actor.user_id,
        "can_hand_over": actor.role is Role.OWNER and membership.role != Role.OWNER.value,
    }
    return render(request, "workspaces/member.html", context, status=422 if faults else 200)
