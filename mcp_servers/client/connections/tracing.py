"""What goes over the connections, kept for a moment and handed on in batches: messages, and events in plain words.

Noting a message costs its caller some microseconds: it is put down as it is, and cut, measured and handed to the hook
in a thread. Nothing here waits for anything: when too much is waiting, the oldest goes, and the loss is told.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import math
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from mcp_servers.client.connections.hooks import Direction, Kind, TraceRecord, hooks
from workspaces.redaction import cut_known

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.client.connections.flights import CallRef
    from mcp_servers.client.spec import ConnectionSpec

logger = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 0.5
MAX_WAITING: Final = 5_000
"""Records that wait to be handed on."""
MAX_HEAVY: Final = 32
"""Large messages among them; of further ones only the outline is kept."""
MAX_BODY_BYTES: Final = 64 * 1024
MAX_LINES_A_SECOND: Final = 50
"""Of one program's error stream."""
MAX_NODES: Final = 4_000
"""Parts of a message that are looked at to cut it."""

_MOST_NAME: Final = 100
_MOST_WORDS: Final = 4_000
_MOST_WRITTEN: Final = 2_000
_HEAVY_TEXT: Final = 64 * 1024
_LOOKED_AT: Final = 64
_SMALL: Final = 16 * 1024
_MOST_DEPTH: Final = 60
_LONG_NUMBER: Final = re.compile(r"\d{19}")
"""Perhaps more than the 64 bits that databases take."""
_write: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_MOST_BITS: Final = 600
_MOST_DIGITS: Final = 200
_numbers: Final = itertools.count(1)


@dataclass(slots=True, kw_only=True)
class _Note:
    """A record before its message was looked at."""

    trace: ConnectionTrace
    at: float
    direction: Direction
    kind: Kind
    method: str
    rpc_id: str
    call: CallRef | None
    payload: dict[str, Any] | None
    text: str
    duration_ms: int | None
    is_check: bool = False
    is_heavy: bool = False


