"""Webhooks over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import WebhookDelivery, WebhookEndpoint
from chat.values import WebhookEvent
from chat.webhooks.services import (
    create_webhook,
    delete_webhook,
    renew_secret,
    try_webhook,
    update_webhook,
)
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

_EVENTS = [event.value for event in WebhookEvent]


class WebhookInput(serializers.Serializer[Any]):
    url = serializers.CharField(max_length=500)
    events = serializers.ListField(child=serializers.ChoiceField(_EVENTS), min_length=1)


class WebhookChanges(serializers.Serializer[Any]):
    url = serializers.CharField(max_length=500, required=False)
    events = serializers.ListField(
        child=serializers.ChoiceField(_EVENTS), min_length=1, required=False
    )
    is_active = serializers.BooleanField(required=False)


class WebhookOutput(serializers.ModelSerializer[WebhookEndpoint]):
    """A program that is told of events; its secret is not shown again."""

    events = serializers.ListField(child=serializers.ChoiceField(_EVENTS))

    class Meta:
        model = WebhookEndpoint
        fields: ClassVar[Any] = [
            "id",
            "url",
            "events",
            "is_active",
            "last_error",
            "last_delivered_at",
            "created_at",
        ]


class SecretOutput(serializers.Serializer[Any]):
    """The webhook, with the secret that signs what it is sent: shown this once."""

    webhook = WebhookOutput()
    secret = serializers.CharField()


class DeliveryOutput(serializers.ModelSerializer[WebhookDelivery]):
    """One event on its way; its id is what the program sees as `webhook-id`."""

    status = serializers.ChoiceField(WebhookDelivery.Status.values)

    class Meta:
        model = WebhookDelivery
        fields: ClassVar[Any] = [
            "id",
            "event",
            "status",
            "attempts",
            "last_error",
            "next_attempt_at",
            "delivered_at",
            "created_at",
        ]


class WebhookViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Programs that are told when turns finish and approvals are wanted."""

    model = WebhookEndpoint
    scopes = Scopes(read="workspace:write", write="workspace:write")
    serializer_class = WebhookOutput

    def rows(self) -> WorkspaceQuerySet[Any]:
        require(self.actor, Permission.MANAGE_WORKSPACE, workspace_id=self.workspace.pk)
        return super().rows()

    @extend_schema(request=WebhookInput, responses={201: SecretOutput})
    def create(self, request: Request) -> Response:
        """Begin to tell a program; the answer holds the signing secret, this once."""
        values = self.read(WebhookInput)
        endpoint, secret = create_webhook(
            workspace_id=self.workspace.pk, actor=self.actor, **values
        )
        shown = SecretOutput({"webhook": endpoint, "secret": secret})
        return Response(shown.data, status=201)

    @extend_schema(request=WebhookChanges, responses=WebhookOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the address or the events, or switch it off."""
        values = self.read(WebhookChanges, partial=True)
        return self.answer(update_webhook(endpoint=self.get_object(), actor=self.actor, **values))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Tell it no more."""
        delete_webhook(endpoint=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=None, responses=SecretOutput)
    @action(detail=True, methods=["post"], url_path="renew-secret", url_name="renew-secret")
    def renew(self, request: Request, pk: str) -> Response:
        """Sign with another secret from now on."""
        endpoint = self.get_object()
        secret = renew_secret(endpoint=endpoint, actor=self.actor)
        return Response(SecretOutput({"webhook": endpoint, "secret": secret}).data)

    @extend_schema(request=None, responses=DeliveryOutput)
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Send an event that says nothing, and see what comes of it."""
        delivery = try_webhook(endpoint=self.get_object(), actor=self.actor)
        return Response(DeliveryOutput(delivery).data)

    @extend_schema(responses=DeliveryOutput(many=True), filters=False)
    @action(detail=True, methods=["get"])
    def deliveries(self, request: Request, pk: str) -> Response:
        """What was and will be sent, newest first."""
        rows = WebhookDelivery.objects.for_workspace(self.workspace).filter(
            endpoint=self.get_object()
        )
        page = self.paginate_queryset(rows.order_by("-id")) or []
        return self.get_paginated_response(DeliveryOutput(page, many=True).data)

    parameters: ClassVar[Any] = {"deliveries": ("cursor", "page_size")}
