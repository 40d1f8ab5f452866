"""Giving a part of a copy to the person whose data it is, and to nobody else."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.utils.text import slugify

from chat.artifacts import serving
from chat.models import DataCopy, DataCopyPart
from chat.services.data_copies import check_is_theirs, record_download
from chat.values import CopyStatus
from mcp_servers.gate.access import as_of_now
from workspaces.actors import Actor
from workspaces.errors import NotFound

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase


def give_part(
    request: HttpRequest, row: DataCopy, number: int, *, actor: Actor
) -> HttpResponseBase:
    """One part, to be saved; that it is taken is recorded first. Needs a row of the caller's own.

    Raises:
        NotFound: it is not ready, has been erased, or has no such part.
        ContentMissing: the storage does not have it.
        PermissionDenied: it is somebody else's.
    """
    check_is_theirs(row.owner_id, actor)
    parts = DataCopyPart.objects.for_workspace(row.workspace_id).filter(copy=row, number=number)
    part = parts.select_related("copy__workspace").first()
    if part is None or part.copy.status != CopyStatus.READY:
        raise NotFound
    return serving.give_large(
        request,
        path=part.path,
        size=part.size,
        sha256=part.sha256,
        content_type="application/zip",
        name=_name(part),
        record=partial(record_download, part=part, actor=actor),
        check=partial(_expect_right, part, actor),
    )


def _expect_right(part: DataCopyPart, actor: Actor) -> None:
    """A part may take long. It was erased meanwhile, or its person has left: their download fails."""
    as_of_now(actor)
    copies = DataCopy.objects.for_workspace(part.workspace_id)
    if not copies.filter(pk=part.copy_id, status=CopyStatus.READY).exists():
        raise NotFound


def _name(part: DataCopyPart) -> str:
    where = slugify(part.copy.workspace.slug) or "workspace"
    day = f"{part.copy.created_at:%Y-%m-%d}"
    return f"trellis-{where}-{day}-part-{part.number}.zip"
