"""Secrets of a workspace's file that stand in the environment."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_servers.registry.files.file_format import MissingVariable, fill_text
from workspaces.errors import InvalidInput

_SECRET: Final = ("auth", "headers", "env")
"""Of a server. A provider has its `api_key`."""


def fill_variables(document: Any, environment: Mapping[str, str]) -> Any:
    """Put variables' values where `api_key` of providers and `auth`, `headers` and `env` of servers name them.

    Raises:
        InvalidInput: one is not set, or is the platform's own secret.
    """
    filled = copy.deepcopy(document)
    for provider in _rows(filled, "providers"):
        _fill(provider, ["api_key"], environment, f"providers.{provider.get('name')}")
    for server in _rows(filled, "servers"):
        for part in _SECRET:
            if isinstance(texts := server.get(part), dict):
                _fill(texts, list(texts), environment, f"servers.{server.get('name')}.{part}")
    return filled


def _rows(document: Any, part: str) -> list[dict[str, Any]]:
    """What is no mapping is told when the document's shape is checked."""
    rows = document.get(part) if isinstance(document, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _fill(
    texts: dict[str, Any], names: Iterable[str], environment: Mapping[str, str], place: str
) -> None:
    for name in names:
        if not isinstance(text := texts.get(name), str):
            continue
        try:
            texts[name] = fill_text(text, environment)
        except MissingVariable as error:
            raise InvalidInput(fields={f"{place}.{name}": [str(error)]}) from error
