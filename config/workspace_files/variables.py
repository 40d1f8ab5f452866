"""Secrets of a workspace's file that stand in the environment."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from mcp_servers.registry.files.file_format import MissingVariable, fill_text
from workspaces.errors import InvalidInput

_SECRET: Final = ("auth", "headers", "env")


def fill_variables(document: Any, environment: Mapping[str, str]) -> Any:
    """Put variables' values where `auth`, `headers` and `env` of servers name them.

    Raises:
        InvalidInput: one is not set, or is the platform's own secret.
    """
    filled = copy.deepcopy(document)
    servers = filled.get("servers") if isinstance(filled, dict) else None
    for server in servers if isinstance(servers, list) else ():
        for part in _SECRET if isinstance(server, dict) else ():
            texts = server.get(part)
            if not isinstance(texts, dict):
                continue
            for name, text in texts.items():
                try:
                    texts[name] = fill_text(text, environment) if isinstance(text, str) else text
                except MissingVariable as error:
                    place = f"servers.{server.get('name')}.{part}.{name}"
                    raise InvalidInput(fields={place: [str(error)]}) from error
    return filled
