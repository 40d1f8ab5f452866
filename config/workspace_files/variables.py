"""Secrets of a workspace's file that stand in the environment."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_servers.registry.files.file_format import MissingVariable, fill_text
from workspaces.errors import InvalidInput

_SECRETS: Final = {
    "providers": ("api_key",),
    "servers": ("auth", "headers", "env"),
    "streams": ("headers", "client_key"),
}
"""What is secret of each part's rows: a text, or names with texts."""


def fill_variables(document: Any, environment: Mapping[str, str]) -> Any:
    """Put variables' values where secrets of providers, servers and streams name them.

    Raises:
        InvalidInput: one is not set, or is the platform's own secret.
    """
    filled = copy.deepcopy(document)
    for part, secrets in _SECRETS.items():
        for row in _rows(filled, part):
            place = f"{part}.{row.get('name')}"
            for secret in secrets:
                if isinstance(texts := row.get(secret), dict):
                    _fill(texts, list(texts), environment, f"{place}.{secret}")
                else:
                    _fill(row, [secret], environment, place)
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
