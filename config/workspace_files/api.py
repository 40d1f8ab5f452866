"""A workspace's settings as one document, over REST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.checks import CheckRunOutput
from chat.services.check_showing import run_json
from config.workspace_files.applying import apply_file, check_buds
from config.workspace_files.exporting import workspace_document
from config.workspace_files.target import WorkspaceTarget
from mcp_servers.models import McpServer
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.errors import InvalidInput

_DRY_RUN = "dry_run"
_UNTESTED_KEYS = "untested_keys"
_SKIP_CHECKS = "skip_checks"


class AppliedOutput(serializers.Serializer[Any]):
    """What has changed, or with `dry_run` would change."""

    diff = serializers.CharField(
        allow_blank=True, help_text="Of the document as YAML, before and after; empty: nothing."
    )
    secrets = serializers.ListField(
        child=serializers.CharField(),
        help_text="Places in the document whose secret is new, another or gone. The diff shows none of them.",
    )
    notes = serializers.ListField(
        child=serializers.CharField(), help_text="What you have to know or do besides."
    )


class BegunChecksOutput(serializers.Serializer[Any]):
    """Checks that run with a document."""

    runs = CheckRunOutput(many=True)
    notes = serializers.ListField(
        child=serializers.CharField(),
        help_text="Buds whose checks did not begin, and why. Send the document again later.",
    )


class ConfigViewSet(WorkspaceViewSet):
    """Rules, providers, servers, buds, alerts, streams, views and schedules of the workspace, without anything secret."""

    model = McpServer
    scopes = Scopes(read="workspace:write", write="workspace:write")
    pagination_class = None  # one document
    serializer_class = AppliedOutput
    parameters: ClassVar[Mapping[str, Sequence[str]]] = {
        "create": [_DRY_RUN, _UNTESTED_KEYS, _SKIP_CHECKS]
    }

    @extend_schema(responses=OpenApiTypes.OBJECT, filters=False)
    def list(self, request: Request) -> Response:
        """Give the document. Usual values are left out."""
        return Response(workspace_document(WorkspaceTarget(self.workspace, self.actor)))

    @extend_schema(
        request=OpenApiTypes.OBJECT,
        responses={200: AppliedOutput},
        parameters=[
            OpenApiParameter(
                _DRY_RUN, bool, description="Change nothing; only tell. New keys are tested."
            ),
            OpenApiParameter(
                _UNTESTED_KEYS,
                bool,
                description="Store new keys of providers without a test, as while a provider is down.",
            ),
            OpenApiParameter(
                _SKIP_CHECKS,
                bool,
                description="Apply it though checks that buds demand have not passed; the log says so.",
            ),
        ],
    )
    def create(self, request: Request) -> Response:
        """Make the workspace as the document says. What it does not name stays as it is.

        New keys of providers are tested first: 422 at `providers.<name>.api_key` if one is refused or cannot be
        tested; then nothing is changed.

        422 at `buds.<slug>` if a bud demands checks that have not passed with the document. Send it to
        `check-runs/`, wait until they have passed, and send it again.
        """
        applied = apply_file(
            WorkspaceTarget(self.workspace, self.actor),
            request.data,
            is_dry_run=_is_asked(request, _DRY_RUN),
            tests_keys=not _is_asked(request, _UNTESTED_KEYS),
            skips_checks=_is_asked(request, _SKIP_CHECKS),
        )
        return self.answer(applied)

    @extend_schema(request=OpenApiTypes.OBJECT, responses={201: BegunChecksOutput}, filters=False)
    @action(detail=False, methods=["post"], url_path="check-runs", pagination_class=None)
    def check_runs(self, request: Request) -> Response:
        """Begin the checks that buds demand before they take what the document says. Nothing else is changed."""
        target = WorkspaceTarget(self.workspace, self.actor)
        runs = check_buds(target, request.data, person=self.person)
        answer = {"runs": [run_json(run, self.actor) for run in runs], "notes": target.notes}
        return Response(answer, status=201)


def _is_asked(request: Request, name: str) -> bool:
    asked = request.query_params.get(name, "false").lower()
    if asked not in ("true", "false"):
        raise InvalidInput(fields={name: [_("Use true or false.")]})
    return asked == "true"


routes: list[tuple[str, type[WorkspaceViewSet]]] = [("config", ConfigViewSet)]
