"""What a person may use in a workspace, and why. Each app adds what it knows of its own rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from workspaces.models import Membership
from workspaces.roles import Permission, permissions_of_role

MOST_SHOWN: Final = 200
"""Of one kind of things."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One thing that a person may use."""

    kind: str
    """permission, bud, server or sign-in."""
    name: str
    why: str


AccessReader = Callable[[Membership], list[Access]]
_readers: list[AccessReader] = []

_WORDS: Final = {
    Permission.USE_CHAT: _("Use buds and have conversations"),
    Permission.MANAGE_BUDS: _("Change buds and models"),
    Permission.MANAGE_SERVERS: _("Change servers, tools and their rules"),
    Permission.MANAGE_MEMBERS: _("Invite, change and suspend members"),
    Permission.MANAGE_WORKSPACE: _("Change the workspace"),
    Permission.VIEW_AUDIT: _("See the audit log"),
    Permission.VIEW_AUDIT_BODIES: _("Read arguments and results in the audit log"),
    Permission.EXPORT_AUDIT: _("Export the audit log"),
}


def register_access(reader: AccessReader) -> None:
    """From now on these things are listed too. Called once at start."""
    _readers.append(reader)


def access_of(membership: Membership) -> list[Access]:
    """Everything that the member may use today, with the reason; nothing while they are suspended."""
    if membership.suspended_at is not None:
        return []
    of_role = permissions_of_role(membership.role)
    held = permissions_of_role(membership.role, is_auditor=membership.is_auditor)
    role = gettext("Role: %(role)s") % {"role": membership.get_role_display()}
    found = [
        Access(
            kind="permission",
            name=str(words),
            why=role if permission in of_role else gettext("Right to audit"),
        )
        for permission, words in _WORDS.items()
        if permission in held
    ]
    for reader in _readers:
        found += reader(membership)
    return found


def is_cut(found: Iterable[Access]) -> bool:
    """Whether there may be more of a kind than is told."""
    return max(Counter(one.kind for one in found).values(), default=0) >= MOST_SHOWN
