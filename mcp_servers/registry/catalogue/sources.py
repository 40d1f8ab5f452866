"""The sources of the catalogue; each registers itself when its app is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workspaces.errors import NotFound

if TYPE_CHECKING:
    from mcp_servers.registry.catalogue.values import CatalogueSource

_sources: dict[str, CatalogueSource] = {}


def register_source(source: CatalogueSource) -> None:
    """Have a source's entries in the catalogue from now on, after those of earlier ones."""
    _sources[source.key] = source


def all_sources() -> list[CatalogueSource]:
    """Every source, in the order in which they registered."""
    return list(_sources.values())


def source_of(key: str) -> CatalogueSource:
    """One source.

    Raises:
        NotFound: there is no such source.
    """
    try:
        return _sources[key]
    except KeyError:
        raise NotFound from None
