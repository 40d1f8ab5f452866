"""The catalogue as one reader sees it: what is on offer, for whom, and what is here already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcp_servers.models import CatalogueChoice
from mcp_servers.registry.catalogue.sources import all_sources
from mcp_servers.registry.catalogue.values import CatalogueEntry, InstallableBy
from workspaces.errors import NotFound
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.models import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class CataloguePage:
    """What the page shows."""

    entries: tuple[CatalogueEntry, ...]
    categories: tuple[str, ...]
    """Of all entries that the reader may see, whatever was searched for."""
    total: int


def list_entries(
    *, workspace: Workspace, actor: Actor, search: str = "", category: str = ""
) -> CataloguePage:
    """The entries that the reader may see: administrators all, members those that were opened to them."""
    visible = visible_entries(workspace=workspace, actor=actor)
    words = search.casefold().split()
    found = [
        entry
        for entry in visible
        if (not category or category in entry.categories)
        and all(word in _text_of(entry) for word in words)
    ]
    categories = sorted({name for entry in visible for name in entry.categories}, key=str.casefold)
    return CataloguePage(entries=tuple(found), categories=tuple(categories), total=len(visible))


def visible_entries(*, workspace: Workspace, actor: Actor) -> list[CatalogueEntry]:
    """Every entry that the reader may see, with who may install it."""
    is_admin = has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
    open_to_all = _open_to_all(workspace)
    entries = [
        replace(
            entry,
            audience=InstallableBy.EVERYBODY
            if (entry.source, entry.slug) in open_to_all
            else InstallableBy.ADMINS,
        )
        for source in all_sources()
        for entry in source.entries(workspace=workspace, actor=actor)
    ]
    if is_admin:
        return entries
    return [
        entry
        for entry in entries
        if entry.audience is InstallableBy.EVERYBODY or _has_own(entry.installed)
    ]


def entry_of(*, workspace: Workspace, actor: Actor, source: str, slug: str) -> CatalogueEntry:
    """One entry.

    Raises:
        NotFound: there is none that the reader may see.
    """
    for entry in visible_entries(workspace=workspace, actor=actor):
        if (entry.source, entry.slug) == (source, slug):
            return entry
    raise NotFound


def _open_to_all(workspace: Workspace) -> set[tuple[str, str]]:
    if not workspace.allows_personal_servers:
        return set()
    choices: Iterable[tuple[str, str]] = (
        CatalogueChoice.objects.for_workspace(workspace)
        .filter(is_for_everybody=True)
        .values_list("source", "slug")
    )
    return set(choices)


def _has_own(installed: Sequence[object]) -> bool:
    return any(getattr(one, "is_own", False) for one in installed)


def _text_of(entry: CatalogueEntry) -> str:
    parts = (entry.title, entry.description, *entry.categories, entry.provider, entry.where)
    return " ".join(parts).casefold()
