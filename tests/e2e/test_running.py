"""The server process itself: starting, refusing to start, stopping."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import urllib.request
from contextlib import closing
from pathlib import Path

import psutil
from playwright.sync_api import Page, expect

from config.bootstrap import PYTHON, ROOT
from tests.e2e.conftest import STOP_SECONDS, RunningTrellis, start_trellis, stop_trellis
from tests.e2e.people import MEMBER, enter
from tests.ports import free_port


def import_seconds(environment: dict[str, str]) -> float:
    """What the processor takes to import what is served: the floor of a start."""
    script = (
        "import time, django; django.setup(); import config.urls, daphne.server, config.asgi; "
        "print(time.process_time())"
    )
    done = subprocess.run(
        [str(PYTHON), "-c", script],
        cwd=ROOT,
        env={**environment, "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        timeout=STOP_SECONDS,
        check=True,
    )
    return float(done.stdout)


def test_it_starts_again_quickly_and_stops_cleanly(tmp_path: Path) -> None:
    """Ours: a second start costs little more than its imports; on either signal no child process is left behind."""
    port = free_port()
    for how in (signal.SIGINT, signal.SIGTERM):
        running = start_trellis(tmp_path / "data", port)
        server = psutil.Process(running.process.pid)
        work = server.cpu_times().user
        children = server.children(recursive=True)
        assert stop_trellis(running, how) == 0
        _, alive = psutil.wait_procs(children, timeout=STOP_SECONDS)
        assert not alive
    # The first start had a database to make, the second has not.
    assert work < 2 * import_seconds(running.environment)


def newest_of_chat(database: Path) -> str:
    """The migration of the chat's tables that a file has come to."""
    query = "SELECT name FROM django_migrations WHERE app = 'chat' ORDER BY name DESC LIMIT 1"
    with closing(sqlite3.connect(database)) as opened:
        [(name,)] = opened.execute(query).fetchall()
    return str(name)


def test_an_upgrade_keeps_the_database_as_it_was(tmp_path: Path) -> None:
    """REL-1534: with the embedded database, the newest two copies for 30 days, each readable by its owner alone."""
    running = start_trellis(tmp_path / "data", free_port(), "--no-demo")
    stop_trellis(running, signal.SIGTERM)
    old = [tmp_path / "data" / f"trellis.sqlite3.before-upgrade-2026010{n}T000000" for n in (1, 2)]
    for copy in old:
        copy.touch()
    os.utime(old[1], (0, 0))
    before, now = sorted(one.stem for one in (ROOT / "chat/migrations").glob("0*.py"))[-2:]
    back = running.manage("migrate", "chat", before)
    assert back.returncode == 0, back.stderr
    running = start_trellis(tmp_path / "data", free_port(), "--no-demo")
    try:
        *others, newest = sorted((tmp_path / "data").glob("trellis.sqlite3.before-upgrade-*"))
        assert others == old[:1], "one was too old"
        assert newest.stat().st_mode & 0o077 == 0
        assert newest_of_chat(newest) == before
        assert newest_of_chat(tmp_path / "data" / "trellis.sqlite3") == now
    finally:
        stop_trellis(running, signal.SIGTERM)


def test_a_port_in_use_is_one_clear_line(trellis: RunningTrellis, tmp_path: Path) -> None:
    """Ours."""
    port = trellis.url.rpartition(":")[2]
    done = trellis.manage("up", "--port", port)
    assert done.returncode == 1
    assert f"Port {port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_data_folder_is_its_owners_alone(trellis: RunningTrellis) -> None:
    """SEC-25: keys and database are not readable by other accounts of the machine."""
    for path in [trellis.data_dir / "keys.json", *trellis.data_dir.glob("trellis.sqlite3*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_every_answer_carries_the_common_headers(trellis: RunningTrellis) -> None:
    """SEC-84: the real server, static files and health pages included."""
    paths = ["/healthz", "/accounts/login/", "/static/web/manifest.json", "/nothing-here"]
    for path in paths:
        request = urllib.request.Request(f"{trellis.url}{path}")
        try:
            answer = urllib.request.urlopen(request, timeout=STOP_SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy, path
        assert "unsafe" not in policy, path
        assert answer.headers["X-Content-Type-Options"] == "nosniff", path
        assert answer.headers["Referrer-Policy"] == "same-origin", path


def test_a_foreign_host_and_two_hosts_are_refused(trellis: RunningTrellis) -> None:
    """SEC-16: HTTP and the upgrade to a socket alike, absolute-form targets included."""
    port = int(trellis.url.rpartition(":")[2])
    host = f"Host: localhost:{port}\r\n"
    upgrade = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Origin: {trellis.url}\r\n"
    )
    requests = [
        "GET /accounts/login/ HTTP/1.1\r\nHost: evil.example\r\n",
        f"GET /accounts/login/ HTTP/1.1\r\n{host}Host: evil.example\r\n",
        f"GET http://evil.example/accounts/login/ HTTP/1.1\r\n{host}",
        f"GET /ws/w/demo/ HTTP/1.1\r\nHost: evil.example\r\n{upgrade}",
    ]
    for text in requests:
        with socket.create_connection(("127.0.0.1", port), timeout=STOP_SECONDS) as connection:
            connection.sendall(f"{text}Connection: close\r\n\r\n".encode())
            status = int(connection.recv(4096).split()[1])
        assert status in {400, 403, 404}, text


def test_the_first_load_of_the_chat_is_light(page: Page) -> None:
    """REL-370: the page and all that it loads, as they go over the wire to a browser that holds nothing.

    REL-753: what renders answers comes once somebody moves or types.
    """
    enter(page, MEMBER)
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: list[float] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/w/demo/", wait_until="networkidle")
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    assert min(sizes) > 0
    assert 100_000 < sum(sizes) < 180_000
    assert not [url for url in asked if "/render-" in url]
    with page.expect_request(lambda request: "/render-" in request.url):
        page.mouse.move(200, 300)
