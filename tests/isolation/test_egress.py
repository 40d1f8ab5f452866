"""Whatever leaves the process leaves by one door."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from config.env import ROOT
from tests.isolation.state import OWN_APPS

NETWORK = frozenset(
    {
        *("aiohttp", "ftplib", "http.client", "httpcore2", "httpx", "httpx2", "imaplib", "openai"),
        *("poplib", "requests", "smtplib", "socket", "ssl", "telnetlib", "urllib.request"),
        *("urllib3", "websocket", "websockets", "xmlrpc.client"),
    }
)
# File → why it may know a network library.
ALLOWED = {
    "workspaces/outbound/reasons.py": "reads from exceptions why nothing was reached, and opens nothing",
    "workspaces/outbound/backend.py": "the egress client's connections",
    "workspaces/outbound/bounds.py": "the egress client's limits",
    "workspaces/outbound/egress.py": "the egress client itself",
    "workspaces/outbound/names.py": "looks up the egress client's names",
    "workspaces/outbound/streams.py": "the egress client's connections, to addresses that it is given",
    "workspaces/outbound/tls.py": "the egress client's connections without HTTP",
    "audit/streams/otlp.py": "posts with the egress client",
    "audit/streams/webhooks.py": "posts with the egress client",
    "audit/streams/syslog.py": "names the exceptions of TLS",
    "mcp_servers/client/transports/targets.py": "names the type of what puts tokens on requests",
    "mcp_servers/oauth/bearer.py": "puts tokens on requests of the client it is given",
    "mcp_servers/oauth/probing.py": "knocks with the egress client",
    "mcp_servers/oauth/requests.py": "asks issuers with the egress client",
    "mcp_servers/client/transports/guard.py": "checks the messages of the client it is given",
    "mcp_servers/client/connections/failures.py": "names the client's exceptions",
    "mcp_servers/client/transports/http.py": "names the type of the egress client",
    "mcp_servers/client/transports/http_failures.py": "names the client's exceptions",
    "mcp_servers/client/transports/own_answers.py": "reads the streams of the client it is given",
    "mcp_servers/client/transports/sse.py": "speaks over the client it is given",
    "mcp_servers/registry/icons.py": "fetches servers' icons with the egress client",
    "mcp_servers/klavis/http.py": "asks the provider with the egress client",
    "mcp_servers/klavis/rest_transport.py": "speaks over the client it is given",
    "mcp_servers/client/transports/websocket.py": "speaks over the client it is given",
    "chat/providers/openai_compatible.py": "drives the client it is given",
    "chat/providers/listing.py": "asks a provider for its models with the egress client",
    "chat/providers/choosing.py": "asks the egress client whether a local model answers",
    "config/serving/daphne_limits.py": "sets options of connections that others opened to the server",
    "config/doctor/outgoing.py": "names what goes wrong with a mail server, and opens nothing itself",
    "workspaces/people/provider_requests.py": "asks the identity provider with the egress client",
    "workspaces/delivery/webhooks.py": "posts with the egress client",
    "workspaces/delivery/web_push.py": "names the client that it is given",
    "chat/demo_model/transport.py": "answers inside the process, and opens nothing",
}
CLIENTS = frozenset({"AsyncClient", "Client", "AsyncHTTPTransport", "HTTPTransport"})


def own_files() -> Iterator[Path]:
    """Every module of ours but the web app and migrations."""
    for app in OWN_APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "node_modules" not in path.parts and "migrations" not in path.parts:
                yield path


def imported(tree: ast.Module) -> Iterator[str]:
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def network_use(path: Path) -> str:
    """What a file does with the network that it may not do; empty if nothing."""
    name = str(path.relative_to(ROOT))
    text = path.read_text()
    if not any(library.partition(".")[0] in text for library in NETWORK):
        return ""
    tree = ast.parse(text)
    found = {
        module
        for module in imported(tree)
        if any(module == library or module.startswith(f"{library}.") for library in NETWORK)
    }
    if found and name not in ALLOWED:
        return f"{name} imports {sorted(found)}"
    if name.startswith("workspaces/outbound/"):
        return ""
    made = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in {"httpx2", "httpcore2", "requests"}
        and node.func.attr in CLIENTS
    }
    return f"{name} makes a client of its own: {sorted(made)}" if made else ""


def test_no_other_module_knows_a_network_library() -> None:
    """SEC-27: one egress client, and a short list of files that may speak its language."""
    files = list(own_files())
    assert len(files) > 100
    assert [use for path in files if (use := network_use(path))] == []


def test_the_list_names_files_that_exist() -> None:
    """SEC-27."""
    assert all((ROOT / name).is_file() for name in ALLOWED)
