"""The threads that work for `in_database`: what comes goes to the one that worked last."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

R = TypeVar("R")

ENDING_SECONDS: Final = 10.0
"""How long the end of the process waits for what has begun, in all its threads together."""


@dataclass(slots=True)
class _Work:
    """What a thread is to do, and who waits for it."""

    function: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    waiting: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None

    def do(self) -> None:
        """In the thread. For a caller who has left before it began, nothing is done."""
        if self.waiting.cancelled():
            return
        try:
            self.result = self.function()
        except StopIteration as error:
            # A future does not take it, and its caller would wait forever.
            self.error = RuntimeError("What the thread called raised StopIteration.")
            self.error.__cause__ = error
        except BaseException as error:  # noqa: BLE001  it is the caller's
            self.error = error

    def hand_back(self) -> None:
        """In the thread: wake the caller, unless their loop has ended."""
        try:
            self.loop.call_soon_threadsafe(self._settle)
        except RuntimeError:
            if not self.loop.is_closed():
                raise

    def _settle(self) -> None:
        error, self.error = self.error, None  # it holds frames, and they hold this
        if self.waiting.done():
            return
        if error is None:
            self.waiting.set_result(self.result)
        else:
            self.waiting.set_exception(error)


class DatabaseThreads:
    """A few threads, each with a connection of its own.

    Python's pool wakes the thread that has waited longest, so calls one after another go round all of them. SQLite
    forgets what a connection knows of the file once another one has written, so each of them reads the same pages
    anew. Here the thread that worked last works next. It counts as free before its caller goes on.

    Args:
        most: how many there are at most; they come with the work.
        begin: run in each thread at first.
    """

    def __init__(self, most: int, *, begin: Callable[[], None]) -> None:
        self._most = most
        self._begin = begin
        self._begin_anew()
        atexit.register(self._end)
        os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        """A forked child has none of its parent's threads."""
        self._lock = threading.Lock()
        self._threads: list[_Thread] = []
        self._free: list[_Thread] = []
        self._waiting: deque[_Work] = deque()
        self._is_ending = False

    def start(self, function: Callable[[], R]) -> asyncio.Future[R]:
        """Have a thread call a function; what it gives, on the running loop. What has begun runs to its end.

        Raises:
            RuntimeError: the process is ending.
        """
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[R] = loop.create_future()
        self._hand_over(_Work(function, loop, waiting))
        return waiting

    def _hand_over(self, work: _Work) -> None:
        with self._lock:
            if self._is_ending:
                raise RuntimeError("The database takes no more work: the process is ending.")
            thread = self._free.pop() if self._free else self._started()
            if thread is None:
                self._waiting.append(work)
                return
        thread.take(work)

    def _started(self) -> _Thread | None:
        """Another thread; None: there are as many as there may be."""
        if len(self._threads) >= self._most:
            return None
        thread = _Thread(f"database_{len(self._threads)}", self._serve)
        thread.start()
        self._threads.append(thread)
        return thread

    def _serve(self, thread: _Thread) -> None:
        self._begin()
        work = thread.wait()
        while work is not None:
            work.do()
            done, work = work, self._next_for(thread)
            done.hand_back()
            del done  # while it rests, it keeps nobody's rows
            work = work or thread.wait()

    def _next_for(self, thread: _Thread) -> _Work | None:
        """What waits; None: from now on the thread is free."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            if self._is_ending:
                thread.take(None)
            else:
                self._free.append(thread)
            return None

    def _end(self) -> None:
        """At the end of the process: a commit that has begun comes to its end."""
        with self._lock:
            self._is_ending, free, self._free = True, self._free, []
        for thread in free:
            thread.take(None)
        deadline = time.monotonic() + ENDING_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))


class _Thread(threading.Thread):
    """One of them."""

    def __init__(self, name: str, serve: Callable[[_Thread], None]) -> None:
        super().__init__(name=name, target=serve, args=(self,), daemon=True)
        self._given: _Work | None = None
        self._called = threading.Lock()
        self._called.acquire()

    def take(self, work: _Work | None) -> None:
        """From another thread: give it its next work; None: there is no more."""
        self._given = work
        self._called.release()

    def wait(self) -> _Work | None:
        """In the thread itself: for its next work."""
        self._called.acquire()
        work, self._given = self._given, None
        return work
