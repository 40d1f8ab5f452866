"""Checks of buds over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import UsageOutput
from chat.check_shapes import LONGEST_RECORDING
from chat.models import BudCheck, CheckRun, Repeat, ResultStatus, RunStatus
from chat.services.buds import require_edit
from chat.services.check_keeping import keep_call
from chat.services.check_runs import cancel_run
from chat.services.check_showing import check_json, run_json
from chat.services.checks import remove_check, update_check
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.scoping import WorkspaceQuerySet


class ExpectedCallShape(serializers.Serializer[Any]):
    """A tool that the bud has to call."""

    tool = serializers.CharField(max_length=460, help_text="`server.tool`, or the tool's name.")
    arguments = serializers.DictField(
        required=False, help_text="Those that the call has to have, among others."
    )


class RecordingShape(serializers.Serializer[Any]):
    """What a tool that may change data gives in a check, in place of being called."""

    tool = serializers.CharField(max_length=460)
    arguments = serializers.DictField(
        required=False, help_text="It answers only calls with these. Empty: any."
    )
    result = serializers.CharField(
        max_length=LONGEST_RECORDING, allow_blank=True, required=False, trim_whitespace=False
    )
    is_error = serializers.BooleanField(required=False)


class BudCheckInput(serializers.Serializer[Any]):
    """A question with what is expected of its answer: at least one thing."""

    question = serializers.CharField(max_length=4_000)
    calls = ExpectedCallShape(many=True, required=False)
    contains = serializers.ListField(
        child=serializers.CharField(max_length=300), max_length=20, required=False
    )
    excludes = serializers.ListField(
        child=serializers.CharField(max_length=300),
        max_length=20,
        required=False,
        help_text="Words that the answer must not have.",
    )
    criterion = serializers.CharField(
        max_length=500,
        allow_blank=True,
        required=False,
        help_text="A sentence that the bud's model judges the answer by.",
    )
    recordings = RecordingShape(many=True, required=False)


class BudCheckOutput(BudCheckInput):
    """A check of a bud."""

    id = serializers.UUIDField()
    bud_id = serializers.UUIDField()
    version = serializers.IntegerField(help_text="Grows with each change.")


class BudCheckChange(BudCheckInput):
    """New values of a check."""

    version = serializers.IntegerField(
        min_value=1,
        required=False,
        help_text="The version that you have seen. If the check has another one by now, the answer is 409 and nothing changes.",
    )


class CheckedCallOutput(serializers.Serializer[Any]):
    call_id = serializers.UUIDField()
    tool = serializers.CharField()
    status = serializers.CharField()
    is_recorded = serializers.BooleanField(help_text="Answered from a recording, and not called.")
    arguments = serializers.DictField(allow_null=True, help_text="Null: not yours to read.")
    result = serializers.CharField(allow_null=True)


class CheckResultOutput(serializers.Serializer[Any]):
    """How one check went."""

    id = serializers.UUIDField()
    check_id = serializers.UUIDField(allow_null=True)
    question = serializers.CharField()
    status = serializers.ChoiceField(ResultStatus.choices)
    faults = serializers.ListField(
        child=serializers.CharField(), help_text="Why it failed, in sentences."
    )
    notes = serializers.ListField(child=serializers.CharField())
    answer = serializers.CharField(allow_null=True, help_text="Null: not yours to read.")
    judged = serializers.CharField(
        allow_null=True,
        help_text="What the model that judged the answer said of it. Null: not yours to read.",
    )
    calls = CheckedCallOutput(many=True)


class CheckRunOutput(serializers.Serializer[Any]):
    """All checks of a bud, run once."""

    id = serializers.UUIDField()
    bud_id = serializers.UUIDField()
    version = serializers.IntegerField(allow_null=True, help_text="Null: an unsaved draft.")
    status = serializers.ChoiceField(RunStatus.choices)
    note = serializers.CharField()
    total = serializers.IntegerField()
    passed = serializers.IntegerField()
    person = serializers.CharField()
    is_scheduled = serializers.BooleanField(help_text="It began by itself.")
    may_read = serializers.BooleanField(
        help_text="Whether answers, arguments and results are yours to read."
    )
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    usage = UsageOutput(
        allow_null=True,
        help_text="Of the answers and their verdicts. Null in lists, and as long as nothing is counted.",
    )
    results = CheckResultOutput(many=True, allow_null=True, help_text="Null in lists.")


class CheckPlanInput(serializers.Serializer[Any]):
    """When the checks run without somebody asking for it."""

    also_shown = frozenset({"person", "next_at", "trouble"})
    """What `CheckPlanOutput` says besides may come with it."""

    before_saving = serializers.BooleanField(
        required=False,
        help_text="A change is saved only after they have passed with it, unless somebody insists.",
    )
    every = serializers.ChoiceField(
        Repeat.choices, allow_blank=True, required=False, help_text="Empty: never."
    )


class CheckPlanOutput(CheckPlanInput):
    """When a bud's checks run by themselves, and with whose rights."""

    person = serializers.CharField(help_text="Empty: they do not run on a schedule.")
    next_at = serializers.DateTimeField(allow_null=True)
    trouble = serializers.CharField(help_text="Why they did not run when they were due.")


