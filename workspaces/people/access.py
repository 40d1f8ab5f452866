"""What a person may use in a workspace, and why. Each app adds what it knows of its own rows.

There is one list: rights, then buds, servers, tools and sign-ins, each by name. It comes in pages, and a page begins after the
last row of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db.models import Model, Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from workspaces.lists.row_pages import MOST_ON_PAGE, no_page, read_mark, write_mark
from workspaces.models import Membership
from workspaces.roles import Permission, permissions_of_role
from workspaces.words.text_values import is_id

if TYPE_CHECKING:
    from django.db.models import QuerySet

R = TypeVar("R", bound=Model)

MOST_OF_KIND: Final = 20
"""Where all kinds stand on one page."""
KINDS: Final[Mapping[str, Any]] = {
    "permission": _("Rights"),
    "bud": _("Buds"),
    "server": _("Servers"),
    "tool": _("Tools"),
    "sign-in": _("Sign-ins"),
}
"""In the order of the list, with what they are called."""
_ONE: Final[Mapping[str, Any]] = {
    "permission": _("Right"),
    "bud": _("Bud"),
    "server": _("Server"),
    "tool": _("Tool"),
    "sign-in": _("Sign-in"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessItem:
    """One thing that a person may use."""

    kind: str
    """One of `KINDS`."""
    name: str
    why: str
    key: str
    """Tells it from others of its kind."""

    @property
    def kind_name(self) -> str:
        return str(_ONE[self.kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessCursor:
    """The row that a page ended with."""

    kind: str
    name: str
    key: str

    @classmethod
    def after(cls, row: AccessItem) -> AccessCursor:
        return cls(kind=row.kind, name=row.name, key=row.key)

    @classmethod
    def read(cls, text: str) -> AccessCursor:
        """Read it from an address.

        Raises:
            InvalidInput: it is none of ours.
        """
        kind, name, key = read_mark(text, 3)
        if kind not in KINDS or (kind != "permission" and not is_id(key)):
            raise no_page()
        return cls(kind=kind, name=name, key=key)

    def __str__(self) -> str:
        return write_mark(self.kind, self.name, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPage:
    """Some of the list."""

    rows: list[AccessItem]
    following: AccessCursor | None
    """Where the next page begins; None: this is the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessGroup:
    """The first ones of one kind."""

    kind: str
    page: AccessPage

    @property
    def title(self) -> str:
        return str(KINDS[self.kind])


AccessReader = Callable[[Membership, AccessCursor | None, int], list[AccessItem]]
"""A member's of one kind, by name and key: those after the mark, and at most so many."""
_readers: dict[str, AccessReader] = {}

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


def register_access(kind: str, reader: AccessReader) -> None:
    """From now on things of this kind are listed too. Called once at start."""
    _readers[kind] = reader


def rows_after(
    rows: QuerySet[R], after: AccessCursor | None, most: int, *, name: str = "name"
) -> QuerySet[R]:
    """Those after the mark, by name and key."""
    if after is not None:
        rows = rows.filter(
            Q(**{f"{name}__gt": after.name}) | Q(**{name: after.name}, pk__gt=after.key)
        )
    return rows.order_by(name, "pk")[:most]


def access_groups(membership: Membership) -> list[AccessGroup]:
    """The first ones of each kind that the member may use today; nothing while they are suspended."""
    pages = {kind: access_page(membership, kind=kind, most=MOST_OF_KIND) for kind in KINDS}
    return [AccessGroup(kind=kind, page=page) for kind, page in pages.items() if page.rows]


def access_page(
    membership: Membership,
    *,
    kind: str | None = None,
    after: AccessCursor | None = None,
    most: int = MOST_ON_PAGE,
) -> AccessPage:
    """A page of what the member may use today, with the reason; nothing while they are suspended.

    Args:
        kind: only this one.
        after: the mark that the page before named.
        most: rows.
    """
    found: list[AccessItem] = []
    if membership.suspended_at is not None:
        return AccessPage(rows=found, following=None)
    kinds = list(KINDS) if kind is None else [kind]
    if after is not None:
        kinds = kinds[kinds.index(after.kind) :] if after.kind in kinds else []
    for one in kinds:
        here = after if after is not None and after.kind == one else None
        missing = most + 1 - len(found)
        reader = _rights_of if one == "permission" else _readers.get(one)
        if missing and reader is not None:
            found += reader(membership, here, missing)
    rows = found[:most]
    return AccessPage(
        rows=rows, following=AccessCursor.after(rows[-1]) if len(found) > most else None
    )


def _rights_of(membership: Membership, after: AccessCursor | None, most: int) -> list[AccessItem]:
    of_role = permissions_of_role(membership.role)
    held = permissions_of_role(membership.role, is_auditor=membership.is_auditor)
    role = gettext("Role: %(role)s") % {"role": membership.get_role_display()}
    found = [
        AccessItem(
            kind="permission",
            name=str(words),
            why=role if permission in of_role else gettext("Right to audit"),
            key=permission.value,
        )
        for permission, words in _WORDS.items()
        if permission in held
    ]
    keys = [one.key for one in found]
    start = keys.index(after.key) + 1 if after is not None and after.key in keys else 0
    return found[start : start + most]
