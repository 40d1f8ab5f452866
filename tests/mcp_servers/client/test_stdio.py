"""Programs as servers: confined, bounded, and gone with their owner."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from mcp import Client, MCPError

from mcp_servers.client.connections import calls, runtime
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import ConnectionFailed
from mcp_servers.client.inputs import CallLimits
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.transports.messages import LINES_PER_SECOND
from mcp_servers.client.transports.stdio import (
    MAX_LINE_BYTES,
    STDERR_BYTES_PER_SECOND,
    StdioTransport,
)
from mcp_servers.client.transports.targets import ChildLimits, StdioSpec
from mcp_servers.client.values import Protocol
from tests.mcp_servers.factories import ZOO
from tests.patience import PATIENCE, wait_until
from workspaces.outbound import bounds
from workspaces.process import shutdown
from workspaces.process.shutdown import ShuttingDown


def zoo_spec(tmp_path: Path, mode: str, **fields: Any) -> StdioSpec:
    return StdioSpec(argv=(sys.executable, str(ZOO), mode), home=tmp_path / "home", **fields)


def connection(target: StdioSpec, **fields: Any) -> ConnectionSpec:
    values: dict[str, Any] = {
        "workspace_id": uuid4(),
        "server_id": uuid4(),
        "principal": "workspace",
        "server_name": "zoo",
        "target": target,
        "fingerprint": "1",
        "protocol": Protocol.LEGACY,
        **fields,
    }
    return ConnectionSpec(**values)


async def call(
    spec: ConnectionSpec, arguments: dict[str, Any] | None = None, timeout: float = PATIENCE
) -> str:
    permit = calls.mint_permit(
        call_id=uuid4(),
        server_id=spec.server_id,
        tool_name="probe",
        arguments=json.dumps(arguments or {}).encode(),
    )
    limits = CallLimits(seconds=timeout, hard_seconds=timeout)
    result = await calls.send_call(spec, permit, limits=limits)
    return str(result.content[0].text)  # type: ignore[union-attr]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until_gone(pid: int, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.05)


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> str:
    """A secret in the service's own environment."""
    monkeypatch.setenv("TRELLIS_CANARY", "canary-of-the-service")
    return "canary-of-the-service"


async def test_the_child_sees_nothing_of_the_service(tmp_path: Path, canary: str) -> None:
    """SEC-40: empty environment but declared names, own home and session, closed descriptors, limits, no new rights."""
    with open(tmp_path / "secret", "w") as secret:
        os.set_inheritable(secret.fileno(), False)
        sights = json.loads(
            await call(connection(zoo_spec(tmp_path, "probe", env={"ZOO_TOKEN": "given"})))
        )
    assert set(sights["env"]) <= {"PATH", "LANG", "HOME", "TMPDIR", "ZOO_TOKEN", "LC_CTYPE"}
    assert sights["env"]["HOME"] == sights["cwd"] == str(tmp_path / "home")
    assert sights["env"]["ZOO_TOKEN"] == "given"
    assert canary not in json.dumps(sights)
    assert sights["fds"][:3] == [0, 1, 2]
    assert len(sights["fds"]) <= 4  # the fourth reads the list itself
    assert sights["session"]
    assert sights["no_new_privs"]
    limits = ChildLimits()
    assert sights["limits"]["DATA"] == limits.memory_bytes
    assert sights["limits"]["NOFILE"] == limits.open_files
    assert sights["limits"]["FSIZE"] == limits.file_bytes
    assert sights["limits"]["CPU"] == limits.cpu_seconds
    assert sights["limits"]["CORE"] == 0
    assert 0 < sights["limits"]["NPROC"] < 100_000


async def test_memory_and_file_size_are_limited(tmp_path: Path) -> None:
    """SEC-40: a greedy child fails by itself; the service does not feel it."""
    assert await call(connection(zoo_spec(tmp_path / "a", "eat_memory"))) == "MemoryError"
    assert (await call(connection(zoo_spec(tmp_path / "b", "write_file")))).startswith("OSError")
    assert (tmp_path / "b" / "home" / "large").stat().st_size <= ChildLimits().file_bytes


