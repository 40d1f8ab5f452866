"""What the platform's owner does with workspaces and accounts: one verb each, for the admin's pages and for REST."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models, transaction
from django.utils.translation import gettext as _

from workspaces.actors import Actor, Role
from workspaces.changes import record_created, tracked_change
from workspaces.database.row_security import in_workspace
from workspaces.errors import Conflict, InvalidInput
from workspaces.models import Membership, User, Workspace
from workspaces.people.entering import require_second_step
from workspaces.people.pictures import remove_picture
from workspaces.people.sessions import end_access
from workspaces.people.single_sign_on import forget_at_provider
from workspaces.roles import require_person, require_platform_owner
from workspaces.words.mail_addresses import typed_address
from workspaces.words.names import seen_name

WORKSPACE_RULES: Final = (
    *("approves_new_tools", "allows_personal_servers", "remembers_permissions"),
    *("reads_outside_unasked", "allows_mcp_clients", "allows_public_links"),
    "requires_two_steps",
)
"""Fields of a workspace that say what its members may do, and how they enter."""
_RIGHTS = ("email", "is_superuser")
"""Who has an account's address can take the account over, and who owns the platform may do all."""


@transaction.atomic
def save_workspace(*, workspace: Workspace, actor: Actor) -> Workspace:
    """Store a workspace as it is set now: a new one, or a change.

    Whoever makes one and is a member nowhere, as after `createsuperuser`, becomes its owner. Else they could not chat.

    Raises:
        PermissionDenied: the actor does not own the platform.
        InvalidInput: with each faulty field.
        Conflict: it begins or ceases to require two-step verification, which the actor's own account has not.
    """
    require_platform_owner(actor)
    _check(workspace)
    stored = Workspace.objects.filter(pk=workspace.pk, requires_two_steps=True)
    if stored.exists() != workspace.requires_two_steps:
        require_second_step(actor)
    is_new = workspace._state.adding
    _store(workspace, actor)
    if is_new and actor.user_id is not None and not _is_member_anywhere(actor.user_id):
        owner = Membership(workspace=workspace, user_id=actor.user_id, role=Role.OWNER.value)
        with in_workspace(workspace.pk):
            _store(owner, actor)
    return workspace


def suspend_workspace(*, workspace: Workspace, typed: str, actor: Actor) -> Workspace:
    """Shut everybody out of a workspace. All rows stay, and `resume_workspace` opens it again.

    Args:
        typed: the workspace's name, as the actor typed it to confirm.

    Raises:
        PermissionDenied: the actor does not own the platform.
        Conflict: it is suspended already.
        InvalidInput: another name was typed.
    """
    require_platform_owner(actor)
    name = {"name": workspace.name}
    if not workspace.is_active:
        raise Conflict(_("%(name)s is suspended already.") % name)
    if typed.strip() != workspace.name:
        message = _("Type the name of the workspace, “%(name)s”, to confirm.") % name
        raise InvalidInput(fields={"confirmation": [message]})
    workspace.is_active = False
    return save_workspace(workspace=workspace, actor=actor)


def resume_workspace(*, workspace: Workspace, actor: Actor) -> Workspace:
    """Open a suspended workspace again.

    Raises:
        PermissionDenied: the actor does not own the platform.
        Conflict: it is not suspended.
    """
    require_platform_owner(actor)
    if workspace.is_active:
        raise Conflict(_("%(name)s is not suspended.") % {"name": workspace.name})
    workspace.is_active = True
    return save_workspace(workspace=workspace, actor=actor)


def add_account(*, email: str, name: str, password: str, actor: Actor) -> User:
    """Make an account, which is in no workspace yet. Its address counts once its mail was answered (`save_account`).

    Raises:
        PermissionDenied: the actor does not own the platform, or is a program.
        InvalidInput: with each faulty field, also a password that is too weak.
    """
    account = User(email=typed_address(email), name=name)
    faults: dict[str, list[str]] = {}
    try:
        validate_password(password, account)
    except ValidationError as error:
        faults["password"] = error.messages
    try:
        _check(account)
    except InvalidInput as error:
        faults |= error.fields
    if faults:
        raise InvalidInput(fields=faults)
    account.set_password(password)
    save_account(account=account, actor=actor)
    return account


