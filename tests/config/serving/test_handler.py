"""How a request gets through: in one thread, which serves others after it, with few statements before its view."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test.utils import override_settings
from django.urls import path

from config.serving.handler import MOST_IDLE, Handler, Lanes
from tests.factories import Tenant, signed_in
from tests.patience import PATIENCE
from workspaces.database.patience import REQUEST_SECONDS, current_patience

_seen: list[str] = []
_go_on = threading.Event()
_arrived = threading.Semaphore(0)


def look(_request: HttpRequest) -> HttpResponse:
    _seen.append(threading.current_thread().name)
    assert current_patience() == REQUEST_SECONDS
    return HttpResponse("seen")


def wait(_request: HttpRequest) -> HttpResponse:
    _arrived.release()
    _go_on.wait(PATIENCE)
    return HttpResponse("waited")


class Note:
    """A middleware that says which thread it runs in."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        _seen.append(threading.current_thread().name)
        return self.get_response(request)


def read(request: HttpRequest) -> HttpResponse:
    _arrived.release()
    _go_on.wait(PATIENCE)
    try:
        _seen.append(request.POST.get("text", "nothing"))
    except ValueError as error:
        _seen.append(str(error))
    return HttpResponse("read")


urlpatterns = [path("look/", look), path("wait/", wait), path("read/", read)]
_OURS = {
    "ROOT_URLCONF": __name__,
    "MIDDLEWARE": [
        f"{__name__}.Note",
        "django.middleware.security.SecurityMiddleware",
        "config.serving.static.StaticFilesMiddleware",
        f"{__name__}.Note",
    ],
}


async def _ask(
    handler: Handler, address: str, *, form: bytes = b"", leaves: asyncio.Event | None = None
) -> int | None:
    """Ask as a server would, and stay until the answer is there, or until somebody leaves."""
    answers: list[dict[str, Any]] = []
    asked: list[dict[str, Any]] = [{"type": "http.request", "body": form}]

    async def receive() -> dict[str, Any]:
        if asked:
            return asked.pop()
        await (leaves or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        answers.append(message)

    scope = {
        "type": "http",
        "method": "POST" if form else "GET",
        "path": address,
        "query_string": b"",
        "headers": [
            (b"host", b"localhost"),
            (b"content-type", b"application/x-www-form-urlencoded"),
            (b"content-length", str(len(form)).encode()),
        ],
        "server": ("localhost", 80),
    }
    await handler(scope, receive, send)
    return int(answers[0]["status"]) if answers else None


async def _rested(handler: Handler) -> None:
    """Wait until the thread has nothing left to do, and so is given back."""
    async with asyncio.timeout(PATIENCE):
        while not handler._lanes._idle:
            await asyncio.sleep(0.001)


@override_settings(**_OURS)
async def test_a_request_stays_in_one_thread_and_the_next_takes_it_over() -> None:
    """REL-411, REL-2651: middleware and view; a thread of its own would cost each request a connection of its own."""
    handler = Handler()
    _seen.clear()
    for _ in range(3):
        assert await _ask(handler, "/look/") == 200
        await _rested(handler)
    assert len(_seen) == 9
    assert len(set(_seen)) == 1


@override_settings(**_OURS)
async def test_requests_side_by_side_do_not_wait_for_each_other() -> None:
    """REL-411: whoever waits long has a thread of their own."""
    handler = Handler()
    _go_on.clear()
    waiting = [asyncio.ensure_future(_ask(handler, "/wait/")) for _ in range(MOST_IDLE + 4)]
    for _ in waiting:
        assert await asyncio.to_thread(_arrived.acquire, timeout=PATIENCE)
    async with asyncio.timeout(PATIENCE):
        assert await _ask(handler, "/look/") == 200
    _go_on.set()
    assert await asyncio.gather(*waiting) == [200] * (MOST_IDLE + 4)


@override_settings(**_OURS)
async def test_what_somebody_sent_before_they_left_is_read_to_its_end() -> None:
    """REL-2001: a page that sends its draft as it goes away; its form was closed while the view read it."""
    handler, leaves = Handler(), asyncio.Event()
    _seen.clear()
    _go_on.clear()
    asking = asyncio.ensure_future(_ask(handler, "/read/", form=b"text=whole", leaves=leaves))
    assert await asyncio.to_thread(_arrived.acquire, timeout=PATIENCE)
    leaves.set()
    assert await asyncio.wait_for(asking, PATIENCE) is None
    _go_on.set()
    await _rested(handler)
    assert _seen[-1] == "whole"


def test_a_thread_is_given_on_only_when_it_is_free() -> None:
    """REL-411: what a caller who left had begun goes on in it, and nobody waits behind that."""
    lanes, go_on = Lanes(), threading.Event()
    busy = lanes.take()
    busy.submit(go_on.wait, PATIENCE)
    lanes.give_back(busy, is_at_rest=False)
    other = lanes.take()
    assert other is not busy
    go_on.set()
    busy.submit(int).result(PATIENCE)  # one thread: by now it has been put back
    assert lanes.take() is busy


def test_few_threads_are_kept() -> None:
    lanes = Lanes()
    taken = [lanes.take() for _ in range(MOST_IDLE + 3)]
    for lane in taken:
        lanes.give_back(lane, is_at_rest=False)
    for lane in taken:
        lane.shutdown(wait=True) if lane not in lanes._idle else None
    assert len(lanes._idle) == MOST_IDLE


@pytest.mark.django_db
def test_what_is_asked_before_a_view(tenant: Tenant) -> None:
    """REL-411: the session, the person, and their membership with its workspace."""
    client = signed_in(tenant.member)
    for address in (f"/w/{tenant.workspace.slug}/nothing/", "/nothing/"):
        statements: list[str] = []

        def note(execute: Any, sql: str, *rest: Any, statements: list[str] = statements) -> Any:
            statements.append(sql)
            return execute(sql, *rest)

        client.get(address)
        with connection.execute_wrapper(note):
            client.get(address)
        assert len(statements) == 3, statements