@pytest.mark.skipif(os.getuid() == 0, reason="the kernel does not count root's processes")
async def test_processes_are_limited(tmp_path: Path) -> None:
    """SEC-40: a fork bomb stops at the limit."""
    sights = json.loads(await call(connection(zoo_spec(tmp_path, "probe"))))
    assert sights["limits"]["NPROC"] > 0


async def test_an_endless_line_ends_the_connection(tmp_path: Path) -> None:
    """SEC-42, SEC-33: a line is bounded, memory too, and the loop stays free."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    worst = 0.0

    async def watch() -> None:
        nonlocal worst
        while True:
            started = time.thread_time()
            await asyncio.sleep(0.001)
            worst = max(worst, time.thread_time() - started)

    watcher = asyncio.create_task(runtime.run(watch()))
    with pytest.raises(CallFailed):
        await call(connection(zoo_spec(tmp_path, "endless_line")))
    watcher.cancel()
    assert worst < 0.1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


async def test_a_line_just_within_the_limit_is_read(tmp_path: Path) -> None:
    """SEC-42, REL-1604: the limit is a limit, not a guess, and is named where it is passed."""
    spec = connection(zoo_spec(tmp_path, "long_result"))
    assert len(await call(spec, {"size": MAX_LINE_BYTES - 1000})) == MAX_LINE_BYTES - 1000
    with pytest.raises(CallFailed) as caught:
        await call(spec, {"size": MAX_LINE_BYTES + 1000})
    assert caught.value.kind == "too_large"


async def test_noise_on_standard_output_is_counted_and_dropped(tmp_path: Path) -> None:
    """SEC-42: greetings do not break a server; a flood of them ends it."""
    transport = StdioTransport(zoo_spec(tmp_path, "greeting"))
    async with asyncio.timeout(PATIENCE), Client(transport, mode="legacy", cache=None) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["probe"]
    assert transport.stderr.stray_lines == 3
    with pytest.raises(ConnectionFailed):
        await runtime.run(pool.list_tools(connection(zoo_spec(tmp_path, "flood_stdout"))))


async def test_what_npx_left_half_made_is_made_anew(tmp_path: Path) -> None:
    """REL-2543: it failed at every start from then on. What is whole, or may be in the making, stays."""
    spec = zoo_spec(tmp_path, "probe")
    folders = {name: spec.home / ".npm/_npx" / name for name in ("half", "whole", "young")}
    for name, folder in folders.items():
        (folder / "node_modules").mkdir(parents=True)
        if name != "young":
            os.utime(folder / "node_modules", (0, 0))
    (folders["whole"] / "package.json").write_text("{}")
    async with asyncio.timeout(PATIENCE), Client(StdioTransport(spec), mode="legacy", cache=None):
        assert [name for name, folder in folders.items() if folder.exists()] == ["whole", "young"]


async def test_the_error_stream_is_a_ring(tmp_path: Path) -> None:
    """SEC-42: the end of it is kept for the administrator."""
    transport = StdioTransport(zoo_spec(tmp_path, "flood_stderr"))
    async with asyncio.timeout(PATIENCE), Client(transport, mode="legacy", cache=None):
        pass
    assert "line 99999 of noise" in transport.stderr.text()
    assert len(transport.stderr.text()) <= 64 * 1024
    assert transport.stderr.dropped_bytes > 0


async def test_a_program_that_never_stops_talking_is_read_at_a_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-689: as an event stream is, and its error stream by bytes."""
    monkeypatch.setattr(bounds, "LINES_AT_ONCE", 200)
    spec = connection(zoo_spec(tmp_path, "talkative"))
    await runtime.run(pool.list_tools(spec))
    started = time.monotonic()
    assert json.loads(await call(spec, {"times": 600}))
    # 1200 lines less 200.
    assert time.monotonic() - started > 800 / LINES_PER_SECOND
    transport = StdioTransport(zoo_spec(tmp_path, "flood_stderr"))
    started = time.monotonic()
    async with asyncio.timeout(PATIENCE), Client(transport, mode="legacy", cache=None):
        pass
    assert time.monotonic() - started > 2_000_000 / STDERR_BYTES_PER_SECOND * 0.9


