"""A server's resources, templates and prompts in rows. They call nothing, so they need nobody's acceptance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils import timezone

from mcp_servers.client.canonical import clean_text
from mcp_servers.client.definitions import read_icons, storable
from mcp_servers.models import McpPrompt, McpResource, McpServer, ServerState
from mcp_servers.models.resources import MAX_NAME_LENGTH, MAX_URI_LENGTH
from mcp_servers.registry.discovery.sightings import SEEN_EVERY

if TYPE_CHECKING:
    from mcp_servers.models.resources import OfferedQuerySet

MAX_ROWS: Final = 5_000
"""Of each kind and server."""

_MAX_DESCRIPTION: Final = 4 * 1024
_MAX_ARGUMENTS: Final = 50
_MAX_SIZE: Final = 2**63 - 1
_BATCH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferCounts:
    """What a new look brought."""

    total: int
    added: int = 0
    changed: int = 0
    removed: int = 0
    skipped: int = 0
    """Entries without a usable name or URI, or with one that was there already."""

    @property
    def has_news(self) -> bool:
        """Whether open pages should look again."""
        return bool(self.added or self.changed or self.removed)


def store_resources(
    *, server: McpServer, raw: Iterable[object], is_template: bool = False
) -> OfferCounts:
    """Take over a server's list of resources, or of templates.

    Source: MCP specification, "Resources": Data Types.
    """
    rows = McpResource.objects.for_workspace(server.workspace_id).filter(
        server=server, is_template=is_template
    )
    uri_key = "uriTemplate" if is_template else "uri"

    def read(item: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
        uri = item.get(uri_key)
        if not isinstance(uri, str) or not 0 < len(uri) <= MAX_URI_LENGTH or uri != clean_text(uri):
            return None
        size = item.get("size")
        is_size = isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= _MAX_SIZE
        return uri, {
            "name": _text(item.get("name"), MAX_NAME_LENGTH),
            "title": _text(item.get("title"), MAX_NAME_LENGTH),
            "description": _text(item.get("description"), _MAX_DESCRIPTION),
            "mime_type": _text(item.get("mimeType"), 200),
            "size": size if is_size else None,
            "annotations": storable(item.get("annotations")),
            "icons": read_icons(item.get("icons")),
        }

    def new(uri: str) -> McpResource:
        return McpResource(
            workspace_id=server.workspace_id, server=server, uri=uri, is_template=is_template
        )

    return _store(server, rows, raw, key="uri", read=read, new=new)


def store_prompts(*, server: McpServer, raw: Iterable[object]) -> OfferCounts:
    """Take over a server's list of prompts.

    Source: MCP specification, "Prompts": Data Types.
    """
    rows = McpPrompt.objects.for_workspace(server.workspace_id).filter(server=server)

    def read(item: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
        name = item.get("name")
        if (
            not isinstance(name, str)
            or not 0 < len(name) <= MAX_NAME_LENGTH
            or name != clean_text(name)
        ):
            return None
        return name, {
            "title": _text(item.get("title"), MAX_NAME_LENGTH),
            "description": _text(item.get("description"), _MAX_DESCRIPTION),
            "arguments": _arguments(item.get("arguments")),
            "icons": read_icons(item.get("icons")),
        }

    def new(name: str) -> McpPrompt:
        return McpPrompt(workspace_id=server.workspace_id, server=server, name=name)

    return _store(server, rows, raw, key="name", read=read, new=new)


@transaction.atomic
def _store(
    server: McpServer,
    rows: OfferedQuerySet,
    raw: Iterable[object],
    *,
    key: str,
    read: Callable[[Mapping[str, Any]], tuple[str, dict[str, Any]] | None],
    new: Callable[[str], Any],
) -> OfferCounts:
    # One look at a time stores: two at once would both add what is new.
    ServerState.objects.for_workspace(server.workspace_id).select_for_update().fetch(server.pk)
    now = timezone.now()
    seen, skipped = _read_all(raw, read)
    known: dict[str, Any] = {getattr(row, key): row for row in rows}
    created, changed, touched = [], [], []
    for name, values in seen.items():
        row = known.get(name)
        if row is None:
            created.append(_filled(new(name), values, now))
        elif row.removed_at is not None or any(
            getattr(row, field) != value for field, value in values.items()
        ):
            changed.append(_filled(row, values, now))
        elif now - row.last_seen_at >= SEEN_EVERY:
            touched.append(row.pk)
    removed = [row.pk for name, row in known.items() if name not in seen and row.removed_at is None]
    model = rows.model
    model._default_manager.bulk_create(created, batch_size=_BATCH)
    if changed:
        fields = [*next(iter(seen.values())), "last_seen_at", "removed_at", "updated_at"]
        model._default_manager.bulk_update(changed, fields, batch_size=_BATCH)
    for start in range(0, len(touched), _BATCH):
        rows.filter(pk__in=touched[start : start + _BATCH]).update(last_seen_at=now)
    for start in range(0, len(removed), _BATCH):
        rows.filter(pk__in=removed[start : start + _BATCH]).update(removed_at=now)
    return OfferCounts(
        total=len(seen),
        added=len(created),
        changed=len(changed),
        removed=len(removed),
        skipped=skipped,
    )


def _read_all(
    raw: Iterable[object], read: Callable[[Mapping[str, Any]], tuple[str, dict[str, Any]] | None]
) -> tuple[dict[str, dict[str, Any]], int]:
    seen: dict[str, dict[str, Any]] = {}
    skipped = 0
    for item in raw:
        found = read(item) if isinstance(item, dict) else None
        if found is None or found[0] in seen or len(seen) >= MAX_ROWS:
            skipped += 1
        else:
            seen[found[0]] = found[1]
    return seen, skipped


def _filled(row: Any, values: Mapping[str, Any], now: datetime) -> Any:
    for field, value in values.items():
        setattr(row, field, value)
    row.last_seen_at = row.updated_at = now
    row.removed_at = None
    return row


def _text(value: object, limit: int) -> str:
    return clean_text(value)[:limit] if isinstance(value, str) else ""


def _arguments(raw: object) -> list[dict[str, Any]]:
    if not isinstance(raw, list):
        return []
    return [
        {
            "name": _text(item["name"], MAX_NAME_LENGTH),
            "title": _text(item.get("title"), MAX_NAME_LENGTH),
            "description": _text(item.get("description"), 1000),
            "required": item.get("required") is True,
        }
        for item in raw[:_MAX_ARGUMENTS]
        if isinstance(item, dict) and isinstance(item.get("name"), str) and item["name"]
    ]