class KeptCallInput(serializers.Serializer[Any]):
    call_id = serializers.UUIDField()


class CheckViewSet(WorkspaceViewSet):
    """Test questions of buds, for those who may edit the bud."""

    model = BudCheck
    scopes = Scopes(read="buds:write", write="buds:write")
    serializer_class = BudCheckOutput
    parameters: ClassVar[Any] = {}

    def rows(self) -> WorkspaceQuerySet[Any]:
        return super().rows().select_related("bud")

    @extend_schema(responses=BudCheckOutput)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One check."""
        return Response(check_json(self._editable()))

    @extend_schema(request=BudCheckChange, responses=BudCheckOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change some of its values.

        409: somebody else has changed it since the `version` that you give.
        """
        check = self._editable()
        values = self.read(BudCheckChange, partial=True)
        changed = update_check(
            check=check,
            base_version=values.pop("version", None),
            values=values,
            actor=self.actor,
        )
        return Response(check_json(changed))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Take it from its bud."""
        remove_check(check=self._editable(), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=KeptCallInput, responses={201: BudCheckOutput})
    @action(detail=False, methods=["post"], url_path="from-call")
    def from_call(self, request: Request) -> Response:
        """Keep a call of the log as a check of its bud, for those who may read what it sent."""
        call_id = self.read(KeptCallInput)["call_id"]
        check = keep_call(workspace_id=self.workspace.pk, call_id=call_id, actor=self.actor)
        return Response(check_json(check), status=201)

    def _editable(self) -> BudCheck:
        check: BudCheck = self.get_object()
        require_edit(check.bud, self.actor)
        return check


class CheckRunViewSet(WorkspaceViewSet):
    """Runs of checks, for those who may edit the bud."""

    model = CheckRun
    scopes = Scopes(read="buds:write", write="buds:write")
    serializer_class = CheckRunOutput
    parameters: ClassVar[Any] = {}

    def rows(self) -> WorkspaceQuerySet[Any]:
        return super().rows().select_related("bud", "person")

    @extend_schema(responses=CheckRunOutput)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One run with its results so far."""
        return Response(run_json(self._editable(), self.actor, with_results=True))

    @extend_schema(request=None, responses=CheckRunOutput)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Stop it. What has ended keeps its result."""
        run = cancel_run(run=self._editable(), actor=self.actor)
        return Response(run_json(run, self.actor, with_results=True))

    def _editable(self) -> CheckRun:
        run: CheckRun = self.get_object()
        require_edit(run.bud, self.actor)
        return run
