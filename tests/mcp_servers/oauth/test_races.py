"""Two processes that need the same new token at the same moment."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

from django.db import connection

from config.bootstrap import ROOT
from mcp_servers.models import McpServer, OAuthGrant
from tests.extent import IS_FULL
from tests.fakes.protected_server import ProtectedServer
from tests.mcp_servers.oauth.conftest import SignIn

RACES: Final = {"postgresql": 1_000 if IS_FULL else 250, "sqlite": 100}
"""On one machine with one file a few will do; where installations of many processes live, a release is to be certain."""


def test_of_two_processes_one_renews(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-52: the issuer sees as many refreshes as there were races, each refresh token once, and nobody is left without."""
    races = RACES[connection.vendor]
    grant = sign_in(server).grant
    assert grant.generation == 2
    command = [sys.executable, "-m", "tests.mcp_servers.oauth.racer"]
    command += [str(connection.settings_dict["NAME"])]
    command += [str(grant.workspace_id), str(server.pk), str(grant.user_id), str(2 + races)]
    racers = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        listed = [racer.communicate(timeout=1500)[0] for racer in _started(racers)]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
    assert all(line.strip().isdigit() for line in listed), listed
    issuer = protected.issuer
    assert len(issuer.token_requests("refresh_token")) == races
    assert issuer.accounts.reused == []
    assert OAuthGrant.objects.across_workspaces().get().generation == 2 + races
    assert min(int(line) for line in listed) > 1, "one of them ran alone"


def _started(racers: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    """Let both go before anybody waits for one of them."""
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    return racers
