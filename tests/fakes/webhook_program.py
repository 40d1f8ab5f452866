"""A program that webhooks are sent to."""

from __future__ import annotations

import threading

from asgiref.sync import sync_to_async
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.mcp_server import Listening


class Program:
    """Listens for webhooks; answers with what the test says, by default 204, or not before it is let go."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.was_heard = threading.Event()
        self.let_go = threading.Event()
        if not hangs:
            self.let_go.set()
        self.heard: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.says = b""
        self._listening = Listening(Starlette(routes=[Route("/", self._take, methods=["POST"])]))
        self.url = f"{self._listening.origin}/"

    async def _take(self, request: Request) -> Response:
        self.heard.append((dict(request.headers), await request.body()))
        self.was_heard.set()
        if not self.let_go.is_set():
            await sync_to_async(self.let_go.wait, thread_sensitive=False)(30)
        status = self.answers.pop(0) if self.answers else 204
        headers = {"Location": "/", "Retry-After": "900"}
        return Response(self.says, status_code=status, headers=headers)

    def stop(self) -> None:
        self._listening.stop()
