"""The servers in the `config.toml` of Codex, in the shape of other clients. Pure.

    [mcp_servers.far]
    url = "https://tools.example.com/mcp"
    bearer_token_env_var = "TOKEN"

Source: Codex's documentation, "Model Context Protocol".
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

MAX_BYTES: Final = 32 * 1024
"""Python's reader takes a second for a key of ten thousand parts, and four times as long for twice as many."""
_TABLE: Final = re.compile(r"^[ \t]*\[mcp_servers[.\]]", re.MULTILINE)


def is_codex_config(text: str) -> bool:
    """Whether a text is such a file, and not JSON."""
    return not text.lstrip().startswith(("{", '"')) and _TABLE.search(text) is not None


def read_codex_config(text: str) -> dict[str, Any]:
    """Give the servers as `mcpServers`; the rest of the file is left alone.

    Raises:
        TOMLDecodeError: it is no TOML, with line and column.
    """
    servers = tomllib.loads(text).get("mcp_servers")  # none: what looked like it stands in a text
    if not isinstance(servers, dict):
        return {}
    return {"mcpServers": {name: _in_common_shape(raw) for name, raw in servers.items()}}


def _in_common_shape(raw: Any) -> Any:
    """Headers under one key; those whose values Codex takes from its environment have variables."""
    if not isinstance(raw, dict):
        return raw
    given, named = raw.get("http_headers", {}), raw.get("env_http_headers", {})
    if not isinstance(given, dict) or not isinstance(named, dict):
        return {**raw, "headers": given if named == {} else named}
    headers = {**given, **{name: f"${{{variable}}}" for name, variable in named.items()}}
    if token := raw.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    return {**raw, "headers": headers} if headers else raw
