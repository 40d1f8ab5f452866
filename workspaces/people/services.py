"""What people do with workspaces and with each other: one verb each."""

from __future__ import annotations

import hashlib
import logging
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from workspaces.actors import Actor, Role
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.database.row_security import in_workspace
from workspaces.delivery.announcements import Announcement, announce
from workspaces.delivery.bell import tell
from workspaces.delivery.mails import compose
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.holding import hold, hold_workspace
from workspaces.models import ROLE_CHOICES, Invitation, Membership, User, Workspace
from workspaces.people.email_addresses import confirm_address
from workspaces.people.memberships import is_member, is_suspended
from workspaces.people.sessions import end_access
from workspaces.roles import Permission, permissions_of_role, require
from workspaces.secret_memory import remember_secret
from workspaces.words.mail_addresses import is_mail_address, typed_address

if TYPE_CHECKING:
    from workspaces.words.texts import Text

logger = logging.getLogger(__name__)
_STRENGTH = {Role.MEMBER: 0, Role.ADMIN: 1, Role.OWNER: 2}
INVITATION_LIFE = timedelta(days=7)


def create_workspace(*, name: str, slug: str, owner: User, actor: Actor) -> Workspace:
    """Make a workspace with its first owner."""
    workspace = Workspace(name=name, slug=slug)
    with transaction.atomic(), in_workspace(workspace.pk):
        try:
            workspace.full_clean()
        except ValidationError as error:
            raise InvalidInput(fields=error.message_dict) from error
        workspace.save()
        record_created(workspace, actor=actor)
        membership = Membership.objects.create(
            workspace=workspace, user=owner, role=Role.OWNER.value
        )
        record_created(membership, actor=actor)
    return workspace


def make_invitation(
    *, workspace: Workspace, email: str, role: Role, is_auditor: bool, actor: Actor
) -> tuple[Invitation, str]:
    """Store the offer of a membership; its mail is `mail_invitation`'s, once this is committed.

    Returns:
        The invitation and its link's plain token. The inviter may see the link only if `is_link_shown`, that is where
        no mail server is configured.

    Raises:
        PermissionDenied: the role is above the inviter's own.
        InvalidInput: no e-mail address.
        Conflict: already a member.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk)
    require_not_above(actor, role)
    _require_owner_for_auditor(actor, is_change=is_auditor)
    email = typed_address(email)
    if not is_mail_address(email):
        fault = _("“%(email)s” is not an e-mail address.") % {"email": email[:100]}
        raise InvalidInput(fields={"email": [fault]})
    token = secrets.token_urlsafe(32)
    remember_secret(token, workspace_id=workspace.pk)
    with transaction.atomic():
        hold_workspace(workspace.pk)  # two who invite the same person would both leave a link open
        members = Membership.objects.also_suspended(workspace)
        if members.filter(user__email__iexact=email).exists():
            raise Conflict(_("This person is already a member."))
        Invitation.objects.for_workspace(workspace).filter(
            email__iexact=email, accepted_at=None, revoked_at=None
        ).update(revoked_at=timezone.now())
        invitation = Invitation.objects.create(
            workspace=workspace,
            email=email,
            role=role.value,
            is_auditor=is_auditor,
            token_hash=_hash(token),
            is_link_shown=settings.TRELLIS.email_host is None,
            invited_by_id=actor.user_id,
            expires_at=timezone.now() + INVITATION_LIFE,
        )
        record_created(invitation, actor=actor)
    return invitation, token


def mail_invitation(*, invitation: Invitation, link: str, actor: Actor) -> None:
    """Send an invitation's link; one that cannot be sent is revoked.

    Raises:
        Conflict: the mail server did not take it.
    """
    context = {
        "workspace": invitation.workspace,
        "inviter": actor.label,
        "role": invitation.get_role_display(),
        "link": link,
        "days": INVITATION_LIFE.days,
    }
    try:
        compose(
            subject=_("Join %(workspace)s on Trellis") % {"workspace": invitation.workspace.name},
            text=render_to_string("workspaces/email/invitation.txt", context),
            to=[invitation.email],
        ).send()
    except OSError as error:  # SMTP's errors are some of these
        logger.warning("invitation_mail_failed", exc_info=True)
        revoke_invitation(invitation=invitation, actor=actor)
        raise Conflict(
            _("The mail server did not take the invitation. Try again later.")
        ) from error


class WorkspaceSuspended(NotFound):
    """An invitation or a join link is good, and works again when its workspace is opened."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        super().__init__(_("The workspace %(name)s is suspended.") % {"name": workspace.name})


