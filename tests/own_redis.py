"""A Redis of a test's own, for what changes the whole server: the tests' processes share the other one."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import redis

from config.suite import redis_command
from tests.patience import wait_until
from tests.ports import free_port


def start_redis(port: int, folder: Path) -> subprocess.Popen[bytes]:
    """Start one that keeps nothing, at this port of this machine. It may not answer yet."""
    return subprocess.Popen(redis_command(port, folder), stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def own_redis(folder: Path) -> Iterator[str]:
    """Its address, while it runs."""
    port = free_port()
    process = start_redis(port, folder)
    try:
        with redis.Redis(port=port) as client:
            wait_until(lambda: _answers(client), what="the Redis of this test")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def _answers(client: redis.Redis) -> bool:
    with contextlib.suppress(redis.ConnectionError):
        return bool(client.ping())
    return False
