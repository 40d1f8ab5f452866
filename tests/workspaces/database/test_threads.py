"""The threads of `in_database`: which one works, and what becomes of work whose caller has left."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import PATIENCE
from workspaces.database.threads import DatabaseThreads


@pytest.fixture
def threads() -> Iterator[DatabaseThreads]:
    threads = DatabaseThreads(2, begin=lambda: None)
    yield threads
    threads._end()


async def test_the_thread_that_worked_last_works_next(threads: DatabaseThreads) -> None:
    """REL-2901: what comes one after another has one thread, whose connection knows the file; others come only beside it."""
    both = threading.Barrier(2, timeout=PATIENCE)
    await asyncio.gather(threads.start(both.wait), threads.start(both.wait))
    used = {await threads.start(threading.get_ident) for _ in range(300)}
    assert len(used) == 1


async def test_more_work_than_threads(threads: DatabaseThreads) -> None:
    """What finds no thread waits, is done in its turn, and its errors are its caller's."""
    may_end = threading.Event()
    first = [threads.start(may_end.wait) for _ in range(2)]
    done: list[int] = []

    def fail(number: int) -> None:
        done.append(number)
        raise LookupError(number)

    rest = [threads.start(lambda number=number: fail(number)) for number in range(4)]  # type: ignore[misc]
    may_end.set()
    errors = await asyncio.gather(*first, *rest, return_exceptions=True)
    assert [type(error) for error in errors[2:]] == [LookupError] * 4
    assert sorted(done) == [0, 1, 2, 3]


async def test_the_end_of_an_iterator_is_an_error(threads: DatabaseThreads) -> None:
    """Ours: a future does not take it, and who waited for it did so forever."""
    nothing: Iterator[int] = iter(())
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await threads.start(lambda: next(nothing))


async def test_who_leaves(threads: DatabaseThreads) -> None:
    """REL-2902: work that has begun runs to its end when its caller leaves; what has not begun is not done."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()
    done: list[str] = []

    def work() -> None:
        begun.set()
        may_end.wait(PATIENCE)
        ended.set()

    busy: list[asyncio.Future[Any]] = [threads.start(work), threads.start(may_end.wait)]
    waits = threads.start(lambda: done.append("waited"))
    await asyncio.to_thread(begun.wait, PATIENCE)
    busy[0].cancel()
    waits.cancel()
    may_end.set()
    await threads.start(lambda: done.append("after"))
    assert await asyncio.to_thread(ended.wait, PATIENCE)
    assert done == ["after"]


def test_the_end_of_a_loop_and_of_the_process(threads: DatabaseThreads) -> None:
    """REL-2903: a thread outlives its caller's loop, and the process's end waits for a commit that has begun."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(PATIENCE)
        ended.set()

    async def leave() -> None:
        threads.start(work)
        await asyncio.to_thread(begun.wait, PATIENCE)

    asyncio.run(leave())
    threading.Timer(0.05, may_end.set).start()
    threads._end()
    assert ended.is_set()
    assert not any(thread.is_alive() for thread in threads._threads)
    with pytest.raises(RuntimeError, match="is ending"):
        asyncio.run(leave())


def test_the_end_of_the_process_waits_once_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-2903: not for one after another."""
    monkeypatch.setattr("workspaces.database.threads.ENDING_SECONDS", 0.5)
    threads = DatabaseThreads(8, begin=lambda: None)
    may_end = threading.Event()

    async def leave() -> None:
        for _ in range(8):
            threads.start(may_end.wait)

    asyncio.run(leave())
    began = time.monotonic()
    threads._end()
    took = time.monotonic() - began
    may_end.set()
    assert 0.5 <= took < 3.0


def test_a_forked_child_has_threads_of_its_own(threads: DatabaseThreads) -> None:
    """REL-2907: it inherits the pool, and none of the threads that its parent has in it."""

    async def work() -> int:
        return await threads.start(threading.get_ident)

    asyncio.run(work())
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(10)  # a child that hangs ends by it
            asyncio.run(work())
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
