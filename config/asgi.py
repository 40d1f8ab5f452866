"""HTTP and WebSocket, assembled from the apps. Every connection passes the doors of ``config.edge`` first."""

from __future__ import annotations

import asyncio
import os
from typing import Any, cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
_http = get_asgi_application()  # loads the apps, which the imports below need

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402

from chat.routing import websocket_urlpatterns  # noqa: E402
from config import celery as _celery  # noqa: E402, F401 - tasks that are sent from here go to its broker
from config.edge import (  # noqa: E402
    BodyLimit,
    CleanHeaders,
    OriginGuard,
    TrustedProxies,
    limit_bodies_of_daphne,
)
from config.lifecycle import Lifecycle  # noqa: E402
from mcp_servers.connections import runtime  # noqa: E402


async def close_connections() -> None:
    """End the connections to MCP servers and reap the child processes of stdio servers."""
    await asyncio.to_thread(runtime.shutdown, 4.0)


lifecycle = Lifecycle(close_connections)
lifecycle.attach_to_daphne()
# Uploads are the largest that anybody sends; beside the file there are a few words.
_MOST_BYTES = max(
    settings.TRELLIS.artifact_max_bytes + 256 * 1024, settings.TRELLIS.request_max_bytes
)
limit_bodies_of_daphne(_MOST_BYTES)

application = TrustedProxies(
    CleanHeaders(
        ProtocolTypeRouter(
            {
                "http": BodyLimit(cast("Any", _http), most_bytes=_MOST_BYTES),
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