def find_invitation(token: str) -> Invitation:
    """The open invitation behind a link.

    Raises:
        NotFound: unknown, used, revoked or expired, or its sender may not invite so any more; which of them is not said.
        WorkspaceSuspended: it is good, and nobody can enter its workspace now.
    """
    invitation = (
        Invitation.objects.across_workspaces()
        .select_related("workspace", "invited_by")
        .filter(token_hash=_hash(token))
        .first()
    )
    if invitation is not None and invitation.is_open:
        with in_workspace(invitation.workspace_id):
            if _is_backed(invitation):
                if not invitation.workspace.is_active:
                    raise WorkspaceSuspended(invitation.workspace)
                return invitation
    raise NotFound(_("This invitation is no longer valid. Ask for a new one."))


def joined_by_invitation(token: str, user: User) -> Workspace | None:
    """The workspace that an invitation of this person was for, however it ended, if they are a member of it now."""
    rows = Invitation.objects.across_workspaces().select_related("workspace")
    found = rows.filter(token_hash=_hash(token), email__iexact=user.email).first()
    if found is None or not is_member(found.workspace_id, user.pk):
        return None
    return found.workspace


@transaction.atomic
def accept_invitation(*, token: str, user: User, actor: Actor) -> Membership:
    """Turn an invitation into a membership, once, for the person it was sent to.

    Raises:
        NotFound: it is not open; PermissionDenied: it was sent to somebody else.
    """
    found = find_invitation(token)
    if found.email.lower() != user.email.lower():
        raise PermissionDenied(_("This invitation was sent to another e-mail address."))
    with in_workspace(found.workspace_id):
        taken = (
            Invitation.objects.for_workspace(found.workspace_id)
            .filter(pk=found.pk, accepted_at=None, revoked_at=None)
            .update(accepted_at=timezone.now())
        )
        if not taken:
            raise NotFound(_("This invitation is no longer valid. Ask for a new one."))
        membership: Membership
        membership, created = Membership.unscoped.get_or_create(
            workspace_id=found.workspace_id,
            user=user,
            defaults={"role": found.role, "is_auditor": found.is_auditor},
        )
        if created:
            record_created(membership, actor=actor)
        if not found.is_link_shown:
            confirm_address(user)
        return membership


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, actor: Actor) -> Invitation:
    """Make an open invitation's link useless.

    Raises:
        PermissionDenied: the actor may not manage members.
        Conflict: it was accepted, or is revoked already.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=invitation.workspace_id)
    hold(invitation, fields=["accepted_at", "revoked_at"])
    if invitation.accepted_at is not None:
        raise Conflict(_("This invitation was accepted already."))
    if invitation.revoked_at is not None:
        raise Conflict(_("This invitation is revoked already."))
    with tracked_change(invitation, actor=actor):
        invitation.revoked_at = timezone.now()
        invitation.save(update_fields=["revoked_at", "updated_at"])
    return invitation


@transaction.atomic
def change_membership(
    *,
    membership: Membership,
    role: Role | None = None,
    is_auditor: bool | None = None,
    actor: Actor,
) -> Membership:
    """Give a member another role or the auditor right; None leaves it as it is.

    Raises:
        NotFound: they are no member any more.
        PermissionDenied: either role is above the actor's own.
        Conflict: the workspace would be left without an owner.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=membership.workspace_id)
    hold_membership(membership)
    role = Role(membership.role) if role is None else role
    is_auditor = membership.is_auditor if is_auditor is None else is_auditor
    require_not_above(actor, Role(membership.role))
    require_not_above(actor, role)
    _require_owner_for_auditor(actor, is_change=is_auditor != membership.is_auditor)
    if role is not Role.OWNER:
        keep_an_owner(membership)
    before, could_audit = membership.get_role_display(), membership.is_auditor
    with tracked_change(membership, actor=actor):
        membership.role = role.value
        membership.is_auditor = is_auditor
        membership.save(update_fields=["role", "is_auditor", "updated_at"])
    end_access(membership.user_id, membership.workspace_id)
    if (before, could_audit) != (membership.get_role_display(), is_auditor):
        _tell_of_rights(membership, before=before, could_audit=could_audit, actor=actor)
    return membership


def _tell_of_rights(
    membership: Membership, *, before: str, could_audit: bool, actor: Actor
) -> None:
    """Tell a member what changed for them, and their open pages that it did."""
    workspace, role = membership.workspace, membership.get_role_display()
    values = {"role": role, "before": before, "name": workspace.name, "person": actor.label}
    if role == before:
        title = _("Your rights in %(name)s have changed") % values
        sentences = [_("%(person)s changed them.") % values]
    else:
        title = _("You are %(role)s of %(name)s now") % values
        sentences = [_("%(person)s changed your role from %(before)s to %(role)s.") % values]
    if membership.is_auditor and not could_audit:
        sentences.append(
            _("You may now read arguments and results in the audit log, and export it.")
        )
    elif could_audit and not membership.is_auditor:
        sentences.append(
            _("You may no longer read arguments and results in the audit log, or export it.")
        )
    if actor.user_id != membership.user_id:
        tell(
            workspace_id=workspace.pk,
            user_ids=[membership.user_id],
            kind="role",
            title=title,
            text=" ".join(sentences),
            url=reverse("chat:home", args=[workspace.slug]),
        )
    announce(
        workspace.pk,
        Announcement(
            kind="membership.changed", id=str(membership.pk), user_id=str(membership.user_id)
        ),
    )


