"""What the caller's own questions used, over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.spending import LimitOutput, MonthOutput, SpentOutput
from chat.models import Turn
from chat.providers.spending_months import month_of_person
from chat.services.usage import PERIODS, OwnUsage, usage_of
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.errors import InvalidInput


class UsedOutput(serializers.Serializer[Any]):
    """What one bud used of one model."""

    bud = serializers.CharField()
    model = serializers.CharField(allow_blank=True)
    questions = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=20, decimal_places=6, allow_null=True)
    unpriced = serializers.IntegerField(
        help_text="Questions without a known price; the cost leaves them out."
    )


class OwnMonthOutput(serializers.Serializer[Any]):
    """What the caller used in this calendar month, and the limit that holds for them."""

    month = MonthOutput()
    limit = LimitOutput(source="standing.line.limit")
    spent = SpentOutput(source="standing.spent")
    percent = serializers.IntegerField(source="standing.percent")
    is_reached = serializers.BooleanField(source="standing.line.is_reached")


@extend_schema_serializer(many=False)
class OwnUsageOutput(serializers.Serializer[Any]):
    """A person's usage: sums, and rows by bud and model."""

    days = serializers.IntegerField()
    since = serializers.DateTimeField()
    questions = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=20, decimal_places=6, allow_null=True)
    unpriced = serializers.IntegerField()
    rows = UsedOutput(many=True)
    this_month = serializers.SerializerMethodField()

    def get_this_month(self, usage: OwnUsage) -> OwnMonthOutput:
        """Of the calendar month, whatever the days."""
        return OwnMonthOutput(self.context["own"]).data  # type: ignore[return-value]  # the schema reads the annotation


class UsageViewSet(WorkspaceViewSet):
    """The caller's own usage."""

    model = Turn
    scopes = Scopes(read="chat", write="chat")
    serializer_class = OwnUsageOutput
    pagination_class = None  # as the framework means it
    parameters: ClassVar[Any] = {"list": ("days",)}

    @extend_schema(
        responses=OwnUsageOutput,
        filters=False,
        operation_id="usage_retrieve",
        parameters=[
            OpenApiParameter("days", int, enum=PERIODS, description="The last so many days.")
        ],
    )
    def list(self, request: Request) -> Response:
        """Tokens and cost by bud and model. Chats that were erased no longer count."""
        wanted = request.query_params.get("days", str(PERIODS[0]))
        days = next((one for one in PERIODS if str(one) == wanted), None)
        if days is None:
            raise InvalidInput(
                fields={
                    "days": [
                        _("One of %(periods)s.")
                        % {"periods": ", ".join(str(one) for one in PERIODS)}
                    ]
                }
            )
        found = usage_of(workspace=self.workspace, person=self.person, days=days)
        own = month_of_person(self.workspace.pk, self.person.pk)
        return Response(OwnUsageOutput(found, context={"own": own}).data)
