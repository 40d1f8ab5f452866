"""Spending limits and what models cost this month, over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import SpendingPolicy
from chat.models.spending import MOST_COST, MOST_TOKENS, USUAL_WARNING
from chat.pages.spending_form import WhichLimit
from chat.providers.base import MonthLimit
from chat.providers.months import Month
from chat.providers.spending_months import (
    LimitStatus,
    WorkspaceMonth,
    month_of_workspace,
    own_limits,
    standings_of,
)
from chat.services.spending_limits import (
    LimitsDraft,
    remove_member_limit,
    set_limits,
    set_member_limit,
)
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.api.members import AllMembersViewSet
from workspaces.roles import Permission, require


def _cost(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=14,
        decimal_places=6,
        min_value=0,
        max_value=MOST_COST,
        allow_null=True,
        default=None,
        **options,
    )


def _tokens(**options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=0, max_value=MOST_TOKENS, allow_null=True, default=None, **options
    )


class SpentOutput(serializers.Serializer[Any]):
    """What was used in this month. Deleted chats count, too."""

    cost = serializers.DecimalField(max_digits=18, decimal_places=6)
    tokens = serializers.IntegerField(help_text="Read and written together.")
    requests = serializers.IntegerField()
    estimated_tokens = serializers.IntegerField(
        help_text="Of the tokens: those that the provider did not count."
    )
    unpriced_tokens = serializers.IntegerField(
        help_text="Of the tokens: those without a known price. The cost leaves them out."
    )


class MonthOutput(serializers.Serializer[Any]):
    """A calendar month of the workspace."""

    month = serializers.SerializerMethodField()
    begins_anew_at = serializers.DateTimeField()
    time_zone = serializers.CharField(source="zone_name")

    def get_month(self, month: Month) -> str:
        """Such as 2026-11."""
        return f"{month.year:04}-{month.number:02}"


class LimitOutput(serializers.Serializer[Any]):
    """A limit of a month. Null: no limit; 0: nothing is allowed."""

    cost = serializers.DecimalField(max_digits=14, decimal_places=6, allow_null=True)
    tokens = serializers.IntegerField(allow_null=True)


class StandingOutput(serializers.Serializer[Any]):
    """A limit, and how much of it is used."""

    limit = LimitOutput(source="line.limit")
    spent = SpentOutput()
    percent = serializers.IntegerField(help_text="Of the limit that is nearer to its end.")
    is_reached = serializers.BooleanField(source="line.is_reached")


class SharedStandingOutput(StandingOutput):
    """The same of a shared provider, in US dollars by list prices."""

    provider = serializers.CharField(source="name")


@extend_schema_serializer(many=False)
class SpendingLimitsOutput(serializers.Serializer[Any]):
    """The limits of the workspace, and its month."""

    month = MonthOutput()
    workspace = StandingOutput()
    shared_providers = SharedStandingOutput(many=True, source="shared")
    member_limit = serializers.SerializerMethodField()
    warn_percent = serializers.IntegerField(source="policy.warn_percent")

    def get_member_limit(self, found: WorkspaceMonth) -> LimitOutput:
        """Of each member without a limit of their own."""
        return LimitOutput(found.member_limit).data  # type: ignore[return-value]  # the schema reads the annotation


class SpendingLimitsInput(serializers.Serializer[Any]):
    """All limits of the workspace. What is left out has no limit."""

    replaces_all = True
    cost = _cost(help_text="Of the workspace, in US dollars.")
    tokens = _tokens()
    member_cost = _cost(help_text="Of each member without a limit of their own.")
    member_tokens = _tokens()
    warn_percent = serializers.IntegerField(min_value=1, max_value=100, default=USUAL_WARNING)
    time_zone = serializers.CharField(
        max_length=64, default="UTC", help_text="In which months begin, such as Europe/Zurich."
    )


class SpendingLimitViewSet(WorkspaceViewSet):
    """The limits of the workspace."""

    model = SpendingPolicy
    scopes = Scopes(read="members:write", write="members:write")
    serializer_class = SpendingLimitsOutput
    pagination_class = None  # as the framework means it
    parameters: ClassVar[Any] = {}

    @extend_schema(
        responses=SpendingLimitsOutput, filters=False, operation_id="spending_limits_retrieve"
    )
    def list(self, request: Request) -> Response:
        """The limits, and what was used of them this month."""
        require(self.actor, Permission.MANAGE_MEMBERS, workspace_id=self.workspace.pk)
        return Response(SpendingLimitsOutput(month_of_workspace(self.workspace.pk)).data)

    @extend_schema(request=SpendingLimitsInput, responses={200: SpendingLimitsOutput})
    def create(self, request: Request) -> Response:
        """Set all of them in place of those before. They hold from the next request to a model on."""
        given = self.read(SpendingLimitsInput)
        draft = LimitsDraft(
            workspace=MonthLimit(cost=given["cost"], tokens=given["tokens"]),
            member=MonthLimit(cost=given["member_cost"], tokens=given["member_tokens"]),
            warn_percent=given["warn_percent"],
            time_zone=given["time_zone"],
        )
        set_limits(workspace=self.workspace, draft=draft, actor=self.actor)
        return Response(SpendingLimitsOutput(month_of_workspace(self.workspace.pk)).data)


class MemberSpendingOutput(serializers.Serializer[Any]):
    """What a member used this month, and the limit that holds for them."""

    id = serializers.UUIDField(help_text="Of the membership, as in /api/members/.")
    user = serializers.UUIDField(source="user_id")
    email = serializers.EmailField(source="user.email")
    has_own_limit = serializers.BooleanField()
    limit = LimitOutput(source="standing.line.limit")
    spent = SpentOutput(source="standing.spent")
    percent = serializers.IntegerField(source="standing.percent")
    is_reached = serializers.BooleanField(source="standing.line.is_reached")


class MemberLimitInput(serializers.Serializer[Any]):
    """The limit of one member."""

    which = serializers.ChoiceField(
        WhichLimit.choices, help_text="usual: as all members; own: as given here; none: no limit."
    )
    cost = _cost(help_text="Of a limit of their own.")
    tokens = _tokens()

    def validate(self, attrs: Any) -> Any:
        """A limit of their own is one."""
        if attrs["which"] == WhichLimit.OWN and attrs["cost"] is None and attrs["tokens"] is None:
            raise serializers.ValidationError({"cost": ["Give cost, tokens or both."]})
        return attrs


class MemberSpendingViewSet(AllMembersViewSet):
    """Members with their month, for those who manage them."""

    serializer_class = MemberSpendingOutput

    def paginate_queryset(self, queryset: Any) -> Any:
        """A page, with the month of all on it in a few statements."""
        page = super().paginate_queryset(queryset)
        self._put_months(page or [])
        return page

    def get_object(self) -> Any:
        """One member with their month."""
        row = super().get_object()
        self._put_months([row])
        return row

    def _put_months(self, rows: list[Any]) -> None:
        found = month_of_workspace(self.workspace.pk)
        people = [row.user_id for row in rows]
        own = own_limits(self.workspace.pk, people)
        standings: dict[Any, LimitStatus] = standings_of(
            self.workspace.pk, people, found.policy, found.month
        )
        for row in rows:
            row.standing, row.has_own_limit = standings[row.user_id], row.user_id in own

    @extend_schema(request=MemberLimitInput, responses=MemberSpendingOutput)
    @action(detail=True, methods=["post"])
    def limit(self, request: Request, pk: str) -> Response:
        """Set the limit of one member. It holds from their next request to a model on."""
        person = self.get_object().user
        given = self.read(MemberLimitInput)
        if given["which"] == WhichLimit.USUAL:
            remove_member_limit(workspace=self.workspace, person=person, actor=self.actor)
        else:
            is_own = given["which"] == WhichLimit.OWN
            limit = MonthLimit(cost=given["cost"], tokens=given["tokens"])
            set_member_limit(
                workspace=self.workspace,
                person=person,
                limit=limit if is_own else MonthLimit(),
                actor=self.actor,
            )
        return self.answer(self.get_object())
