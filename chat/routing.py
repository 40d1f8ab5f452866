"""Socket routes."""

from __future__ import annotations

from channels.security.websocket import WebsocketDenier
from django.urls import path, re_path

from chat.sockets.consumer import WorkspaceConsumer

websocket_urlpatterns = [
    path("ws/w/<slug:workspace_slug>/", WorkspaceConsumer.as_asgi()),
    # Channels raises an error for an address that is not here, and strangers could fill the log with it.
    re_path("", WebsocketDenier.as_asgi()),
]
