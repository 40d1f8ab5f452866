"""The proof as a download: the verifiable export of a workspace, and the program that checks it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from allauth.account.decorators import login_required
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, StreamingHttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from audit.proof import trellis_verify
from audit.proof.signing import SigningKeyMissing
from audit.sealing.rotation import key_in_use
from audit.verification.exporting import proof_pieces, record_proof_export
from audit.views.files import expect_right
from workspaces.database import in_database
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from django.http import HttpRequest

    from audit.exports.streams import Check
    from workspaces.actors import Actor
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace


@require_GET
@login_required
def proof_export(
    request: WorkspaceRequest, workspace_slug: str
) -> HttpResponse | StreamingHttpResponse:
    """The sealed log of a workspace as a file that proves itself; that it was taken is recorded first."""
    workspace = workspace_of(request, Permission.EXPORT_AUDIT)
    try:
        return give_proof(request, workspace, actor=request.actor)
    except SigningKeyMissing:
        text = "The log cannot be signed right now; ask who runs this installation.\n"
        return HttpResponse(text, status=503, content_type="text/plain; charset=utf-8")


def give_proof(
    request: HttpRequest, workspace: Workspace, *, actor: Actor
) -> StreamingHttpResponse:
    """Give the sealed log of a workspace as a file that proves itself. That it was taken is recorded first.

    Raises:
        PermissionDenied: the actor may not export.
        SigningKeyMissing: nothing can be signed just now.
        AuditUnavailable: it could not be recorded; then nothing is given.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk)
    key_in_use()
    record_proof_export(actor=actor, workspace_id=workspace.pk)
    pieces = _checked(proof_pieces(workspace.pk), partial(expect_right, actor, workspace.pk))
    # A synchronous iterator under an asynchronous server would be read whole before the first byte.
    is_async = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(
        _one_by_one(pieces) if is_async else pieces, content_type="application/x-ndjson"
    )
    name = f"trellis-proof-{workspace.slug}-{timezone.now():%Y%m%dT%H%M%SZ}.jsonl"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@require_GET
@login_required
def verifier(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The program that checks such a file on any machine."""
    workspace_of(request, Permission.EXPORT_AUDIT)
    return give_verifier()


def give_verifier() -> HttpResponse:
    """Give the program itself."""
    text = Path(trellis_verify.__file__).read_bytes()
    response = HttpResponse(text, content_type="text/x-python; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="trellis_verify.py"'
    return response


def _checked(pieces: Iterator[bytes], check: Check) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        check()


async def _one_by_one(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each piece is made when the last has been taken; a reader who leaves ends it there."""
    while (piece := await in_database(next, pieces, None)) is not None:
        yield piece
