"""The devices that the caller is notified on while Trellis is closed, over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import PushDevice
from chat.reminders.devices import (
    DeviceDraft,
    add_device,
    current_key,
    devices_of,
    remove_device,
)
from chat.reminders.pushing import send_test
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.people.browser_sessions import device as device_name


class PushDeviceInput(serializers.Serializer[Any]):
    """What `PushManager.subscribe()` of a browser gives, and what its person wants."""

    endpoint = serializers.CharField(max_length=2048, help_text="An https:// address.")
    p256dh = serializers.CharField(max_length=100, help_text="Base64url, like all keys here.")
    auth = serializers.CharField(max_length=40)
    key_id = serializers.CharField(max_length=32, help_text="Of the key that `key/` gave.")
    shows_titles = serializers.BooleanField(
        default=False, help_text="Whether notifications name the chat."
    )
    name = serializers.CharField(
        max_length=100,
        default="",
        allow_blank=True,
        help_text="Without one, what the browser says of itself.",
    )


class PushDeviceOutput(serializers.ModelSerializer[PushDevice]):
    """A device. Its address and its secret are never given out again."""

    class Meta:
        model = PushDevice
        fields = ("id", "name", "shows_titles", "last_told_at", "last_error", "created_at")


class PushKeyOutput(serializers.Serializer[Any]):
    """What a browser is to take notifications from (`applicationServerKey`)."""

    key_id = serializers.CharField()
    public_key = serializers.CharField()


class PushTestOutput(serializers.Serializer[Any]):
    is_sent = serializers.BooleanField()
    error = serializers.CharField(allow_blank=True, help_text="What went wrong; empty: nothing.")


class PushDeviceViewSet(WorkspaceViewSet):
    """The caller's own devices."""

    model = PushDevice
    scopes = Scopes(read="chat", write="chat")
    serializer_class = PushDeviceOutput
    pagination_class = None  # as the framework means it
    parameters: ClassVar[Any] = {}

    @extend_schema(responses=PushDeviceOutput(many=True), filters=False)
    def list(self, request: Request) -> Response:
        """All of them where the caller is still signed in, oldest first."""
        rows = devices_of(self.workspace, self.person)
        return Response(PushDeviceOutput(rows, many=True).data)

    @extend_schema(request=PushDeviceInput, responses={201: PushDeviceOutput})
    def create(self, request: Request) -> Response:
        """Notify the caller on a device. One that is added in a browser goes with its session."""
        values = self.read(PushDeviceInput)
        name = values.pop("name") or device_name(request.headers.get("User-Agent", ""))
        session = getattr(request, "session", None) if request.auth is None else None
        draft = DeviceDraft(
            **values, name=name, session_key=session.session_key if session else None
        )
        made = add_device(
            workspace=self.workspace, person=self.person, draft=draft, actor=self.actor
        )
        return Response(PushDeviceOutput(made).data, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Notify the caller there no more."""
        remove_device(device=self._find(pk), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=None, responses=PushTestOutput)
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Send a notification that tells nothing, at once."""
        fault = send_test(device=self._find(pk), actor=self.actor)
        return Response({"is_sent": not fault, "error": fault})

    @extend_schema(responses=PushKeyOutput, filters=False)
    @action(detail=False, methods=["get"], pagination_class=None)
    def key(self, request: Request) -> Response:
        """The key that new devices are added with."""
        key_id, public_key = current_key()
        return Response({"key_id": key_id, "public_key": public_key})

    def _find(self, pk: str) -> PushDevice:
        found: PushDevice = devices_of(self.workspace, self.person).fetch(pk)
        return found