def switch_account(*, account: User, is_active: bool, actor: Actor) -> User:
    """Let a person sign in, or no longer. Whoever is switched off is out at once, and all that is theirs stays.

    Raises:
        PermissionDenied: as in `save_account`.
        Conflict: it is so already, or as in `save_account`.
    """
    require_platform_owner(actor)
    if account.is_active == is_active:
        message = (
            _("%(email)s is active.") if is_active else _("%(email)s is switched off already.")
        )
        raise Conflict(message % {"email": account.email})
    account.is_active = is_active
    save_account(account=account, actor=actor)
    return account


@transaction.atomic
def remove_picture_of(*, account: User, actor: Actor) -> User:
    """Take down the picture that a person gave of themselves, as where it offends others. They can give another one.

    Raises:
        PermissionDenied: the actor does not own the platform.
        Conflict: there is none.
    """
    require_platform_owner(actor)
    if not account.picture_digest:
        raise Conflict(_("%(email)s has no picture.") % {"email": account.email})
    with tracked_change(account, actor=actor):
        return remove_picture(user=account)


@transaction.atomic
def save_account(*, account: User, actor: Actor) -> bool:
    """Store an account as it is set now: a new one, or a change. Whoever is switched off is out at once.

    Returns:
        Whether its address is a new one, which counts once the mail that the caller sends was answered.

    Raises:
        PermissionDenied: the actor does not own the platform; or it is a program, and this is an owner's account, a new
            one, or a change of address or rights.
        Conflict: nobody who can sign in would own the platform, or the actor switches their own account off.
        InvalidInput: with each faulty field.
    """
    require_platform_owner(actor)
    account.name = seen_name(account.name)
    _check(account)
    stored = None if account._state.adding else User.objects.select_for_update().get(pk=account.pk)
    if stored is None:
        require_person(actor)
        _store(account, actor)
        account.keep_address()
        return True
    is_open = any(getattr(stored, name) != getattr(account, name) for name in _RIGHTS)
    if is_open or stored.is_superuser:
        require_person(actor)
    if _owns(stored) and not _owns(account):
        _keep_a_platform_owner(stored)
    if account.pk == actor.user_id and not account.is_active:
        raise Conflict(_("You cannot switch yourself off. Another owner of the platform can."))
    _store(account, actor)
    if (stored.is_active, stored.is_superuser) != (account.is_active, account.is_superuser):
        end_access(account.pk)
    is_moved = stored.email != account.email
    if is_moved:
        account.keep_address()
        forget_at_provider(account)
    return is_moved


def _owns(account: User) -> bool:
    return account.is_superuser and account.is_active


def _keep_a_platform_owner(account: User) -> None:
    """Raise Conflict where nobody else owns the platform. All are held, so that two do not go at once."""
    owners = User.objects.select_for_update().filter(is_superuser=True, is_active=True)
    if {owner.pk for owner in owners} <= {account.pk}:
        raise Conflict(_("The platform needs an owner. Make somebody else an owner first."))


def _is_member_anywhere(user_id: UUID) -> bool:
    return Membership.objects.across_workspaces().filter(user_id=user_id).exists()


def _store(row: models.Model, actor: Actor) -> None:
    if row._state.adding:
        row.save()
        record_created(row, actor=actor)
        return
    with tracked_change(row, actor=actor):
        row.save()


def _check(row: models.Model) -> None:
    """Raise InvalidInput with each fault of a row's own fields."""
    exclude = {"password"} if isinstance(row, User) else None
    try:
        row.full_clean(exclude=exclude)
    except ValidationError as error:
        fields = error.message_dict
        if NON_FIELD_ERRORS in fields and "email" in fields:
            del fields[
                NON_FIELD_ERRORS
            ]  # the constraint that ignores case says the same of the address
        raise InvalidInput(fields=fields) from error
