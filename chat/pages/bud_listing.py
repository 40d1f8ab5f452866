"""Which buds the page of buds shows: searched, filtered, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from chat.models import Bud
from workspaces.roles import Permission, has_permission
from workspaces.words.text_values import unknown_filters

if TYPE_CHECKING:
    from chat.models.buds import BudQuerySet
    from workspaces.actors import Actor

PAGE: Final = 50
FEW: Final = 12
"""Up to so many buds nobody needs to search."""
MAX_WORDS: Final = 100


class BudState(models.TextChoices):
    """Which buds somebody looks for."""

    ACTIVE = "active", _("In use")
    ARCHIVED = "archived", _("Archived")
    MINE = "mine", _("Only me")


@dataclass(frozen=True, slots=True, kw_only=True)
class BudSearch:
    """What somebody looks for."""

    words: str = ""
    state: str = ""
    after: UUID | None = None
    """The last bud of the page before."""
    fault: str = ""
    """What of the address is not known, in words."""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> BudSearch:
        """What the page's address says."""
        try:
            after = UUID(query["after"]) if query.get("after") else None
        except ValueError:
            after = None
        state = query.get("state", "")
        fault = next(iter(unknown_filters(query, {"q", "state", "after"})), "")
        if not fault and state and state not in BudState:
            fault = str(_("There is no state “%(name)s”.") % {"name": state[:50]})
        return cls(
            words=query.get("q", "").replace("\0", "").strip()[:MAX_WORDS],
            state=state if state in BudState else "",
            after=after,
            fault=fault,
        )

    @property
    def is_narrow(self) -> bool:
        return bool(self.words or self.state)

    def address(self) -> str:
        """What comes after the question mark."""
        given = {"q": self.words, "state": self.state, "after": str(self.after or "")}
        return urlencode({name: value for name, value in given.items() if value})


@dataclass(frozen=True, slots=True, kw_only=True)
class BudPage:
    """One page of buds."""

    wanted: BudSearch
    total: int
    """All that the person may edit."""
    buds: list[Bud]
    next_address: str
    """Of the next page; empty: this is the last."""

    @property
    def is_searched(self) -> bool:
        """Whether there are enough to look for one."""
        return self.total > FEW or self.wanted.is_narrow or bool(self.wanted.fault)

    @property
    def states(self) -> list[tuple[str, str]]:
        return [(value, str(label)) for value, label in BudState.choices]


def list_buds(
    visible: BudQuerySet, actor: Actor, workspace_id: UUID, *, wanted: BudSearch
) -> BudPage:
    """One page of those that a person may edit, by name, archived ones last."""
    rows = editable(visible, actor, workspace_id)
    found = _matching(rows, wanted)
    if last := rows.filter(pk=wanted.after).first() if wanted.after else None:
        found = found.filter(
            Q(is_archived__gt=last.is_archived)
            | Q(is_archived=last.is_archived, name__gt=last.name)
            | Q(is_archived=last.is_archived, name=last.name, id__gt=last.pk)
        )
    ordered = found.select_related("provider").order_by("is_archived", "name", "id")
    buds = list(ordered[: PAGE + 1])
    following = replace(wanted, after=buds[PAGE - 1].pk).address() if len(buds) > PAGE else ""
    return BudPage(wanted=wanted, total=rows.count(), buds=buds[:PAGE], next_address=following)


def editable(rows: BudQuerySet, actor: Actor, workspace_id: UUID) -> BudQuerySet:
    """Those that `may_edit` allows, in the database."""
    if has_permission(actor, Permission.MANAGE_BUDS, workspace_id=workspace_id):
        return rows
    if has_permission(actor, Permission.USE_CHAT, workspace_id=workspace_id):
        return rows.filter(members_may_edit=True)
    return rows.none()


def _matching(rows: BudQuerySet, wanted: BudSearch) -> BudQuerySet:
    match wanted.state:
        case BudState.ACTIVE:
            rows = rows.filter(is_archived=False)
        case BudState.ARCHIVED:
            rows = rows.filter(is_archived=True)
        case BudState.MINE:
            rows = rows.filter(visibility="owner")
    for word in wanted.words.split():
        rows = rows.filter(
            Q(name__icontains=word) | Q(description__icontains=word) | Q(model__icontains=word)
        )
    return rows
