"""HTTP and WebSocket, assembled from the apps. Every connection passes the doors of ``config.serving.edge`` first."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from typing import Any, cast

from config.serving.handler import get_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
_http = get_application()  # loads the apps, which the imports below need

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402

from audit.sealing import sealing_thread  # noqa: E402
from chat import restore_confirmation  # noqa: E402
from chat.engine import runner  # noqa: E402
from chat.providers import openai_compatible as _model  # noqa: E402, F401 - no first message waits for its imports
from chat.routing import websocket_urlpatterns  # noqa: E402
from chat.sockets.frames import flood_frame  # noqa: E402
from chat.sockets.open import close_sockets  # noqa: E402
from config import celery as _celery  # noqa: E402, F401 - tasks that are sent from here go to its broker
from config import urls as _urls  # noqa: E402, F401 - no first request, and no transaction, waits for the pages
from config.lifecycle import Lifecycle, StopHook  # noqa: E402
from config.serving.daphne_limits import (  # noqa: E402
    end_all_of_daphne,
    keep_ports_of_daphne,
    let_daphne_say_why,
    let_daphne_send_at_once,
    limit_bodies_of_daphne,
    limit_sockets_of_daphne,
    name_statuses_of_daphne,
    silence_daphne,
    stop_listening,
)
from config.serving.edge import (  # noqa: E402
    BodyLimit,
    CleanHeaders,
    OriginGuard,
    TrustedProxies,
)
from config.serving.requests_under_way import RequestsUnderWay  # noqa: E402
from config.telemetry.log_writing import write_beside  # noqa: E402
from config.telemetry.tracing import configure_tracing  # noqa: E402
from mcp_servers.client import sdk  # noqa: E402
from mcp_servers.client.connections import runtime  # noqa: E402
from workspaces.process import garbage  # noqa: E402


async def let_pages_go() -> None:
    """Send those to another process who do not follow what is said here just now."""
    await close_sockets(seconds=_SPREAD_SECONDS, but=runner.conversations())


async def put_work_down() -> None:
    """Give steps under way their time, and every turn to whoever takes it; then take no more, and answer who waits."""
    seconds = max(0.0, settings.TRELLIS.drain_seconds - _ENDING_SECONDS)
    ends_at = time.monotonic() + seconds
    await runner.hand_over(seconds)
    await stop_listening()
    await _answer_who_waits(max(_LEAST_SECONDS, ends_at - time.monotonic()))


async def let_all_pages_go() -> None:
    """Their streams have ended, or go on elsewhere."""
    await close_sockets(seconds=_SPREAD_SECONDS)


async def close_connections() -> None:
    """End the connections to MCP servers and reap the child processes of stdio servers. Who waits for one is told."""
    # Calls had their time before. What is left is for children that have to be ended.
    await asyncio.gather(asyncio.to_thread(runtime.shutdown, 1.0), _answer_who_waits(2.0))


async def _answer_who_waits(seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await requests.finish()


async def end_the_log() -> None:
    """Seal what is left and sign where the log ends in this process."""
    await asyncio.to_thread(sealing_thread.stop, 1.0)


_BESIDE_BYTES = 256 * 1024
"""Of an upload, for the few words beside the file."""
_IMPORTS = re.compile(r"(/api|/w/[^/]+)/chat-imports/?")


def most_bytes_of(path: str) -> int:
    """How many bytes a request may have: uploads are the largest, and of these the copies that people import."""
    most: int = settings.TRELLIS.artifact_max_bytes
    if _IMPORTS.fullmatch(path):
        most = max(most, settings.TRELLIS.import_max_bytes)
    return max(most + _BESIDE_BYTES, settings.TRELLIS.request_max_bytes)


_SPREAD_SECONDS = 0.5
_ENDING_SECONDS = 3.0
"""Of the time to drain, what is kept for giving turns back and closing connections."""
_LEAST_SECONDS = 1.0
"""For requests that have no answer yet, however long the turns took."""
sdk.load()  # no first call waits for it
configure_tracing()
lifecycle = Lifecycle(
    start_hooks=[write_beside, garbage.tame, restore_confirmation.watch, sealing_thread.start],
    stop_hooks=[
        StopHook(let_pages_go, 1.0),
        StopHook(put_work_down, settings.TRELLIS.drain_seconds),
        StopHook(let_all_pages_go, 1.0),
        StopHook(close_connections, 3.0),
        StopHook(end_the_log, 2.0),
    ],
    most_seconds=settings.TRELLIS.drain_seconds + 2.0,
)
lifecycle.attach_to_daphne()
limit_bodies_of_daphne(most_bytes_of)
limit_sockets_of_daphne(flood_frame())
keep_ports_of_daphne()
let_daphne_say_why()
name_statuses_of_daphne()
let_daphne_send_at_once()
end_all_of_daphne()
silence_daphne()

requests = RequestsUnderWay(BodyLimit(cast("Any", _http), most_bytes=most_bytes_of))

application = TrustedProxies(
    CleanHeaders(
        ProtocolTypeRouter(
            {
                "http": requests,
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
