"""Two server processes, a worker and a scheduler from the same code, on PostgreSQL and Redis."""

from __future__ import annotations

import signal
from urllib.error import HTTPError

import pytest

from tests.deploy.packages import command_of
from tests.patience import PATIENCE
from tests.scaled.installation import Browser, Installation, is_ready

pytestmark = [pytest.mark.postgresql, pytest.mark.redis]


def test_one_installation_of_many_processes(installation: Installation) -> None:
    """REL-22, REL-395, REL-1423, SEC-656: as the compose file starts them. What is asked at one process is answered at the other; each stops cleanly when told to, and their logs are JSON without the secrets of addresses."""
    installation.environment["LOG_FORMAT"] = "json"
    installation.manage("migrate", "--verbosity", "0")
    installation.manage("seed_demo")
    for number, port in enumerate(installation.ports):
        here = {"0.0.0.0": "127.0.0.1", "8000": str(port)}
        server = [here.get(word, word) for word in command_of("server-1")]
        installation.start(f"server{number}", *server)
    one_child = {"4": "1"}
    installation.start("worker", *[one_child.get(word, word) for word in command_of("worker")])
    installation.start("beat", *command_of("scheduler"))
    for port in installation.ports:
        installation.until(f"readiness of {port}", lambda port=port: is_ready(port))  # type: ignore[misc]

    first = Browser(installation.ports[0])
    with pytest.raises(HTTPError):
        first.fetch("/shared/canary-of-a-link/?code=canary-of-an-issuer")
    first.sign_in("member@demo.example", "trellis-demo")
    clock = next(bud for bud in first.api("/api/buds/")["results"] if bud["slug"] == "clock")
    conversation = first.api("/api/conversations/", {"bud_id": clock["id"]})
    path = f"/api/conversations/{conversation['id']}/messages/"
    sent = first.api(path, {"client_id": "one", "text": "What time is it in Tokyo?"})

    second = first  # cookies know no ports, so the same session opens the other process
    second.port = installation.ports[1]
    turn = f"/api/turns/{sent['turn']['id']}/"
    installation.until("the answer", lambda: second.api(turn)["status"] == "completed")
    calls = second.api(f"{turn}tool-calls/")
    calls = calls["results"] if isinstance(calls, dict) else calls
    assert [call["status"] for call in calls] == ["succeeded"]

    def is_checked() -> bool:
        servers = second_admin.api("/api/servers/")["results"]
        return all(server["last_checked_at"] for server in servers)

    second_admin = Browser(installation.ports[1])
    second_admin.sign_in("admin@demo.example", "trellis-demo")
    installation.until("a health check by the worker", is_checked)

    for name in ("beat", "worker", "server0", "server1"):
        installation.processes[name].send_signal(signal.SIGTERM)
    for name, process in installation.processes.items():
        assert process.wait(PATIENCE) == 0, (name, installation.logs())
    values = {log.stem: log.read_text() for log in installation.folder.glob("*.log")}
    # Celery's worker says in its own words that it ends, and warns whoever runs it as root.
    lines = [line for name, log in values.items() if name != "worker" for line in log.splitlines()]
    assert [line for line in lines if not line.startswith("{")] == []
    assert "/shared/" in values["server0"]
    assert "canary" not in "".join(values.values())
    # Celery closes a pool of connections at the start of each process, before anybody uses it.
    assert "is closed" not in values["worker"], values["worker"]
