"""PgBouncer in transaction mode between the processes and PostgreSQL."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

import psycopg
import pytest

from tests.extent import IS_FULL
from tests.patience import PATIENCE
from tests.plain_role import grants_for
from tests.ports import free_port
from tests.scaled.installation import Browser, Installation, is_ready

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
SERVER_CONNECTIONS = 3
"""Fewer than one process has threads that ask: each transaction takes whichever is free."""
CONVERSATIONS = 8

pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.redis,
    pytest.mark.skipif(
        PGBOUNCER is None or not IS_FULL,
        reason="runs with test --full where pgbouncer is installed",
    ),
]


PLAIN_ROLE = "trellis_pooled"
"""Owns nothing, and policies hold for it: the role of the products' processes where row-level security is on."""


@contextmanager
def pooled(database_url: str, folder: Path, *, role: str | None = None) -> Iterator[str]:
    """Start PgBouncer before the database, as this role; gives the address that processes use."""
    assert PGBOUNCER is not None
    parts = urlsplit(database_url)
    host = parts.hostname or parse_qs(parts.query)["host"][0]
    port = free_port()
    settings = folder / "pgbouncer.ini"
    user = role or parts.username
    password = f" password={parts.password}" if parts.password else ""
    runs_as = ""
    if os.getuid() == 0:  # it refuses to, and has to reach the socket of the database
        owner = Path(host).owner() if host.startswith("/") else "nobody"
        runs_as = f"user = {owner}"
    settings.write_text(
        f"""
[databases]
* = host={host} port={parts.port or 5432} user={user}{password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {SERVER_CONNECTIONS}
max_client_conn = 500
{runs_as}
"""
    )
    log = (folder / "pgbouncer.log").open("wb")
    process = subprocess.Popen([PGBOUNCER, str(settings)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)  # a foreign process starts
        netloc = f"{user}@127.0.0.1:{port}"
        yield urlunsplit(parts._replace(netloc=netloc, query=""))
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("is_walled", [False, True], ids=["plain", "row security"])
def test_servers_and_workers_share_three_connections(
    installation: Installation, is_walled: bool
) -> None:
    """REL-700: every turn ends, every call is in the log, the log is whole, and the doctor finds the timeouts.

    SEC-13: with row-level security too. What one transaction reaches is not left behind for the next one's client.
    """
    direct = installation.environment["DATABASE_URL"]
    role = PLAIN_ROLE if is_walled else None
    with pooled(direct, installation.folder, role=role) as pooled_url:
        with psycopg.connect(direct, autocommit=True) as connection:
            name = connection.info.dbname
            for timeout in ("idle_in_transaction_session_timeout", "lock_timeout"):
                connection.execute(f"ALTER DATABASE \"{name}\" SET {timeout} = '20s'")
        installation.environment["TRELLIS_ROW_SECURITY"] = "on" if is_walled else "off"
        installation.manage("migrate", "--verbosity", "0")
        if is_walled:
            with psycopg.connect(direct, autocommit=True) as connection:
                connection.execute(grants_for(PLAIN_ROLE))
        installation.environment |= {
            "DATABASE_URL": pooled_url,
            "TRELLIS_DATABASE_POOLER": "transaction",
        }
        installation.manage("seed_demo")
        for number, port in enumerate(installation.ports):
            command = ("daphne", "-b", "127.0.0.1", "-p", str(port), "config.asgi:application")
            installation.start(f"server{number}", *command)
        installation.start("worker", "celery", "-A", "config", "worker", "--concurrency", "1")
        for port in installation.ports:
            installation.until(f"readiness of {port}", lambda port=port: is_ready(port))  # type: ignore[misc]

        browser = Browser(installation.ports[0])
        browser.sign_in("member@demo.example", "trellis-demo")
        clock = next(bud for bud in browser.api("/api/buds/")["results"] if bud["slug"] == "clock")
        turns = []
        for number in range(CONVERSATIONS):
            browser.port = installation.ports[number % 2]
            conversation = browser.api("/api/conversations/", {"bud_id": clock["id"]})
            path = f"/api/conversations/{conversation['id']}/messages/"
            text = "What time is it in Tokyo?"
            sent = browser.api(path, {"client_id": f"m{number}", "text": text})
            turns.append(f"/api/turns/{sent['turn']['id']}/")
        installation.until(
            "the answers",
            lambda: all(browser.api(turn)["status"] == "completed" for turn in turns),
        )
        calls = [call["status"] for turn in turns for call in browser.api(f"{turn}tool-calls/")]
        assert calls == ["succeeded"] * CONVERSATIONS
        # Each exits with 1 if it finds something.
        installation.manage("verify_audit")
        doctor = json.loads(installation.manage("doctor", "--json"))
        states = {one["part"]: one["state"] for one in doctor}
        assert states["database"] == "ok"
        assert states["row-level security"] == "ok"
