"""Turns and tool calls over REST: look, stop, retry, decide."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import ModelInput, ToolCallOutput, TurnOutput
from chat.feed.access import may_follow
from chat.feed.progress import Position
from chat.feed.streaming import check_room, follow_turn, has_heard_all
from chat.models import ToolCall, Turn
from chat.services.approvals import (
    LONGEST_NOTE,
    calls_to_decide,
    decide,
    decide_as_second_person,
)
from chat.services.branches import regenerate
from chat.services.comparing import choose_answer, compare_answer
from chat.services.resolutions import resolve_call
from chat.services.turns import (
    LONGEST_REASON,
    continue_turn,
    rate_turn,
    retry_turn,
    stop_turn,
)
from chat.values import Decision, Rating, Remember, Resolution, Wish
from workspaces.api import RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.errors import NotFound
from workspaces.roles import Permission, has_permission
from workspaces.scoping import WorkspaceQuerySet


class EventStream(BaseRenderer):
    """Lets a client say `Accept: text/event-stream`; the pieces are text already."""

    media_type = "text/event-stream"
    format = "events"

    def render(self, data: Any, *args: Any, **kwargs: Any) -> bytes:
        """An error that came before the stream began."""
        return JSONRenderer().render(data)


class DecisionInput(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(["approve", "refuse"])
    arguments = serializers.DictField(
        required=False, allow_null=True, help_text="The call's arguments, if edited."
    )
    note = serializers.CharField(max_length=LONGEST_NOTE, allow_blank=True, required=False)
    remember = serializers.ChoiceField(
        [Remember.CONVERSATION.value, Remember.EVERYWHERE.value],
        required=False,
        help_text="With an approval: let this tool run without asking from now on.",
    )


class RegenerateInput(serializers.Serializer[Any]):
    client_id = serializers.CharField(
        max_length=64, help_text="Your own id: the same one again answers nothing twice."
    )


class RegenerateTurnInput(RegenerateInput):
    wish = serializers.ChoiceField(
        [wish.value for wish in Wish if wish],
        required=False,
        help_text="How the answer shall differ from this one.",
    )
    model = ModelInput(required=False, help_text="Which model answers, this once.")


class CompareInput(RegenerateInput):
    model = ModelInput(help_text="Which model answers beside the one that has.")


class RatingInput(serializers.Serializer[Any]):
    rating = serializers.ChoiceField(
        [one.value for one in Rating if one], allow_null=True, help_text="Null: take it back."
    )
    reason = serializers.CharField(max_length=LONGEST_REASON, allow_blank=True, required=False)


class ResolutionInput(serializers.Serializer[Any]):
    resolution = serializers.ChoiceField([choice.value for choice in Resolution])
    note = serializers.CharField(max_length=LONGEST_NOTE, allow_blank=True, required=False)


class TurnViewSet(RetrieveRow, WorkspaceViewSet):
    """What answers a message."""

    model = Turn
    scopes = Scopes(read="chat", write="chat")
    serializer_class = TurnOutput

    def rows(self) -> WorkspaceQuerySet[Any]:
        return super().rows().filter(conversation__owner=self.person)

    @extend_schema(request=None, responses=TurnOutput)
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: str) -> Response:
        """Stop a turn and the calls that run in it."""
        return self.answer(stop_turn(turn=self.get_object(), actor=self.actor))

    @extend_schema(request=None, responses=TurnOutput)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        """Go on with a turn that failed or was stopped."""
        return self.answer(retry_turn(turn=self.get_object(), actor=self.actor))

    @extend_schema(request=RegenerateTurnInput, responses={202: TurnOutput})
    @action(detail=True, methods=["post"])
    def regenerate(self, request: Request, pk: str) -> Response:
        """Answer the same question again, on a branch of its own."""
        values = self.read(RegenerateTurnInput)
        model = values.get("model")
        turn = regenerate(
            turn=self.get_object(),
            client_id=values["client_id"],
            wish=Wish(values.get("wish", "")),
            model=(model["provider_id"], model["name"]) if model else None,
            actor=self.actor,
        )
        return self.answer(turn, status=202)

    @extend_schema(request=CompareInput, responses={202: TurnOutput})
    @action(detail=True, methods=["post"])
    def compare(self, request: Request, pk: str) -> Response:
        """Have another model answer the same question. Both answers stand side by side until you choose one."""
        values = self.read(CompareInput)
        turn = compare_answer(
            turn=self.get_object(),
            client_id=values["client_id"],
            model=(values["model"]["provider_id"], values["model"]["name"]),
            actor=self.actor,
        )
        return self.answer(turn, status=202)

    @extend_schema(request=None, responses=TurnOutput)
    @action(detail=True, methods=["post"])
    def choose(self, request: Request, pk: str) -> Response:
        """Go on from this one of the answers that stand side by side. Answers still being written are stopped."""
        return self.answer(choose_answer(turn=self.get_object(), actor=self.actor))

    @extend_schema(request=None, responses={202: TurnOutput})
    @action(detail=True, methods=["post"], url_path="continue")
    def go_on(self, request: Request, pk: str) -> Response:
        """Have an answer that was cut off by its length go on where it ends."""
        turn = continue_turn(turn=self.get_object(), actor=self.actor)
        return self.answer(turn, status=202)

    @extend_schema(request=RatingInput, responses=TurnOutput)
    @action(detail=True, methods=["post"])
    def rate(self, request: Request, pk: str) -> Response:
        """Say what you think of an answer. Administrators see it, without the answer."""
        values = self.read(RatingInput)
        rating = Rating(values["rating"] or "")
        reason = values.get("reason", "")
        turn = self.get_object()
        return self.answer(rate_turn(turn=turn, rating=rating, reason=reason, actor=self.actor))

    @extend_schema(
        request=None,
        parameters=[
            OpenApiParameter("Last-Event-ID", str, OpenApiParameter.HEADER, description="Resume.")
        ],
        responses={(200, "text/event-stream"): str, 204: None},
        filters=False,
    )
    @action(
        detail=True,
        methods=["get"],
        pagination_class=None,
        renderer_classes=[JSONRenderer, EventStream],
    )
    def events(self, request: Request, pk: str) -> HttpResponseBase:
        """Follow a turn as server-sent events: content, tool_call, approval, input, outcome_unknown, tool_result, error, done.

        Every event has an id; with the last one as `Last-Event-ID` nothing is missed and nothing told twice. The
        stream ends with `done`, or by itself after a while: then come back. Who comes back after `done` gets 204.
        """
        turn = self.get_object()
        last = request.headers.get("Last-Event-ID", "")
        position = Position.parse(last) if last else Position()
        if has_heard_all(turn, position):
            # Else an `EventSource` would come back each second. Source: WHATWG HTML, "Server-sent events".
            return HttpResponse(status=HTTPStatus.NO_CONTENT)
        check_room(self.person.pk)
        pieces = follow_turn(
            turn,
            position,
            person_id=self.person.pk,
            may_stay=partial(may_follow, self.actor, turn, self._session_key()),
        )
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingHttpResponse(pieces, content_type="text/event-stream", headers=headers)

    def _session_key(self) -> str | None:
        is_token = self.actor.token_id is not None
        return None if is_token else self.request._request.session.session_key

    @extend_schema(request=None, responses=ToolCallOutput(many=True), filters=False)
    @action(detail=True, methods=["get"], url_path="tool-calls", pagination_class=None)
    def tool_calls(self, request: Request, pk: str) -> Response:
        """The calls of a turn, in the order asked."""
        calls = (
            ToolCall.objects.for_workspace(self.workspace)
            .filter(turn=self.get_object())
            .select_related("decided_by")
            .order_by("message__order_key", "position")
        )
        return Response(ToolCallOutput(calls, many=True).data)


class ToolCallViewSet(RetrieveRow, WorkspaceViewSet):
    """One call of a tool."""

    model = ToolCall
    scopes = Scopes(read="chat", write="chat")
    serializer_class = ToolCallOutput

    def rows(self) -> WorkspaceQuerySet[Any]:
        rows = super().rows().filter(turn__conversation__owner=self.person)
        return rows.select_related("decided_by", "turn")

    def get_object(self) -> Any:
        """The caller's own, or somebody else's that waits for a second person, as long as it does."""
        own = self.get_queryset().find(self.kwargs["pk"])
        if own is not None:
            return own
        if not has_permission(
            self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk
        ):
            raise NotFound
        others = calls_to_decide(self.workspace, self.person.pk)
        return others.select_related("decided_by", "turn").fetch(self.kwargs["pk"])

    @extend_schema(request=DecisionInput, responses=ToolCallOutput)
    @action(detail=True, methods=["post"])
    def decide(self, request: Request, pk: str) -> Response:
        """Approve or refuse a call that waits; a decision is final.

        A call that a rule has wait for a second person is allowed by an admin or owner who did not ask for it, as it
        is. Whoever asked can refuse it, which takes it back.
        """
        call = self.get_object()
        values = self.read(DecisionInput)
        is_approval = values["decision"] == "approve"
        if call.turn.asked_by_id != self.person.pk:
            return self.answer(
                decide_as_second_person(
                    call=call,
                    decision=Decision.APPROVED if is_approval else Decision.REFUSED,
                    actor=self.actor,
                    note=values.get("note", ""),
                )
            )
        call = decide(
            call=call,
            decision=Decision.APPROVED if is_approval else Decision.REFUSED,
            actor=self.actor,
            arguments=values.get("arguments") if is_approval else None,
            note=values.get("note", ""),
            remember=Remember(values.get("remember", "")) if is_approval else Remember.NOT,
        )
        return self.answer(call)

    @extend_schema(request=ResolutionInput, responses=ToolCallOutput)
    @action(detail=True, methods=["post"])
    def resolve(self, request: Request, pk: str) -> Response:
        """Say what becomes of a call whose outcome is unknown: run it again, take it as done, or give it up.

        Answers with the call, or with the new one that was made in its place.
        """
        call = self.get_object()
        values = self.read(ResolutionInput)
        call = resolve_call(
            call=call,
            resolution=Resolution(values["resolution"]),
            note=values.get("note", ""),
            actor=self.actor,
        )
        return self.answer(call)
