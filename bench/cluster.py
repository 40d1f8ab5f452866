"""`python -m bench.cluster`, called by `manage.py bench --cluster`: servers and a worker on PostgreSQL and Redis.

Three things are measured: how much work two servers do beside one, and what a turn costs each kind of process; whether
pages keep everything while all servers are replaced one by one; how soon what one process says reaches the pages of
the others.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

import psycopg
from redis import Redis

from bench.database import own_database
from bench.installation import peer, prepare
from bench.processes import free_port
from bench.results import Row, part, write_table
from config.suite import services

if TYPE_CHECKING:
    from bench.following import Page
    from bench.ground import Ground
    from bench.serving import Seat

WRITERS: Final = 24
WINDOW_SECONDS: Final = 10.0
RATE: Final = 4
"""Tokens a second of each stream: about how fast people read."""
LONG_SECONDS: Final = 600.0
"""The longest that anything is waited for; a busy machine takes its time."""
SETTLE_SECONDS: Final = 60
"""Until every page has to have everything: titles are still given, and a gap heals within seconds."""
TOLD_AT_ONCE: Final = 4
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Node:
    """A process of ours. It can be replaced by a fresh one."""

    def __init__(self, *command: str, port: int | None = None) -> None:
        self.port = port
        self._command = [sys.executable, "-m", *command]
        self._cpu_before = 0.0
        self._start()

    def stop(self) -> float:
        """Tell it to end, as a supervisor does; gives the seconds that it took."""
        began = time.monotonic()
        self._cpu_before = self.cpu
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(LONG_SECONDS)
        return time.monotonic() - began

    def replace(self) -> float:
        """Stop it, start it anew, and wait until that one is ready; gives the seconds of the stop."""
        seconds = self.stop()
        self._start()
        self.wait_until_ready()
        return seconds

    def wait_until_ready(self) -> None:
        """Wait until it serves.

        Raises:
            TimeoutError: it does not.
        """
        deadline = time.monotonic() + LONG_SECONDS
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("a server did not become ready")

    @property
    def cpu(self) -> float:
        """Seconds that it, its children, and those that it replaced have computed."""
        return self._cpu_before + sum(map(_cpu_of, _family(self._process.pid)))

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


class Cluster:
    """Servers behind a balancer that knows who is ready, a worker, and the two services below them."""

    def __init__(self, servers: int) -> None:
        ports = [free_port() for _ in range(servers)]
        self.servers = [
            Node(
                *("daphne", "-b", "127.0.0.1", "-p", str(port), "config.asgi:application"),
                port=port,
            )
            for port in ports
        ]
        self._worker = Node("celery", "-A", "config", "worker", "--concurrency", "2")
        self._ready = ports
        self._turns = itertools.count()
        for server in self.servers:
            server.wait_until_ready()

    def choose_port(self) -> int:
        """A server that is ready, each in its turn."""
        return self._ready[next(self._turns) % len(self._ready)]

    def only(self, count: int) -> None:
        """Let the balancer know so many servers."""
        self._ready = [server.port for server in self.servers[:count] if server.port]

    def replace(self, server: Node) -> float:
        """Replace one while the others serve; gives the seconds that it took to end."""
        self._ready = [one.port for one in self.servers if one is not server and one.port]
        seconds = server.replace()
        self.only(len(self.servers))
        return seconds

    def cpu(self) -> dict[str, float]:
        """Seconds that each kind of process has computed."""
        return {
            "servers": sum(server.cpu for server in self.servers),
            "worker": self._worker.cpu,
            "PostgreSQL": sum(map(_cpu_of, _family(_postgresql()))),
            "Redis": _cpu_of(_redis()),
        }

    def end(self) -> None:
        """End all processes."""
        for node in [*self.servers, self._worker]:
            node.kill()


@contextmanager
def running(servers: int) -> Iterator[Cluster]:
    """So many servers and a worker, until the block ends."""
    cluster = Cluster(servers)
    try:
        yield cluster
    finally:
        cluster.end()


async def work_of(ground: Ground, cluster: Cluster) -> list[Row]:
    """Turns a second of one server and of two, and what a turn costs each kind of process."""
    from bench.serving import make_seats
    from workspaces.database import in_database

    seats = await in_database(make_seats, ground, WRITERS)
    rates, costs = [], []
    for count in (1, 2):
        cluster.only(count)
        await _written(cluster, seats, seconds=2.0)
        before, began = await asyncio.to_thread(cluster.cpu), time.monotonic()
        turns = await _written(cluster, seats, seconds=WINDOW_SECONDS)
        rates.append(turns / (time.monotonic() - began))
        after = await asyncio.to_thread(cluster.cpu)
        costs.append({kind: (after[kind] - before[kind]) / turns * 1000 for kind in after})
    return [
        Row("turns a second, of two servers beside one", rates[0], rates[1], "/s", "≥ 1.8 ×"),
        *(
            Row(
                f"CPU of a turn, {kind}, of two beside one",
                costs[0][kind],
                costs[1][kind],
                "ms",
                "-",
            )
            for kind in costs[0]
        ),
    ]


async def replacing(ground: Ground, cluster: Cluster, *, idle: int, streaming: int) -> list[Row]:
    """Replace all servers one by one while people look at pages and read long answers."""
    from bench.following import Page, open_all
    from bench.serving import make_seats
    from workspaces.database import in_database

    seats = await in_database(make_seats, ground, idle + streaming)
    pages = [Page(seat, cluster.choose_port) for seat in seats]
    readers = pages[idle:]
    began = time.monotonic()
    await open_all(pages)
    _say(f"{len(pages)} pages open after {time.monotonic() - began:.0f} s")
    tokens = int(RATE * WINDOW_SECONDS * 3)
    for page in readers:
        await page.send(f"{tokens} {RATE}")
    await asyncio.gather(*(page.until_streaming(LONG_SECONDS) for page in readers))
    stops = []
    for server in cluster.servers:
        stops.append(await asyncio.to_thread(cluster.replace, server))
        _say(f"a server was replaced; it took {stops[-1]:.1f} s to end")
    began = time.monotonic()
    await asyncio.gather(*(page.until_answered(1, LONG_SECONDS) for page in readers))
    _say(f"all answers had ended {time.monotonic() - began:.0f} s later")
    delays = await _tell_all(ground, pages)
    lost = await _lost(ground, pages)
    absences = [seconds for page in pages for seconds in page.absences]
    for page in pages:
        await page.close()
    named = f"{idle} idle pages and {streaming} streams, all servers replaced"
    return [
        Row(f"{named}: pages that lack an event at the end", 0, len(lost), "", "0"),
        Row(
            f"{named}: turns that did not complete",
            0,
            sum(page.has_failed for page in readers),
            "",
            "0",
        ),
        Row(
            f"{named}: times a page noticed a gap and healed it",
            0,
            sum(page.healed for page in pages),
            "",
            "-",
        ),
        Row(f"{named}: a page is back, p50", 0, part(absences, 0.5), "s", "-"),
        Row(f"{named}: a page is back, the slowest", 0, max(absences), "s", "-"),
        Row(f"{named}: longest a server took to end", 0, max(stops), "s", "≤ 10 s"),
        Row(f"an event for each of {len(pages)} pages, p50", 0, part(delays, 0.5), "ms", "-"),
        Row(f"an event for each of {len(pages)} pages, p99", 0, part(delays, 0.99), "ms", "-"),
    ]


async def _written(cluster: Cluster, seats: Sequence[Seat], *, seconds: float) -> int:
    """Have people write, each as soon as they have their answer; gives the count of turns."""
    from bench.following import Page, open_all

    pages = [Page(seat, cluster.choose_port) for seat in seats]
    await open_all(pages)
    until = time.monotonic() + seconds

    async def write(page: Page) -> int:
        for count in itertools.count():
            if time.monotonic() >= until:
                return count
            known = len(page.turns)
            await page.send("5 0")
            await page.until_answered(known + 1, LONG_SECONDS)
        raise AssertionError

    counts = await asyncio.gather(*(write(page) for page in pages))
    for page in pages:
        await page.close()
    return sum(counts)


async def _tell_all(ground: Ground, pages: Sequence[Page]) -> list[float]:
    """Rename every page's conversation from this process; milliseconds until each page knows."""
    from workspaces.database import in_database
    from workspaces.delivery.announcements import serve_from

    serve_from(asyncio.get_running_loop())
    delays = []

    async def rename(page: Page) -> None:
        title = f"Renamed {page.seat.conversation_id}"
        committed = await in_database(_rename, ground, page.seat, title)
        await page.until(lambda: page.title == title, LONG_SECONDS)
        delays.append((time.monotonic() - committed) * 1000)

    for place in range(0, len(pages), TOLD_AT_ONCE):
        await asyncio.gather(*(rename(page) for page in pages[place : place + TOLD_AT_ONCE]))
    return delays


