"""What other accounts of the machine can see of a child: its command line."""

from __future__ import annotations

from pathlib import Path

import psutil

from mcp_servers.registry.services import test_connection as look_at
from tests.factories import Tenant
from tests.mcp_servers.factories import zoo_server

CANARY = "canary-env-4b7e-secret"


def test_no_secret_is_on_a_command_line(tenant: Tenant) -> None:
    """SEC-98: secrets reach a program by its environment alone."""
    server = zoo_server(tenant, "good", env={"ZOO_TOKEN": CANARY})
    look_at(server=server, actor=tenant.actor())
    children = psutil.Process().children(recursive=True)
    assert children
    seen_in_environment = False
    for child in children:
        command_line = Path(f"/proc/{child.pid}/cmdline").read_bytes()
        assert CANARY.encode() not in command_line
        environment = Path(f"/proc/{child.pid}/environ").read_bytes()
        seen_in_environment |= CANARY.encode() in environment
    assert seen_in_environment
