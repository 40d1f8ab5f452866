"""``Idempotency-Key`` on POST: a repeated request gets the first one's answer and does nothing again.

The key is stored before the work begins. Same key and same request: the same answer; another request: 422; still at
work: 409. An answer of 5xx is not kept, so that a repeat tries again. A secret that an answer shows once is not kept
either: a repeat says null in its place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException, ParseError
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from workspaces.errors import Conflict, InvalidInput
from workspaces.models import IdempotentRequest
from workspaces.process.departures import departure_of
from workspaces.redaction import is_secret_key, redact_known

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace
    from workspaces.process.departures import Departure
    from workspaces.scoping import WorkspaceQuerySet

HEADER = "Idempotency-Key"
MAX_LENGTH = 200
ABANDONED_AFTER: Final = timedelta(minutes=15)
"""Longer than any request takes. The process that had it has ended since."""


class Replayed(APIException):
    """Carries a stored answer past the view."""

    def __init__(self, row: IdempotentRequest) -> None:
        super().__init__("replayed")
        self.row = row

    def response(self) -> Response:
        """The stored answer, marked as such."""
        return Response(
            self.row.body, status=self.row.status_code, headers={"Idempotency-Replayed": "true"}
        )


def departure_of_once(request: Request) -> Departure | None:
    """The departure of whoever sent this; None if they sent a key, and so may come back for the answer."""
    return None if HEADER in request.headers else departure_of(request._request)


def begin(request: Request) -> IdempotentRequest | None:
    """Claim the request's key; None if it has none.

    Raises:
        ParseError: the key is not printable ASCII of at most MAX_LENGTH characters.
        Replayed: the request was answered before.
        InvalidInput: the key belongs to another request.
        Conflict: the first request is still at work.
    """
    key = request.headers.get(HEADER)
    if request.method != "POST" or key is None:
        return None
    if not key or len(key) > MAX_LENGTH or not (key.isascii() and key.isprintable()):
        raise ParseError(f"{HEADER} must be 1 to {MAX_LENGTH} printable ASCII characters.")
    http_request = cast("WorkspaceRequest", request._request)
    workspace = http_request.workspace  # None: the request is about the whole installation
    fingerprint = _fingerprint(request)
    try:
        with transaction.atomic():
            return IdempotentRequest.objects.create(
                workspace=workspace, user=http_request.user, key=key, fingerprint=fingerprint
            )
    except IntegrityError:
        found = requests_of(workspace).filter(user=http_request.user, key=key).first()
        if found is None:  # it has just failed on our side, and may be tried again
            raise Conflict(_("The first request with this key is still running.")) from None
        row = found
    if row.fingerprint != fingerprint:
        raise InvalidInput(
            _("This %(header)s was used for another request.") % {"header": HEADER}, fields={}
        )
    if row.status_code is None and timezone.now() - row.created_at < ABANDONED_AFTER:
        raise Conflict(_("The first request with this key is still running."))
    if row.status_code is None:
        # Whether it did something before its process ended, nobody here knows.
        raise Conflict(
            _(
                "The first request with this key did not end. See what came of it, then send it again with a new key."
            )
        )
    raise Replayed(row)


def requests_of(workspace: Workspace | UUID | None) -> WorkspaceQuerySet[IdempotentRequest]:
    """What is stored of requests to one workspace; None: of those to the whole installation."""
    if workspace is None:
        return IdempotentRequest.objects.across_workspaces().filter(workspace=None)
    return IdempotentRequest.objects.for_workspace(workspace)


def finish(
    row: IdempotentRequest, response: Response, *, shown_once: Collection[str] = frozenset()
) -> None:
    """Store the answer without secrets, or forget the key if the server failed.

    Args:
        shown_once: what else of the answer is not stored, besides what its name or its value tells to be a secret.
    """
    mine = requests_of(row.workspace_id).filter(pk=row.pk)
    if response.status_code >= 500:
        mine.delete()
        return
    body = None if response.data is None else json.loads(JSONRenderer().render(response.data))
    mine.update(status_code=response.status_code, body=_kept(body, row.workspace_id, shown_once))


def _kept(value: Any, workspace_id: UUID | None, shown_once: Collection[str]) -> Any:
    """What is stored of an answer, or of a part of it."""
    if isinstance(value, list):
        return [_kept(one, workspace_id, shown_once) for one in value]
    if not isinstance(value, dict):
        return redact_known(value, workspace_id=workspace_id)
    kept = {name: _kept(part, workspace_id, shown_once) for name, part in value.items()}
    for name, part in value.items():
        if name in shown_once or (is_secret_key(name) and isinstance(part, str) and part):
            kept[name] = [] if isinstance(part, list) else None
    return kept


def _fingerprint(request: Request) -> str:
    """Hash what makes two requests the same: the canonical form of the parsed body, not its spelling."""
    body = json.dumps(request.data, sort_keys=True, ensure_ascii=True, default=_stand_in)
    text = f"{request.method} {request.get_full_path()}\n{body}"
    return hashlib.sha256(text.encode()).hexdigest()


def _stand_in(value: object) -> str:
    """What JSON does not know; of an uploaded file what is in it."""
    if not isinstance(value, UploadedFile):
        return str(value)
    digest = hashlib.sha256()
    for chunk in value.chunks():
        digest.update(chunk)
    value.seek(0)
    return f"{value.name} {digest.hexdigest()}"