def _rename(ground: Ground, seat: Seat, title: str) -> float:
    """Rename it as its owner; gives the moment of the commit."""
    from chat.models import Conversation
    from chat.services.conversations import update_conversation
    from workspaces.actors import Source
    from workspaces.middleware import actor_for

    workspace = ground.bud.workspace
    conversation = Conversation.objects.for_workspace(workspace.pk).get(pk=seat.conversation_id)
    actor = actor_for(seat.person, workspace, source=Source.COMMAND)
    update_conversation(conversation=conversation, actor=actor, title=title)
    return time.monotonic()


async def _lost(ground: Ground, pages: Sequence[Page]) -> list[Page]:
    """Those that still lack something once what is on its way has had time to arrive."""
    from workspaces.database import in_database

    for _ in range(SETTLE_SECONDS):
        if not (behind := await in_database(_behind, ground, pages)):
            break
        await asyncio.sleep(1)
    return behind


def _behind(ground: Ground, pages: Sequence[Page]) -> list[Page]:
    """Those that do not have what the database has."""
    from chat.models import Conversation, Message

    workspace_id = ground.bud.workspace_id
    numbers = dict(Conversation.objects.for_workspace(workspace_id).values_list("pk", "event_seq"))
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    rows = Message.objects.for_workspace(workspace_id).values_list("conversation_id", "pk", "text")
    for conversation_id, pk, text in rows:
        texts[str(conversation_id)][str(pk)] = text
    return [
        page
        for page in pages
        if (page.seq, page.texts)
        != (numbers[UUID(page.seat.conversation_id)], texts[page.seat.conversation_id])
    ]


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:  # ended just now
        return []
    return [pid, *itertools.chain.from_iterable(_family(int(child)) for child in below)]


