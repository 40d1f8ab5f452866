"""The floor of an idle socket: a consumer of Channels that does nothing, `daphne bench.bare_socket:application`."""

from __future__ import annotations

from typing import Any

from django.conf import settings

if not settings.configured:
    settings.configure(
        CHANNEL_LAYERS={"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    )

from channels.generic.websocket import AsyncWebsocketConsumer


class _Idle(AsyncWebsocketConsumer):
    """Lets everybody in, and belongs to one group."""

    groups = ("everybody",)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.send('{"type":"current"}')


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Sockets only."""
    if scope["type"] == "websocket":
        await _Idle.as_asgi()(scope, receive, send)