@dataclass(slots=True)
class ConnectionTrace:
    """The notes of one connection."""

    spec: ConnectionSpec
    buffer: TraceBuffer
    name: str = field(default_factory=lambda: f"c{next(_numbers)}")
    bystander: Callable[[], CallRef | None] = lambda: None
    """The call that something without an address may be about."""
    is_check: bool = False
    """Nothing but regular checks has used the connection so far."""
    _second: int = 0
    _lines: int = 0

    def message(
        self,
        direction: Literal["sent", "received"],
        kind: Kind,
        payload: dict[str, Any],
        *,
        method: str,
        rpc_id: str = "",
        call: CallRef | None = None,
        duration_ms: int | None = None,
        is_check: bool | None = None,
    ) -> None:
        """Note one JSON-RPC message. The payload must not be changed afterwards, at least not in depth.

        Args:
            is_check: whether it belongs to a regular check; None: whether the connection is there for nothing else.
        """
        if is_check is None:
            is_check = self.is_check and call is None
        if hooks.traced is not None:
            self.buffer.add(
                _Note(
                    trace=self,
                    at=time.time(),
                    direction=direction,
                    kind=kind,
                    method=method,
                    rpc_id=rpc_id,
                    call=call,
                    payload=payload,
                    text="",
                    duration_ms=duration_ms,
                    is_check=is_check and kind != "error",
                )
            )

    def event(self, text: str, *, method: str = "", call: CallRef | None = None) -> None:
        """Note something that happened to the connection, in plain words and without text of the other side."""
        if hooks.traced is not None:
            self.buffer.add(
                _Note(
                    trace=self,
                    at=time.time(),
                    direction="event",
                    kind="event",
                    method=method,
                    rpc_id="",
                    call=call,
                    payload=None,
                    text=text,
                    duration_ms=None,
                    is_check=self.is_check and call is None,
                )
            )

    def stderr_line(self, line: str) -> None:
        """Note a line of a program's error stream; of a flood, some lines a second."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines > MAX_LINES_A_SECOND:
            return
        line = cut_known(line, _MOST_WORDS, workspace_id=self.spec.workspace_id)
        call = self.bystander()
        if call is None:
            self.event(line, method="stderr")
        else:
            # As a message: the words of an event are for every administrator.
            self.message("received", "notification", {"line": line}, method="stderr", call=call)


class TraceBuffer:
    """Notes of all connections, until they are handed to the hook. Filled on the runtime's loop."""

    def __init__(self) -> None:
        self._notes: deque[_Note] = deque()
        self._heavy = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._handed_on: asyncio.Future[None] | None = None
        """The batch that is being stored."""
        self.lost = 0
        """Records that nobody got, since the process started."""

    def add(self, note: _Note) -> None:
        """Keep a note, at the cost of the oldest if there are too many."""
        if note.payload is not None and _is_heavy(note.payload):
            if self._heavy >= MAX_HEAVY:
                note.payload = {"truncated": True}
            else:
                note.is_heavy = True
                self._heavy += 1
        if len(self._notes) >= MAX_WAITING:
            self._heavy -= self._notes.popleft().is_heavy
            self.lost += 1
        self._notes.append(note)
        loop = asyncio.get_running_loop()
        if self._timer is None or self._loop is not loop:
            self._loop = loop
            self._timer = loop.call_later(FLUSH_SECONDS, self._flush)

    async def close(self) -> None:
        """Hand on what is left, after the batch that is under way: the loop ends."""
        under_way = self._handed_on
        if under_way is not None and under_way.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([under_way])
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (handed_on := self._begin()) is not None:
            await handed_on

    def _flush(self) -> None:
        handed_on = self._handed_on = self._begin()
        if handed_on is None:
            self._timer = None
            return
        # The next batch waits for this one, so that a slow hook has one thread and no more.
        handed_on.add_done_callback(lambda _: self._rest())

    def _begin(self) -> asyncio.Future[None] | None:
        """Have a thread hand on what is waiting; None: there is nothing, or no thread any more."""
        notes = self._take()
        if not notes:
            return None
        try:
            return asyncio.get_running_loop().run_in_executor(None, _hand_on, notes)
        except RuntimeError:
            # Python ends threads before it ends the runtime of a process that did not do so itself.
            self.lost += len(notes)
            return None

    def _rest(self) -> None:
        self._handed_on = None
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(FLUSH_SECONDS, self._flush) if self._notes else None

    def _take(self) -> list[_Note]:
        notes = list(self._notes)
        self._notes.clear()
        self._heavy = 0
        return notes


def _hand_on(notes: list[_Note]) -> None:
    hook = hooks.traced
    if hook is None:
        return
    try:
        hook([_record(note) for note in notes])
    except Exception:
        buffer.lost += len(notes)
        logger.exception("messages could not be added to the trace")


def _record(note: _Note) -> TraceRecord:
    spec = note.trace.spec
    body, size = cut(note.payload, spec.workspace_id) if note.payload is not None else (None, 0)
    return TraceRecord(
        workspace_id=spec.workspace_id,
        server_id=spec.server_id,
        principal=spec.principal,
        connection=note.trace.name,
        at=datetime.fromtimestamp(note.at, UTC),
        direction=note.direction,
        kind=note.kind,
        method=_short(note.method, spec.workspace_id),
        rpc_id=_short(note.rpc_id, spec.workspace_id),
        call_id=note.call.call_id if note.call is not None else None,
        user_id=note.call.user_id if note.call is not None else None,
        body=body,
        text=cut_known(note.text or _words_of(note), _MOST_WORDS, workspace_id=spec.workspace_id),
        size=size or len(note.text),
        duration_ms=note.duration_ms,
        is_check=note.is_check,
    )


def _short(text: str, workspace_id: UUID) -> str:
    """Of an id or a method, as much as a row takes; both may be the server's words."""
    return (
        text if len(text) <= _MOST_NAME else cut_known(text, _MOST_NAME, workspace_id=workspace_id)
    )