def _cpu_of(pid: int) -> float:
    """Seconds that a process, and those children of it that have ended, computed so far."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:  # ended just now
        return 0.0
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / _TICKS


def _postgresql() -> int:
    """The process of the database server, which is on this machine."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
    assert row is not None
    return int(row[0].split()[0])


def _redis() -> int:
    with Redis.from_url(os.environ["REDIS_URL"]) as redis:
        return int(redis.info("server")["process_id"])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def _measure(ground: Ground, *, idle: int, streaming: int) -> list[Row]:
    with running(2) as cluster:
        rows = await work_of(ground, cluster)
        return rows + await replacing(ground, cluster, idle=idle, streaming=streaming)


def main(arguments: Sequence[str]) -> int:
    """Measure, and print one line for each measure; 1 if a page lost something or a turn failed."""
    parser = argparse.ArgumentParser(prog="manage.py bench --cluster")
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--streaming", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder,
        services(Path(folder), is_durable=True) as found,
        peer("model") as model_port,
        peer("tools") as tools_port,
    ):
        os.environ |= found
        with own_database(found["TEST_DATABASE_URL"]) as database_url:
            prepare(folder, database_url)
            from bench.ground import make_ground
            from mcp_servers.client.connections import runtime

            ground = make_ground(
                model_url=f"http://127.0.0.1:{model_port}/v1",
                tools_url=f"http://127.0.0.1:{tools_port}/mcp",
                gateway_url=None,
            )
            try:
                rows = asyncio.run(_measure(ground, idle=options.idle, streaming=options.streaming))
            finally:
                runtime.shutdown(2.0)
    for row in rows:
        _say(row.as_text())
    if options.write:
        write_table("cluster, PostgreSQL and Redis", rows)
    return 1 if any(row.product for row in rows if row.target == "0") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