@transaction.atomic
def remove_member(*, membership: Membership, actor: Actor) -> None:
    """End a membership; what the person made stays.

    Raises:
        NotFound, PermissionDenied, Conflict: as in `change_membership`.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=membership.workspace_id)
    hold_membership(membership)
    require_not_above(actor, Role(membership.role))
    _end_membership(membership, actor=actor)


@transaction.atomic
def leave_workspace(*, workspace: Workspace, actor: Actor) -> None:
    """End the actor's own membership; those who look after members are told.

    Raises:
        NotFound: they are no member.
        Conflict: the workspace would be left without an owner.
    """
    rows = Membership.objects.for_workspace(workspace)
    membership = rows.filter(user_id=actor.user_id).first() if actor.user_id else None
    if membership is None:
        raise NotFound(_("You are no member of this workspace."))
    hold_membership(membership)
    _end_membership(membership, actor=actor)
    staff = rows.filter(role__in=[Role.OWNER.value, Role.ADMIN.value], user__is_active=True)
    tell(
        workspace_id=workspace.pk,
        user_ids=list(staff.values_list("user_id", flat=True)),
        kind="member.left",
        title=_("%(person)s has left %(name)s") % {"person": actor.label, "name": workspace.name},
        text=_("What they made stays."),
        url=reverse("workspaces:members", args=[workspace.slug]),
    )


def _end_membership(membership: Membership, *, actor: Actor) -> None:
    keep_an_owner(membership)
    record_deleted(membership, actor=actor)
    user_id, workspace_id = membership.user_id, membership.workspace_id
    membership.delete()
    end_access(user_id, workspace_id)


def _require_owner_for_auditor(actor: Actor, *, is_change: bool) -> None:
    """Who may read bodies is the owner's word: an admin must not give that right to themselves."""
    if is_change and not may_choose_auditors(actor):
        raise PermissionDenied(_("Only an owner can decide who is an auditor."))


def may_choose_auditors(actor: Actor) -> bool:
    """Whether the actor decides who is an auditor."""
    return actor.is_superuser or actor.role in (Role.OWNER, None)


def may_invite_as(actor: Actor, role: Role, *, is_auditor: bool) -> bool:
    """Whether the actor, who may invite, may invite for this role and right."""
    return not is_above(actor, role) and (not is_auditor or may_choose_auditors(actor))


def is_above(actor: Actor, role: Role) -> bool:
    """Whether the role is stronger than the actor's own."""
    if actor.is_superuser or actor.role is None:
        return False
    return _STRENGTH[role] > _STRENGTH[actor.role]


def roles_to_give(actor: Actor) -> list[tuple[str, Text]]:
    """Those that the actor may give somebody, each with what people call it."""
    return [(value, label) for value, label in ROLE_CHOICES if not is_above(actor, Role(value))]


def require_not_above(actor: Actor, role: Role) -> None:
    """Raise PermissionDenied where the role is stronger than the actor's own."""
    if is_above(actor, role):
        raise PermissionDenied(_("That role is above your own."))


def hold_membership(membership: Membership) -> None:
    """In a transaction: wait for whoever is changing a membership, and read what they made of it.

    Owners of one workspace change one after another, so that two do not end each other.

    Raises:
        NotFound: the person is no member any more.
    """
    fields = ["role", "is_auditor", "suspended_at", "suspension_reason"]
    hold(membership, fields=fields)
    if membership.role == Role.OWNER.value:
        hold_workspace(membership.workspace_id)


def keep_an_owner(membership: Membership) -> None:
    """Raise Conflict where the workspace would be left without an owner who can act. The membership is held."""
    if membership.role != Role.OWNER.value:
        return
    owners = Membership.objects.for_workspace(membership.workspace_id).filter(
        role=Role.OWNER.value, user__is_active=True
    )
    if not owners.exclude(pk=membership.pk).exists():
        raise Conflict(_("A workspace needs an owner. Make someone else an owner first."))


def _is_backed(invitation: Invitation) -> bool:
    """Whether its sender could still send it: who has lost a role does not come back to it by an invitation."""
    sender = invitation.invited_by
    if sender is None:  # sent by a command, or by somebody whose account is gone
        return True
    if sender.is_superuser and sender.is_active:
        return not is_suspended(invitation.workspace_id, sender.pk)
    rows = Membership.objects.for_workspace(invitation.workspace_id)
    role = rows.filter(user=sender, user__is_active=True).values_list("role", flat=True).first()
    if role is None or Permission.MANAGE_MEMBERS not in permissions_of_role(role):
        return False
    may_choose = role == Role.OWNER.value or not invitation.is_auditor
    return may_choose and _STRENGTH[Role(role)] >= _STRENGTH[Role(invitation.role)]


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