def _words_of(note: _Note) -> str:
    """What a person wants to read of a message without opening it."""
    payload = note.payload or {}
    if note.kind == "error":
        error = payload.get("error")
        return str(error.get("message", "")) if isinstance(error, dict) else ""
    params = payload.get("params")
    if note.method == "notifications/message" and isinstance(params, dict):
        data = params.get("data")
        text = data if isinstance(data, str) else _written(data, note.trace.spec.workspace_id)
        return f"{params.get('level', '')}: {text}"
    return ""


def _written(data: object, workspace_id: UUID) -> str:
    body, _size = cut({"data": data}, workspace_id)
    return cut_known(json.dumps(body["data"]), _MOST_WRITTEN, workspace_id=workspace_id)


def _is_heavy(payload: dict[str, Any]) -> bool:
    """Whether a message is large, judged by a few of its parts."""
    pending: list[object] = [payload]
    text = 0
    for _ in range(_LOOKED_AT):
        if not pending:
            return False
        item = pending.pop()
        if isinstance(item, str):
            text += len(item)
            if text > _HEAVY_TEXT:
                return True
        elif isinstance(item, dict):
            pending.extend(itertools.islice(item.values(), _LOOKED_AT))
        elif isinstance(item, list):
            pending.extend(itertools.islice(item, _LOOKED_AT))
    return bool(pending)


def cut(payload: dict[str, Any], workspace_id: UUID) -> tuple[dict[str, Any], int]:
    """A message in at most about 64 KiB, with marks where something was left out; and its size in bytes."""
    size = _size_of_small(payload)
    if size is not None:
        return payload, size
    budget = _Budget(workspace_id)
    body = budget.copy(payload)
    assert isinstance(body, dict)
    return body, budget.size


def _size_of_small(payload: dict[str, Any]) -> int | None:
    """The size of a message that can be kept as it is; None: each of its parts has to be looked at."""
    if _is_heavy(payload):
        return None
    try:
        text = _write(payload)
    except (ValueError, TypeError, RecursionError):
        return None
    is_deep = text.count("[") + text.count("{") > _MOST_DEPTH
    if len(text) > _SMALL or is_deep or _LONG_NUMBER.search(text):
        return None
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class _Budget:
    """How much of a message may still be copied, and how large it was so far."""

    def __init__(self, workspace_id: UUID) -> None:
        self.size = 0
        self._workspace_id = workspace_id
        self._left = MAX_BODY_BYTES
        self._nodes = MAX_NODES

    def copy(self, value: object, depth: int = 0) -> object:
        """A copy of a JSON value without what there is no room for."""
        self._nodes -= 1
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            self.size += 2
            copied: dict[str, object] = {}
            for number, (key, inner) in enumerate(value.items()):
                if self._is_spent(depth):
                    copied["…"] = f"{len(value) - number} more left out"
                    break
                name = self._text(
                    str(key)
                )  # there is room for it, and perhaps not for all behind it
                copied[name] = self.copy(inner, depth + 1)
                self.size += 2
            return copied
        if isinstance(value, list):
            self.size += 2
            items: list[object] = []
            for number, inner in enumerate(value):
                if self._is_spent(depth):
                    items.append(f"… {len(value) - number} more left out")
                    break
                items.append(self.copy(inner, depth + 1))
                self.size += 1
            return items
        self.size += 6
        self._left -= 6
        if value is None or isinstance(value, bool) or _is_storable(value):
            return value
        # Digits without end take time to write down, and Python refuses to.
        is_endless = isinstance(value, int) and value.bit_length() > _MOST_BITS
        return "a very long number" if is_endless else str(value)[:_MOST_DIGITS]

    def _is_spent(self, depth: int) -> bool:
        return self._left <= 0 or self._nodes <= 0 or depth > _MOST_DEPTH

    def _text(self, text: str) -> str:
        self.size += len(text) + 2
        if len(text) <= self._left:
            self._left -= len(text)
            return text
        kept = cut_known(text, max(self._left, 0), workspace_id=self._workspace_id)
        self._left = 0
        return f"{kept}… {len(text) - len(kept)} more characters"


def _is_storable(value: object) -> bool:
    """Whether it is a number that every database takes in JSON; the SDK reads 1e999 as infinity."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and -(2**63) <= value < 2**63


buffer: Final = TraceBuffer()
"""The process's."""
