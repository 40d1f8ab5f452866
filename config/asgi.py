"""HTTP and WebSocket, assembled from the apps. Every connection passes the doors of ``config.edge`` first."""

from __future__ import annotations

import asyncio
import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
_http = get_asgi_application()  # loads the apps, which the imports below need

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402

from chat.routing import websocket_urlpatterns  # noqa: E402
from config.edge import CleanHeaders, OriginGuard, TrustedProxies  # noqa: E402
from config.lifecycle import Lifecycle  # noqa: E402
from mcp_servers.connections import runtime  # noqa: E402


async def close_connections() -> None:
    """End the connections to MCP servers and reap the child processes of stdio servers."""
    await asyncio.to_thread(runtime.shutdown, 4.0)


lifecycle = Lifecycle(close_connections)
lifecycle.attach_to_daphne()

application = TrustedProxies(
    CleanHeaders(
        ProtocolTypeRouter(
            {
                "http": _http,
                "websocket": OriginGuard(
                    AuthMiddlewareStack(URLRouter(websocket_urlpatterns)),
                    origins=settings.TRELLIS.public_origins,
                    hosts=settings.ALLOWED_HOSTS,
                ),
                "lifespan": lifecycle,
            }
        )
    ),
    networks=settings.TRELLIS.trusted_proxies,
)
