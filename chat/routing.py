"""Socket routes."""

from __future__ import annotations

from channels.security.websocket import WebsocketDenier
from django.urls import path, re_path

from chat.sockets.consumer import WorkspaceConsumer

websocket_urlpatterns = [
    path("ws/w/<slug:workspace_slug>/", WorkspaceConsumer.as_asgi()),
    re_path(
        "", WebsocketDenier.as_asgi()
    ),  # without it, Channels has an error for strangers to cause
]
