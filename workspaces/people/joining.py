"""Join links: everybody with a confirmed address of one mail domain may come in, so many times, until a day."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from workspaces.actors import Actor, Role
from workspaces.changes import record_created, tracked_change
from workspaces.database.row_security import in_workspace
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.models import JoinLink, Membership, User, Workspace
from workspaces.people.memberships import is_member
from workspaces.people.public_mail import is_public_mail, mail_domain
from workspaces.people.services import WorkspaceSuspended, require_not_above
from workspaces.roles import Permission, permissions_of_role, require
from workspaces.secret_memory import remember_secret
from workspaces.words.formats import whole
from workspaces.words.mail_addresses import is_mail_address

MOST_USES: Final = 1000
MOST_DAYS: Final = 90
ROLES: Final = (Role.MEMBER, Role.ADMIN)


class PublicEmailDomain(InvalidInput):
    """Anybody can get an address at this domain, and nobody has said that this is meant."""


@transaction.atomic
def make_join_link(
    *,
    workspace: Workspace,
    email_domain: str,
    role: Role,
    days: int,
    most_uses: int,
    actor: Actor,
    lets_in_anybody: bool = False,
) -> tuple[JoinLink, str]:
    """Make a link; returns its row and its plain token, which is never to be had again.

    Args:
        lets_in_anybody: it is meant that everybody who has the link may join, as it is for domains of public mail services.

    Raises:
        PermissionDenied: the actor may not invite, or not for this role.
        InvalidInput: with each faulty field.
        PublicEmailDomain: the domain is of a public mail service.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk)
    require_not_above(actor, role)
    domain = mail_domain(email_domain)
    faults: dict[str, list[str]] = {}
    if not is_mail_address(f"somebody@{domain}"):
        faults["email_domain"] = [_("Write a mail domain, such as example.org.")]
    if role not in ROLES:
        faults["role"] = [
            _("A link can only invite members or administrators. Make owners one by one.")
        ]
    if not 1 <= days <= MOST_DAYS:
        faults["days"] = [_("Choose between 1 and %(most)s days.") % {"most": MOST_DAYS}]
    if not 1 <= most_uses <= MOST_USES:
        faults["most_uses"] = [
            _("Choose between 1 and %(most)s people.") % {"most": whole(MOST_USES)}
        ]
    if faults:
        raise InvalidInput(fields=faults)
    if is_public_mail(domain) and not lets_in_anybody:
        message = _(
            "Anybody can get an address at %(domain)s, so everybody who gets hold of this link could join. Use a domain"
            " that only your people have, or confirm that you mean it."
        )
        raise PublicEmailDomain(fields={"email_domain": [message % {"domain": domain}]})
    token = secrets.token_urlsafe(32)
    remember_secret(token, workspace_id=workspace.pk)
    link = JoinLink.objects.create(
        workspace=workspace,
        email_domain=domain,
        role=role.value,
        token_hash=_hash(token),
        hint=token[:6],
        most_uses=most_uses,
        made_by_id=actor.user_id,
        expires_at=timezone.now() + timedelta(days=days),
    )
    record_created(link, actor=actor)
    return link, token


@transaction.atomic
def revoke_join_link(*, link: JoinLink, actor: Actor) -> None:
    """Let nobody in by it any more; whoever came by it stays.

    Raises:
        PermissionDenied: the actor may not manage members.
        Conflict: it is revoked already.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=link.workspace_id)
    if link.revoked_at is not None:
        raise Conflict(_("This link is revoked already."))
    with tracked_change(link, actor=actor):
        link.revoked_at = timezone.now()
        link.save(update_fields=["revoked_at", "updated_at"])


def find_join_link(token: str) -> JoinLink:
    """The open link with that token.

    Raises:
        NotFound: unknown, used up, revoked, expired, or its maker may not invite any more; which is not said.
        WorkspaceSuspended: it is good, and nobody can enter its workspace now.
    """
    rows = JoinLink.objects.across_workspaces().select_related("workspace", "made_by")
    link = rows.filter(token_hash=_hash(token)).first()
    if link is not None and link.is_open:
        with in_workspace(link.workspace_id):
            if _is_backed(link):
                if not link.workspace.is_active:
                    raise WorkspaceSuspended(link.workspace)
                return link
    raise NotFound(_("This link no longer works. Ask for a new one."))


def joined_by_link(token: str, user: User) -> Workspace | None:
    """The workspace that a join link was for, however it ended, if this person is a member of it."""
    rows = JoinLink.objects.across_workspaces().select_related("workspace")
    link = rows.filter(token_hash=_hash(token)).first()
    return link.workspace if link is not None and is_member(link.workspace_id, user.pk) else None


def is_for(link: JoinLink, email: str) -> bool:
    """Whether the link is for people with this address."""
    return email.rpartition("@")[2].lower() == link.email_domain


@transaction.atomic
def join_by_link(*, token: str, user: User, actor: Actor) -> Membership:
    """Make the person a member.

    Raises:
        NotFound: the link is not open.
        PermissionDenied: their address is of another domain, or nobody has confirmed it.
        Conflict: they are a member already.
    """
    link = find_join_link(token)
    if not is_for(link, user.email):
        raise PermissionDenied(
            _("This link is for addresses at %(email_domain)s.")
            % {"email_domain": link.email_domain}
        )
    if not user.is_address_confirmed:
        raise PermissionDenied(_("Confirm your e-mail address first."))
    with in_workspace(link.workspace_id):
        return _join(link, user, actor)


def _join(link: JoinLink, user: User, actor: Actor) -> Membership:
    known = Membership.objects.also_suspended(link.workspace)
    if known.filter(user=user).exists():
        raise Conflict(_("You are a member already."))
    taken = (
        JoinLink.objects.for_workspace(link.workspace_id)
        .filter(pk=link.pk, revoked_at=None, uses__lt=F("most_uses"))
        .update(uses=F("uses") + 1)
    )
    if not taken:
        raise NotFound(_("This link no longer works. Ask for a new one."))
    membership: Membership
    membership, created = Membership.unscoped.get_or_create(
        workspace=link.workspace, user=user, defaults={"role": link.role}
    )
    if not created:  # on another page at the same moment
        raise Conflict(_("You are a member already."))
    record_created(membership, actor=actor)
    return membership


def _is_backed(link: JoinLink) -> bool:
    """Whether its maker could still make it."""
    if link.made_by is None:
        return False
    if link.made_by.is_superuser and link.made_by.is_active:
        return True
    rows = Membership.objects.for_workspace(link.workspace_id)
    maker = rows.filter(user=link.made_by, user__is_active=True).first()
    if maker is None:
        return False
    held = permissions_of_role(maker.role)
    return Permission.MANAGE_MEMBERS in held and held >= permissions_of_role(link.role)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
