"""Which workspaces a person may enter, and what keeps them out of the others that are theirs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Q
from django.utils.translation import gettext as _

from workspaces.actors import Actor
from workspaces.errors import Conflict
from workspaces.models import Membership, MembershipQuerySet, User, Workspace, WorkspaceQuery
from workspaces.people.identity_provider import (
    identity_provider,
    people_of,
    provider_instead_of_password,
)


def has_second_step(user: User) -> bool:
    """Whether a password alone does not let them in. Whoever has to use the identity provider is asked there."""
    return user.has_two_steps or provider_instead_of_password(user) is not None


def lacks_second_step(user: User, workspace: Workspace) -> bool:
    """Whether the workspace asks its people for two-step verification, and this person has none."""
    return workspace.requires_two_steps and not has_second_step(user)


def members_without_second_step(workspace: Workspace) -> MembershipQuerySet:
    """Those whom the workspace keeps out, or would keep out if it required two-step verification."""
    rows = Membership.objects.for_workspace(workspace).filter(
        user__is_active=True, user__has_two_steps=False
    )
    provider = identity_provider()
    if provider is None or not provider.is_required:
        return rows
    return rows.exclude(people_of(provider, path="user__"))


def workspaces_requiring_two_steps(user: User) -> list[str]:
    """The names of those of the person's workspaces that require two-step verification of them."""
    if provider_instead_of_password(user) is not None:
        return []
    rows = Workspace.objects.joined_by(user).filter(requires_two_steps=True)
    return list(rows.values_list("name", flat=True))


def require_second_step(actor: Actor) -> None:
    """Have whoever changes what workspaces ask for use two-step verification. Commands of the machine need none.

    Raises:
        Conflict: the actor's own account has none.
    """
    user = User.objects.filter(pk=actor.user_id).first() if actor.user_id else None
    if user is not None and not has_second_step(user):
        raise Conflict(
            _(
                "Only people with two-step verification can change whether a workspace requires it. Turn it on for"
                " your own account first, under Settings."
            )
        )


def open_workspaces(user: User) -> WorkspaceQuery:
    """The active workspaces that this person may enter as a member, by name."""
    return _open_to(user, Workspace.objects.joined_by(user))


def enterable_workspaces(user: User) -> WorkspaceQuery:
    """The workspaces that a person may enter: as a member; the owner of the platform, every active one."""
    return _open_to(user, listed_workspaces(user))


def listed_workspaces(user: User) -> WorkspaceQuery:
    """What menus name, by name: also those that require two-step verification of a person who has none."""
    if user.is_superuser:
        return Workspace.objects.filter(is_active=True).order_by("name", "pk")
    return Workspace.objects.joined_by(user)


def _open_to(user: User, rows: WorkspaceQuery) -> WorkspaceQuery:
    return rows if has_second_step(user) else rows.filter(requires_two_steps=False)


class ShutOutReason(StrEnum):
    """Why somebody may not enter a workspace that is theirs."""

    WORKSPACE_SUSPENDED = "workspace_suspended"
    SUSPENDED = "suspended"
    NO_SECOND_STEP = "no_second_step"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutOut:
    """A person before a workspace that they may not enter now."""

    workspace: Workspace
    reason: ShutOutReason
    message: str = ""
    """What an administrator wrote when they suspended the person."""

    @property
    def words(self) -> str:
        """What keeps them out."""
        name = {"name": self.workspace.name}
        match self.reason:
            case ShutOutReason.WORKSPACE_SUSPENDED:
                return _("The workspace %(name)s is suspended.") % name
            case ShutOutReason.SUSPENDED:
                return _("Your access to %(name)s is suspended.") % name
            case ShutOutReason.NO_SECOND_STEP:
                return _("The workspace %(name)s requires two-step verification.") % name

    @property
    def remedy(self) -> str:
        """What the person can do."""
        match self.reason:
            case ShutOutReason.WORKSPACE_SUSPENDED:
                return _("Ask the people who run this installation of Trellis.")
            case ShutOutReason.SUSPENDED:
                return _("Ask an administrator of the workspace.")
            case ShutOutReason.NO_SECOND_STEP:
                return _("Turn it on in your settings in Trellis, then try again.")


def find_shut_out(user: User, *, slug: str | None) -> ShutOut | None:
    """What keeps the person out of that workspace, or out of any of theirs if none is named.

    Strangers learn nothing. The owner of the platform is told of every workspace.
    """
    closed = Q(suspended_at__isnull=False) | Q(workspace__is_active=False)
    if not has_second_step(user):
        closed |= Q(workspace__requires_two_steps=True)
    rows = Membership.unscoped.filter(closed, user=user).select_related("workspace")
    found = list(rows if slug is None else rows.filter(workspace__slug=slug))
    if not found and user.is_superuser:
        others = Workspace.objects.filter(**({} if slug is None else {"slug": slug}))
        shut = [one for one in others[:1] if not one.is_active or lacks_second_step(user, one)]
        found = [Membership(user=user, workspace=one) for one in shut]
    # What they can mend themselves comes first.
    return min(map(_reason_of, found), key=lambda one: _ORDER.index(one.reason), default=None)


_ORDER = (
    ShutOutReason.NO_SECOND_STEP,
    ShutOutReason.SUSPENDED,
    ShutOutReason.WORKSPACE_SUSPENDED,
)


def _reason_of(closed: Membership) -> ShutOut:
    reason = ShutOutReason.NO_SECOND_STEP
    if not closed.workspace.is_active:
        reason = ShutOutReason.WORKSPACE_SUSPENDED
    elif closed.suspended_at is not None:
        reason = ShutOutReason.SUSPENDED
    return ShutOut(workspace=closed.workspace, reason=reason, message=closed.suspension_reason)
