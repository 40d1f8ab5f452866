"""Which servers the servers page shows: searched, filtered, grouped by state, a page at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode
from uuid import UUID

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from mcp_servers.models import AuthType, McpServer, McpTool, ServerScope, ServerStatus
from mcp_servers.pages.cards.connections import missing_sign_ins
from mcp_servers.pages.cards.servers import Card, cards_of, status_of
from mcp_servers.registry.discovery import listed_for
from workspaces.words.text_values import unknown_filters

if TYPE_CHECKING:
    from mcp_servers.models.servers import McpServerQuerySet
    from mcp_servers.models.tools import McpToolQuerySet
    from workspaces.actors import Actor
    from workspaces.models import User, Workspace

PAGE: Final = 25
"""Servers that one answer shows."""
FEW: Final = 12
"""Up to so many servers are shown with all they have; of more, each is one row that opens."""
MAX_WORDS: Final = 200
_NAMES: Final = frozenset({"q", "state", "from", "own", "after"})


class ServerGroup(models.TextChoices):
    """How a server is, for somebody who looks after many; in the order of the page."""

    ATTENTION = "attention", _("Needs attention")
    CONNECTED = "connected", _("Connected")
    WAITING = "waiting", _("Not connected")
    OFF = "off", _("Switched off")


class ServerOrigin(models.TextChoices):
    """Where a server comes from."""

    WORKSPACE = "workspace", _("This workspace")
    PLATFORM = "platform", _("The platform")
    HOSTED = "hosted", _("A hosted provider")
    PROGRAM = "program", _("A program")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSearch:
    """What somebody looks for. Words that name no group or origin are left out, and told."""

    words: str = ""
    group: str = ""
    origin: str = ""
    after: UUID | None = None
    """The last server of the page before."""
    is_own: bool = False
    """The person's own servers, or everybody's."""
    fault: str = ""
    """What of the address is not known, in words."""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> ServerSearch:
        """What the page's address says."""
        after = query.get("after", "")
        try:
            last = UUID(after) if after else None
        except ValueError:
            last = None
        group, origin = query.get("state", ""), query.get("from", "")
        return cls(
            words=query.get("q", "").strip().replace("\0", "")[:MAX_WORDS],
            group=group if group in ServerGroup else "",
            origin=origin if origin in ServerOrigin else "",
            after=last,
            is_own=query.get("own") == "1",
            fault=_fault_of(query, group, origin),
        )

    @property
    def is_narrow(self) -> bool:
        return bool(self.words or self.group or self.origin)

    def address(self) -> str:
        """What comes after the question mark."""
        given = {
            "q": self.words,
            "state": self.group,
            "from": self.origin,
            "own": "1" if self.is_own else "",
            "after": str(self.after or ""),
        }
        return urlencode({name: value for name, value in given.items() if value})


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChoice:
    """One state to choose, with how many servers are in it."""

    label: str
    count: int
    address: str
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerGroupBlock:
    """Servers of one group."""

    label: str
    count: int
    """Of the whole group, also on other pages."""
    cards: list[Card]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPage:
    """One page of servers."""

    wanted: ServerSearch
    total: int
    """All that the person may see."""
    found: int
    choices: list[StateChoice]
    blocks: list[ServerGroupBlock]
    next_address: str
    """Of the next page; empty: this is the last."""

    @property
    def is_searched(self) -> bool:
        """Whether there are enough to look for one."""
        return self.total > FEW or self.wanted.is_narrow or bool(self.wanted.fault)


