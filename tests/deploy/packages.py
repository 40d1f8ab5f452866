"""Reading the files of `deploy`."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from config.env import ROOT

DEPLOY = ROOT / "deploy"
OURS = ("server-1", "server-2", "worker", "scheduler")


@cache
def services() -> dict[str, Any]:
    """The compose file's services, with what they share filled in."""
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return found


def command_of(service: str) -> list[str]:
    """What a service of the compose file runs."""
    return list(services()[service]["command"])
