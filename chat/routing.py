"""Socket routes."""

from __future__ import annotations

from django.urls import path

from chat.sockets.consumer import WorkspaceConsumer

websocket_urlpatterns = [
    path("ws/w/<slug:workspace_slug>/", WorkspaceConsumer.as_asgi()),
]