def list_servers(
    workspace: Workspace, *, user: User, actor: Actor, wanted: ServerSearch
) -> ServerPage:
    """One page of the servers that a person may see, those that need attention first."""
    rows = McpServer.objects.for_workspace(workspace).visible_to(user)
    rows = rows.filter(owner__isnull=not wanted.is_own)
    total = rows.count()
    tools = McpTool.objects.for_workspace(workspace).offered()
    # What another person's account was shown is not found, and moves nothing.
    tools = tools.filter(listed_for(actor, workspace.pk), server=OuterRef("pk"))
    found = _grouped(_matching(rows, wanted, tools), tools, user)
    counts = Counter(found.values())
    shown = [pk for pk, group in found.items() if not wanted.group or group == wanted.group]
    start = shown.index(wanted.after) + 1 if wanted.after in shown else 0
    page = shown[start : start + PAGE]
    full = rows.filter(pk__in=page).select_related("program", "global_server", "workspace")
    cards = {card.id: card for card in cards_of(full, actor=actor, as_rows=total > FEW)}
    following = replace(wanted, after=page[-1]) if start + PAGE < len(shown) else None
    return ServerPage(
        wanted=wanted,
        total=total,
        found=len(shown),
        choices=[
            _choice(wanted, "", str(_("All")), len(found)),
            *(_choice(wanted, group, str(group.label), counts[group]) for group in ServerGroup),
        ],
        blocks=[
            ServerGroupBlock(
                label=str(group.label),
                count=counts[group],
                cards=[cards[pk] for pk in page if found[pk] == group and pk in cards],
            )
            for group in ServerGroup
            if any(found[pk] == group for pk in page)
        ],
        next_address=following.address() if following else "",
    )


def _fault_of(query: Mapping[str, str], group: str, origin: str) -> str:
    if unknown := unknown_filters(query, _NAMES):
        return unknown[0]
    if group and group not in ServerGroup:
        return str(_("There is no state “%(name)s”.") % {"name": group[:50]})
    if origin and origin not in ServerOrigin:
        return str(_("Servers cannot come from “%(name)s”.") % {"name": origin[:50]})
    return ""


def _choice(wanted: ServerSearch, group: str, label: str, count: int) -> StateChoice:
    return StateChoice(
        label=label,
        count=count,
        address=replace(wanted, group=group, after=None).address(),
        is_chosen=wanted.group == group,
    )


def _matching(
    rows: McpServerQuerySet, wanted: ServerSearch, tools: McpToolQuerySet
) -> McpServerQuerySet:
    match wanted.origin:
        case ServerOrigin.WORKSPACE:
            rows = rows.filter(scope=ServerScope.WORKSPACE, hosted_by="", program__isnull=True)
        case ServerOrigin.PLATFORM:
            rows = rows.filter(scope=ServerScope.GLOBAL)
        case ServerOrigin.HOSTED:
            rows = rows.exclude(hosted_by="")
        case ServerOrigin.PROGRAM:
            rows = rows.filter(program__isnull=False)
    for word in wanted.words.split():
        rows = rows.filter(
            Q(name__icontains=word)
            | Q(url__icontains=word)
            | Q(program__title__icontains=word)
            | Exists(tools.filter(Q(name__icontains=word) | Q(title__icontains=word)))
        )
    return rows


def _grouped(
    rows: McpServerQuerySet, tools: McpToolQuerySet, user: User
) -> dict[UUID, ServerGroup]:
    """The group of every server, in the order of the page; few statements, however many there are."""
    statuses = _statuses_by_sign_ins(rows, user)
    found = rows.order_by("name", "pk").values_list(
        "pk", "is_active", "is_blocked", "state__status", Exists(tools.held())
    )
    groups = {
        pk: _group(statuses.get(pk, status), is_on=is_active and not is_blocked, is_held=is_held)
        for pk, is_active, is_blocked, status, is_held in found
    }
    order = list(ServerGroup)
    return dict(sorted(groups.items(), key=lambda one: order.index(one[1])))


def _statuses_by_sign_ins(rows: McpServerQuerySet, user: User) -> dict[UUID, str]:
    """How the servers are for this person that are another for everybody: those with a sign-in."""
    signed = list(rows.filter(Q(auth_type=AuthType.OAUTH) | ~Q(hosted_by="")))
    needy = missing_sign_ins(signed, user.pk)
    return {server.pk: status_of(server, needs_sign_in=server.pk in needy) for server in signed}


def _group(status: str, *, is_on: bool, is_held: bool) -> ServerGroup:
    if not is_on:
        return ServerGroup.OFF
    if is_held or status in (ServerStatus.AUTH_REQUIRED, ServerStatus.ERROR):
        return ServerGroup.ATTENTION
    return ServerGroup.CONNECTED if status == ServerStatus.CONNECTED else ServerGroup.WAITING
