"""Who may do what: roles, permissions, and the one question `require`. Pure.

A role is a set of permissions; the auditor right adds the audit log's bodies
to any role. A superuser owns the platform, and acts in a workspace as its owner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, ParamSpec
from uuid import UUID

from workspaces.actors import Actor, ActorKind, Role
from workspaces.errors import PermissionDenied
from workspaces.words.texts import gettext_lazy as _

if TYPE_CHECKING:
    from workspaces.words.texts import Text

P = ParamSpec("P")

__all__ = ["Permission", "Role", "has_permission", "require"]


class Permission(StrEnum):
    USE_CHAT = "use_chat"
    MANAGE_BUDS = "manage_buds"
    MANAGE_SERVERS = "manage_servers"
    MANAGE_MEMBERS = "manage_members"
    MANAGE_WORKSPACE = "manage_workspace"
    VIEW_AUDIT = "view_audit"
    VIEW_AUDIT_BODIES = "view_audit_bodies"
    EXPORT_AUDIT = "export_audit"
    MANAGE_CATALOGUE = "manage_catalogue"


_MEMBER = frozenset({Permission.USE_CHAT})
_ADMIN = _MEMBER | {
    Permission.MANAGE_BUDS,
    Permission.MANAGE_SERVERS,
    Permission.MANAGE_MEMBERS,
    Permission.VIEW_AUDIT,
}
_OWNER = _ADMIN | {Permission.MANAGE_WORKSPACE}
_OF_ROLE: dict[Role, frozenset[Permission]] = {
    Role.MEMBER: _MEMBER,
    Role.ADMIN: frozenset(_ADMIN),
    Role.OWNER: frozenset(_OWNER),
}
_OF_AUDITOR = frozenset(
    {Permission.VIEW_AUDIT, Permission.VIEW_AUDIT_BODIES, Permission.EXPORT_AUDIT}
)
_OF_SUPERUSER = frozenset({*_OWNER, Permission.MANAGE_CATALOGUE})

_SCOPE_OF: dict[Permission, str] = {
    Permission.USE_CHAT: "chat",
    Permission.MANAGE_BUDS: "buds:write",
    Permission.MANAGE_SERVERS: "servers:write",
    Permission.MANAGE_MEMBERS: "members:write",
    Permission.MANAGE_WORKSPACE: "workspace:write",
    Permission.VIEW_AUDIT: "audit:read",
    Permission.VIEW_AUDIT_BODIES: "audit:read",
    Permission.EXPORT_AUDIT: "audit:read",
    Permission.MANAGE_CATALOGUE: "catalogue:write",
}

_OF_ADMINS: Final = _("Only admins and owners of the workspace can do that.")
_OF_AUDITORS: Final = _(
    "Only auditors can do that. An owner of the workspace makes somebody an auditor on that person's page."
)
_WHO_MAY: dict[Permission, Text] = {
    Permission.MANAGE_BUDS: _OF_ADMINS,
    Permission.MANAGE_SERVERS: _OF_ADMINS,
    Permission.MANAGE_MEMBERS: _OF_ADMINS,
    Permission.MANAGE_WORKSPACE: _("Only owners of the workspace can do that."),
    Permission.VIEW_AUDIT: _("Only owners, admins and auditors of the workspace can do that."),
    Permission.VIEW_AUDIT_BODIES: _OF_AUDITORS,
    Permission.EXPORT_AUDIT: _OF_AUDITORS,
    Permission.MANAGE_CATALOGUE: _("Only the owner of this installation can do that."),
}

_REVIEWING = "audit:write"
"""Of those who see the log, what they keep and say of it. What it may do, it may also look at."""


def permissions_of(actor: Actor) -> frozenset[Permission]:
    """All that the actor may do in its own workspace."""
    if actor.kind is ActorKind.SYSTEM:
        return frozenset(Permission)
    granted: frozenset[Permission] = _OF_ROLE[actor.role] if actor.role else frozenset()
    if actor.is_superuser:
        granted |= _OF_SUPERUSER
    if actor.is_auditor:
        granted |= _OF_AUDITOR
    if actor.scopes is not None:
        held = {*actor.scopes, *(["audit:read"] if _REVIEWING in actor.scopes else [])}
        granted = frozenset(p for p in granted if _SCOPE_OF[p] in held)
    return granted


def permissions_of_role(role: str, *, is_auditor: bool = False) -> frozenset[Permission]:
    """All that somebody with this role may do; with the right to audit, if they have it."""
    return _OF_ROLE[Role(role)] | (_OF_AUDITOR if is_auditor else frozenset())


def scopes_of(actor: Actor) -> frozenset[str]:
    """The scopes of tokens that stand for what the actor may do."""
    found = {_SCOPE_OF[permission] for permission in permissions_of(actor)}
    return frozenset(
        found | ({_REVIEWING} if Permission.VIEW_AUDIT in permissions_of(actor) else set())
    )


def has_permission(
    actor: Actor, permission: Permission, *, workspace_id: UUID | None = None
) -> bool:
    """Whether the actor may; a workspace other than the actor's own is always a no."""
    if workspace_id is not None and actor.workspace_id != workspace_id:
        return False
    return permission in permissions_of(actor)


def passes(check: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> bool:
    """Whether a check like require() raises no PermissionDenied."""
    try:
        check(*args, **kwargs)
    except PermissionDenied:
        return False
    return True


def require(actor: Actor, permission: Permission, *, workspace_id: UUID | None) -> None:
    """Raise PermissionDenied unless the actor may do this in that workspace."""
    if has_permission(actor, permission, workspace_id=workspace_id):
        return
    details = {"permission": permission.value}
    if workspace_id is not None and actor.workspace_id != workspace_id:
        raise PermissionDenied(details=details)
    if permission in permissions_of(replace(actor, scopes=None)):
        text = _("This token does not hold the scope '%(needed)s'.")
        raise PermissionDenied(text % {"needed": _SCOPE_OF[permission]}, details=details)
    raise PermissionDenied(_WHO_MAY.get(permission), details=details)


def require_platform_owner(actor: Actor) -> None:
    """Raise PermissionDenied unless the actor owns the platform."""
    if not actor.is_superuser:
        raise PermissionDenied


TAKES_PERSON: Final = _("No token can do this. Do it in a browser in which you are signed in.")


def require_person(actor: Actor) -> None:
    """Raise PermissionDenied where a program acts with a token: for what could give it more than it was given."""
    if actor.scopes is not None:
        raise PermissionDenied(TAKES_PERSON)
