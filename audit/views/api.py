"""The log, its reports and its proof as files, over REST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action

from audit import exports
from audit.errors import LogNotSigned
from audit.exports import pdf
from audit.filters import RANGES, EntryFilter, read_filter
from audit.models import AuditEntry
from audit.proof.signing import SigningKeyMissing
from audit.reports.report import BY
from audit.views.files import give_log, give_report
from audit.views.proof import give_proof, give_verifier
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.api.filtering import one_of
from workspaces.errors import InvalidInput
from workspaces.roles import Permission, require
from workspaces.words.formats import time_zone_of

if TYPE_CHECKING:
    from datetime import datetime

    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

_TIMES = [name for name in RANGES if name != "custom"]
_FILTERS = OpenApiParameter("q", str, description="Filters as they are typed on the page.")
_MEDIA_TYPES = {one.media_type.partition(";")[0] for one in exports.FORMATS.values()}


def _range(description: str) -> OpenApiParameter:
    return OpenApiParameter("range", str, enum=_TIMES, description=description)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A parameter that takes one of some values."""

    name: str
    known: list[str]
    usual: str

    def read(self, request: Request) -> str:
        """Give what was asked for.

        Raises:
            InvalidInput: it is none of them.
        """
        value = request.query_params.get(self.name, self.usual)
        if value not in self.known:
            raise InvalidInput(fields={self.name: [one_of(self.known)]})
        return str(value)


class AuditFileViewSet(WorkspaceViewSet):
    """Files of the log, for those who may export it. That you took one is an entry of the log, written before you get it."""

    model = AuditEntry  # type: ignore[assignment]  # holds values, not a foreign key
    scopes = Scopes(read="audit:read", write="audit:read")
    pagination_class = None  # files
    parameters: ClassVar[Any] = {"log": ("as", "q", "range"), "report": ("q", "range", "by")}

    @extend_schema(
        summary="Take the log as a file",
        tags=["audit"],
        parameters=[
            OpenApiParameter(
                "as",
                str,
                enum=list(exports.FORMATS),
                description="csv if it is absent. `ocsf.jsonl` and `cef` are for a SIEM.",
            ),
            _FILTERS,
            _range("all if it is absent; else use `since:` in q."),
        ],
        responses={(200, one): OpenApiTypes.BINARY for one in sorted(_MEDIA_TYPES)},
        filters=False,
    )
    @action(detail=False, methods=["get"])
    def log(self, request: Request) -> HttpResponseBase:
        """Give the entries that the filters leave, the oldest first, at any number."""
        now = timezone.now()
        extension = _Choice(name="as", known=list(exports.FORMATS), usual="csv").read(request)
        wanted = self._wanted(request, usual="all", now=now)
        return give_log(
            request._request,
            self.workspace,
            wanted,
            extension=extension,
            actor=self.actor,
            now=now,
        )

    @extend_schema(
        summary="Take the report as a file",
        tags=["audit"],
        parameters=[
            _FILTERS,
            _range("7d if it is absent; else use `since:` in q."),
            OpenApiParameter("by", str, enum=list(BY), description="What the chart is of."),
        ],
        responses={(200, pdf.MEDIA_TYPE): OpenApiTypes.BINARY},
        filters=False,
    )
    @action(detail=False, methods=["get"])
    def report(self, request: Request) -> HttpResponseBase:
        """Give the numbers and charts of the reports page as a PDF file."""
        now = timezone.now()
        by = _Choice(name="by", known=list(BY), usual="outcome").read(request)
        wanted = self._wanted(request, usual="7d", now=now)
        if wanted.sort != "time":
            raise InvalidInput(fields={"q": [_("A report has no order.")]})
        zone = time_zone_of(self.person.time_zone)
        return give_report(self.workspace, wanted, by=by, actor=self.actor, now=now, zone=zone)

    @extend_schema(
        summary="Take the proof of the log",
        tags=["audit"],
        responses={(200, "application/x-ndjson"): OpenApiTypes.BINARY},
        filters=False,
    )
    @action(detail=False, methods=["get"])
    def proof(self, request: Request) -> HttpResponseBase:
        """Give the sealed log as JSON lines that prove themselves. `verifier/` checks them. 503: it cannot be signed now."""
        try:
            return give_proof(request._request, self.workspace, actor=self.actor)
        except SigningKeyMissing as error:
            raise LogNotSigned from error

    @extend_schema(
        summary="Take the program that checks a proof",
        tags=["audit"],
        responses={(200, "text/x-python"): OpenApiTypes.BINARY},
        filters=False,
    )
    @action(detail=False, methods=["get"])
    def verifier(self, request: Request) -> HttpResponseBase:
        """Give the program. It needs Python and its package `cryptography`, and no database."""
        require(self.actor, Permission.EXPORT_AUDIT, workspace_id=self.workspace.pk)
        return give_verifier()

    def _wanted(self, request: Request, *, usual: str, now: datetime) -> EntryFilter:
        chosen = _Choice(name="range", known=_TIMES, usual=usual).read(request)
        require(self.actor, Permission.EXPORT_AUDIT, workspace_id=self.workspace.pk)
        wanted = read_filter({"q": request.query_params.get("q", ""), "range": chosen}, now=now)
        if wanted.errors:  # without the wrong condition the file would hold more than was asked for
            raise InvalidInput(fields={"q": list(wanted.errors)})
        return wanted
