"""The ends of clients' sign-ins: each has a reason, and an entry in the log.

They end as browser sessions do, since they began in one: with another password, with signing out everywhere else, with the
account. And as everything of a member does: with the membership, and with the rule that lets clients in.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.signals import post_save

from audit.actions import Action
from audit.services import EntryDraft, record
from mcp_servers.endpoint.sign_in.proofs import is_proof_of
from mcp_servers.models import ClientSignIn, ClientToken
from workspaces.actors import Actor, Source
from workspaces.changes import ConfigurationChange, configuration_changed
from workspaces.database import database_now
from workspaces.database.row_security import in_workspace
from workspaces.models import User, Workspace
from workspaces.people.memberships import listen_to_leaving
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.scoping import WorkspaceQuerySet

_OF_ACCOUNT: Final = frozenset({"password", "others_signed_out_at", "is_active"})


class EndReason(StrEnum):
    """Why a sign-in ended, as the log has it."""

    PERSON = "ended by its person"
    ADMIN = "ended by an administrator"
    CLIENT = "ended by the client"
    LEFT = "membership ended"
    SUSPENDED = "membership suspended"
    ACCOUNT = "password changed, signed out everywhere or account switched off"
    RULE = "the workspace lets no clients in any more"
    RESTORED = "restored from a backup"
    REUSED = "token used twice"
    TOO_MANY = "a newer sign-in took its place"
    EXPIRED = "ran out"


@transaction.atomic
def end_sign_in(*, sign_in: ClientSignIn, actor: Actor) -> None:
    """Sign a client out.

    Raises:
        PermissionDenied: it is somebody else's, and the actor may not manage members.
    """
    is_own = sign_in.user_id == actor.user_id
    if not is_own:
        require(actor, Permission.MANAGE_MEMBERS, workspace_id=sign_in.workspace_id)
    end([sign_in], EndReason.PERSON if is_own else EndReason.ADMIN, actor)


def end(rows: Iterable[ClientSignIn], reason: EndReason, actor: Actor | None = None) -> int:
    """End these sign-ins, with their tokens and an entry for each that a client has come for. Gives how many.

    Args:
        actor: None: the platform itself.
    """
    number = 0
    for row in rows:
        with transaction.atomic(), in_workspace(row.workspace_id):
            if row.begun_at is not None:
                tell(Action.CLIENT_ENDED, row, actor, reason=reason.value)
            row.delete()
        number += 1
    return number


def tell(action: Action, row: ClientSignIn, actor: Actor | None, **details: object) -> None:
    """Write an entry on a sign-in."""
    by = actor or Actor.system(
        source=Source.TASK, workspace_id=row.workspace_id, on_behalf_of=row.user.email
    )
    record(
        EntryDraft(
            action=action,
            actor=by,
            workspace_id=row.workspace_id,
            details={
                "name": row.client_name,
                "person": row.user.email,
                "scopes": row.scopes,
                "returns_to": row.redirect_host,
                "sign_in": str(row.pk),
                **details,
            },
        )
    )


def end_all(reason: EndReason) -> int:
    """End every sign-in of the installation."""
    return end(_everybodys(), reason)


def forget_ended() -> int:
    """Delete what has run out: sign-ins whose client never came or may not come again, and old tokens. How many."""
    now = database_now()
    tokens = ClientToken.objects.across_workspaces()
    removed = int(tokens.filter(expires_at__lt=now).delete()[0])
    over = _everybodys().filter(tokens=None) | _everybodys().filter(expires_at__lt=now)
    return removed + end(over.distinct(), EndReason.EXPIRED)


def listen() -> None:
    """Called once at start."""
    listen_to_leaving(parted=_member_left, suspended=_member_suspended)
    configuration_changed.connect(
        _workspace_changed, sender=Workspace, dispatch_uid="client_sign_ins.rule"
    )
    post_save.connect(_account_saved, sender=User, dispatch_uid="client_sign_ins.accounts")


def _everybodys() -> WorkspaceQuerySet[ClientSignIn]:
    return ClientSignIn.objects.across_workspaces().select_related("user")


def _in(workspace_id: UUID) -> WorkspaceQuerySet[ClientSignIn]:
    return ClientSignIn.objects.for_workspace(workspace_id).select_related("user")


def _member_left(workspace_id: UUID, user_id: UUID, change: ConfigurationChange) -> None:
    end(_in(workspace_id).filter(user_id=user_id), EndReason.LEFT, change.actor)


def _member_suspended(workspace_id: UUID, user_id: UUID, change: ConfigurationChange) -> None:
    end(_in(workspace_id).filter(user_id=user_id), EndReason.SUSPENDED, change.actor)


def _workspace_changed(sender: type[Workspace], change: ConfigurationChange, **_: Any) -> None:
    if change.workspace_id is not None and change.after.get("allows_mcp_clients") is False:
        end(_in(change.workspace_id), EndReason.RULE, change.actor)


def _account_saved(
    sender: type[User], instance: User, update_fields: Iterable[str] | None = None, **_: Any
) -> None:
    if update_fields is not None and _OF_ACCOUNT.isdisjoint(update_fields):
        return
    rows = _everybodys().filter(user_id=instance.pk)
    over = [row for row in rows if not instance.is_active or not is_proof_of(row.proof, instance)]
    end(over, EndReason.ACCOUNT)