async def test_a_program_that_exits_at_once_says_why(tmp_path: Path) -> None:
    """The administrator reads the program's last words."""
    spec = connection(zoo_spec(tmp_path, "exit_at_once"))
    with pytest.raises(ConnectionFailed) as caught:
        await runtime.run(pool.list_tools(spec))
    assert "ended before it answered in MCP" in caught.value.message
    assert "configuration missing" in pool.stderr_of(spec)


async def test_a_busy_machine_loses_nothing_of_a_program_that_exits_at_once(tmp_path: Path) -> None:
    """REL-2598: it had ended before its pipes were connected, so its code and its words were never collected."""
    text = "print('usage: real'); raise SystemExit(7)"
    transport = StdioTransport(
        StdioSpec(argv=(sys.executable, "-S", "-c", text), home=tmp_path / "home")
    )
    is_open = asyncio.Event()

    async def keep_the_loop_busy() -> None:
        while not is_open.is_set():
            await asyncio.sleep(0)
            time.sleep(0.05)

    async def open_and_close() -> None:
        try:
            async with transport:
                pass
        finally:
            is_open.set()

    await asyncio.gather(open_and_close(), keep_the_loop_busy())
    assert transport.exit_code == 7
    assert "usage: real" in transport.stderr.text()


async def test_a_program_that_leaves_after_the_handshake_is_not_started_for_ever(
    tmp_path: Path,
) -> None:
    """REL-34: a few attempts, then a clear answer."""
    spec = connection(zoo_spec(tmp_path, "exit_after_hello"))
    async with asyncio.timeout(PATIENCE):
        with pytest.raises((ConnectionFailed, CallFailed)):
            await call(spec)


async def test_a_program_that_does_not_exist_is_told(tmp_path: Path) -> None:
    """A command that does not exist gets a clear message."""
    spec = connection(StdioSpec(argv=("/nowhere/program",), home=tmp_path / "home"))
    with pytest.raises(ConnectionFailed):
        await runtime.run(pool.list_tools(spec))
    assert "cannot run /nowhere/program" in pool.stderr_of(spec)


async def test_a_silent_program_is_given_up(tmp_path: Path) -> None:
    """REL-34: a hang in initialize ends at the connect timeout."""
    spec = connection(zoo_spec(tmp_path, "silent"), connect_seconds=1.0)
    started = time.monotonic()
    with pytest.raises(ConnectionFailed) as caught:
        await runtime.run(pool.list_tools(spec))
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < 30


async def test_a_death_in_a_call_ends_that_call_and_the_next_one_works(tmp_path: Path) -> None:
    """REL-34: a crash is told at once; nothing is sent again; the next call has a new child."""
    spec = connection(zoo_spec(tmp_path, "die_in_call"))
    for _ in range(2):
        started = time.monotonic()
        with pytest.raises(CallFailed) as caught:
            await call(spec)
        assert caught.value.kind == "broken"
        assert time.monotonic() - started < 30


async def test_a_program_that_ignores_signals_is_killed(tmp_path: Path) -> None:
    """SEC-41: closing ends the child for good."""
    transport = StdioTransport(zoo_spec(tmp_path, "ignore_term"))
    async with asyncio.timeout(PATIENCE):
        async with Client(transport, mode="legacy", cache=None) as client:
            result = await client.call_tool("probe", {})
            pid = json.loads(result.content[0].text)["pid"]  # type: ignore[union-attr]
            assert is_alive(pid)
    wait_until_gone(pid)


