"""Servers' own icons: fetched by Trellis through the egress client, drawn anew, and served from its own origin."""

from __future__ import annotations

import base64
import hashlib
import io
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import httpx2
from django.urls import reverse

from mcp_servers.models import McpServer, ServerIcon
from workspaces import outbound
from workspaces.database.prepared import PreparedRows
from workspaces.errors import InvalidEndpoint
from workspaces.models import User
from workspaces.pictures import UnshowablePicture, clean_picture

if TYPE_CHECKING:
    from workspaces.models import Workspace

logger = logging.getLogger(__name__)

MIME_TYPE: Final = "image/png"
SIDE: Final = 64
"""Pixels of the longer side: twice what is shown."""
_MOST_BYTES: Final = 256 * 1024
_MOST_PIXELS: Final = 4_000_000
_SECONDS: Final = 5.0
_BOUNDS: Final = outbound.Bounds(
    connect_seconds=3.0, idle_seconds=3.0, total_seconds=_SECONDS, body_bytes=_MOST_BYTES
)


def keep_icon(server: McpServer, sources: Sequence[str], *, retries: bool) -> bool:
    """Keep the first of a server's icons that can be shown. Waits for its host, at most some seconds.

    Args:
        sources: as `icon_sources` gives them.
        retries: try again what could not be shown the last time.

    Returns:
        Whether pages show another picture from now on.
    """
    rows = ServerIcon.objects.for_workspace(server.workspace_id).filter(server=server)
    known = rows.values_list("source_hash", "digest").first()
    if not sources:
        if known is not None:
            rows.delete()
        return known is not None and known[1] != ""
    source_hash = hashlib.sha256("\n".join(sources).encode("utf-8", "replace")).hexdigest()
    if known is not None and known[0] == source_hash and (known[1] or not retries):
        return False
    content = next(filter(None, map(_picture_of, sources)), b"")
    digest = hashlib.sha256(content).hexdigest()[:16] if content else ""
    ServerIcon.objects.for_workspace(server.workspace_id).update_or_create(
        server=server,
        defaults={
            "workspace_id": server.workspace_id,
            "source_hash": source_hash,
            "content": content,
            "digest": digest,
        },
    )
    return digest != (known[1] if known else "")


def icon_addresses(workspace: Workspace, user: User) -> dict[str, str]:
    """Where the icons are that a person sees, by server. An address changes with its picture."""
    return {
        str(
            icon.server_id
        ): f"{reverse('mcp_servers:icon', args=[workspace.slug, icon.server_id])}?v={icon.digest}"
        for icon in _SEEN[user.is_superuser].all(workspace.pk, user.pk)
    }


def _seen_by(is_superuser: bool, workspace_id: UUID, user_id: UUID) -> Any:
    user = User(pk=user_id, is_superuser=is_superuser)
    rows = ServerIcon.objects.for_workspace(workspace_id).visible_to(user).exclude(digest="")
    return rows.only("server_id", "digest")


_SEEN: Final = {
    is_superuser: PreparedRows[ServerIcon](partial(_seen_by, is_superuser), UUID, UUID)
    for is_superuser in (False, True)
}


def _picture_of(source: str) -> bytes:
    """A small PNG of what a source names; empty: it is none."""
    try:
        raw = _data_of(source) if source.startswith("data:") else _fetched(source)
        return _small(raw)
    except (
        InvalidEndpoint,
        UnshowablePicture,
        httpx2.HTTPError,
        TimeoutError,
        ValueError,
    ) as error:
        logger.info("server_icon_not_shown", extra={"kind": type(error).__name__})
        return b""


def _data_of(source: str) -> bytes:
    head, _, data = source.partition(",")
    if not head.endswith(";base64"):
        raise ValueError("not base64")
    return base64.b64decode(data, validate=True)


def _fetched(source: str) -> bytes:
    from mcp_servers.client.connections import runtime

    return runtime.run_sync(_fetch(str(outbound.parse_endpoint(source))), 2 * _SECONDS)


async def _fetch(address: str) -> bytes:
    async with outbound.client(bounds=_BOUNDS, headers={"accept": "image/*"}) as client:
        answer = await client.get(address)
        answer.raise_for_status()
        return answer.content


def _small(raw: bytes) -> bytes:
    clean = clean_picture(base64.b64encode(raw).decode(), max_pixels=_MOST_PIXELS)
    from PIL import Image  # heavy, and few servers have icons

    with Image.open(io.BytesIO(base64.b64decode(clean.data))) as image:
        image.thumbnail((SIDE, SIDE))
        out = io.BytesIO()
        image.convert("RGBA").save(out, "PNG", optimize=True)
    return out.getvalue()