def test_a_process_that_ends_closes_also_what_a_program_is_busy_with(tmp_path: Path) -> None:
    """REL-3134: a program in a call does not see that its input has ended. Afterwards nothing is opened any more."""
    spec = connection(zoo_spec(tmp_path, "hang_in_call"))
    pending = runtime.current().submit(call(spec))
    wait_until(lambda: [one for one in pool.connections_of(spec.server_id) if one.in_flight])
    transport = pool._connections[spec.key].transport.stdio
    assert transport is not None
    keeper = transport.pid
    assert keeper is not None
    shutdown.begin()
    try:
        runtime.shutdown(0.1)
        assert not is_alive(keeper)
        with pytest.raises(CancelledError):
            pending.result(PATIENCE)
        with pytest.raises(ShuttingDown):
            runtime.current().submit(pool.connect(spec)).result(PATIENCE)
    finally:
        shutdown.cancel()


def test_what_ignores_signals_ends_with_the_process_too(tmp_path: Path) -> None:
    """REL-3285: the keeper is not killed before it has ended what the program started."""
    spec = connection(zoo_spec(tmp_path, "ignore_term_with_orphan"))
    runtime.current().submit(pool.list_tools(spec)).result(PATIENCE)
    orphan = int((tmp_path / "home" / "orphan.pid").read_text())
    shutdown.begin()
    try:
        runtime.shutdown(1.0)
        wait_until_gone(orphan)
    finally:
        shutdown.cancel()


async def test_a_childs_own_children_go_with_it(tmp_path: Path) -> None:
    """SEC-41: also those in a session of their own."""
    spec = connection(zoo_spec(tmp_path, "orphan"))
    await runtime.run(pool.list_tools(spec))
    orphan = int((tmp_path / "home" / "orphan.pid").read_text())
    assert is_alive(orphan)
    await runtime.run(pool.drop(spec.server_id))
    wait_until_gone(orphan)


def test_a_killed_platform_leaves_no_child(tmp_path: Path) -> None:
    """SEC-41: kill -9 of the parent."""
    script = textwrap.dedent(
        f"""
        import asyncio, json, sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parents[3])!r})
        from mcp import Client
        from mcp_servers.client.transports.targets import StdioSpec
        from mcp_servers.client.transports.stdio import StdioTransport

        async def main():
            spec = StdioSpec(argv=(sys.executable, {str(ZOO)!r}, "orphan"), home=Path({str(tmp_path / "home")!r}))
            async with Client(StdioTransport(spec), mode="legacy", cache=None) as client:
                result = await client.call_tool("probe", {{}})
                print(json.loads(result.content[0].text)["pid"], flush=True)
                await asyncio.sleep(60)

        asyncio.run(main())
        """
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    orphan = int((tmp_path / "home" / "orphan.pid").read_text())
    assert is_alive(child)
    assert is_alive(orphan)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_until_gone(child)
    wait_until_gone(orphan)


async def test_a_connection_that_is_never_used_again_closes(tmp_path: Path) -> None:
    """Each child costs tens of megabytes: idle ones go."""
    spec = connection(zoo_spec(tmp_path, "probe"), idle_seconds=0.2)
    pid = json.loads(await call(spec))["pid"]
    async with asyncio.timeout(PATIENCE):
        while is_alive(pid):
            await asyncio.sleep(0.05)
    assert json.loads(await call(spec))["pid"] != pid


async def test_the_sdk_reads_our_transport_as_its_own(tmp_path: Path) -> None:
    """Contract: an error of the child's own comes through as one."""
    async with (
        asyncio.timeout(PATIENCE),
        Client(StdioTransport(zoo_spec(tmp_path, "probe")), mode="legacy") as client,
    ):
        with pytest.raises(MCPError):
            await client.list_prompts()


async def test_many_children_leave_nothing(tmp_path: Path) -> None:
    """REL-36: descriptors and processes stay constant over starts and stops."""
    transport = zoo_spec(tmp_path, "probe")

    async def cycle(times: int) -> None:
        for _ in range(times):
            spec = connection(transport)
            await runtime.run(pool.list_tools(spec))
            await runtime.run(pool.drop(spec.server_id))

    def children() -> int:
        return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

    await cycle(3)
    before = (len(os.listdir("/proc/self/fd")), children())
    await cycle(15)
    await asyncio.sleep(0.3)
    after = (len(os.listdir("/proc/self/fd")), children())
    assert all(now <= then + 3 for then, now in zip(before, after, strict=True)), (before, after)
