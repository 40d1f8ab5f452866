"""Clients that describe themselves in a document of their own: who reads it, when, and what it has to say."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from mcp_servers.endpoint.sign_in import clients
from mcp_servers.models import KnownClient
from tests.factories import Tenant
from tests.mcp_servers.endpoint.client import McpClient
from tests.mcp_servers.endpoint.signing_in import REDIRECT, SigningIn, let_clients_in

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Publisher:
    """The host of a client's document."""

    server: ThreadingHTTPServer
    document: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    reads: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/client.json"


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.reads += 1
            body = json.dumps(found.document).encode()
            self.send_response(found.status)
            if found.status in (301, 302):
                self.send_header("Location", "/elsewhere.json")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Publisher(server)
    found.document = {
        "client_id": found.address,
        "client_name": "Hoe",
        "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none",
    }
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_client_with_a_document_signs_in(tenant: Tenant, publisher: Publisher) -> None:
    """SEC-538, REL-1100: without registration; the page names where the document stands, and it is not read at each step."""
    let_clients_in(tenant)
    begun = SigningIn(tenant, publisher.address)
    text = begun.page().content.decode()
    assert "Hoe" in text
    assert "It describes itself at" in text
    tokens = begun.tokens()
    assert McpClient(tenant, tokens["access_token"]).post("tools/list").status_code == 200
    assert publisher.reads == 1
    assert KnownClient.objects.get().via == "document"


def test_a_document_that_changes_counts_from_the_next_reading(
    tenant: Tenant, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-538: an address that it no longer names gets no code any more."""
    let_clients_in(tenant)
    begun = SigningIn(tenant, publisher.address)
    assert begun.page().status_code == 200
    publisher.document["redirect_uris"] = ["https://new.example/cb"]
    assert begun.page().status_code == 200
    monkeypatch.setattr(clients, "DOCUMENT_AGE", clients.DOCUMENT_AGE * 0)
    assert begun.page().status_code == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "https://other.example/client.json"},
        {"client_id": None},
        {"client_secret": "shared"},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"redirect_uris": ["http://evil.example/cb"]},
        {"redirect_uris": []},
        {"redirect_uris": ["https://256.1.1.1/cb"]},
        {"redirect_uris": ["https://xn--/cb"]},
        {"redirect_uris": ["https://a%20b/cb"]},
        {"redirect_uris": "https://a.example/cb"},
        {"client_name": "x" * 80_000},
    ],
)
def test_a_document_has_to_be_in_order(
    tenant: Tenant, publisher: Publisher, changed: dict[str, Any]
) -> None:
    """SEC-538: it describes this very client, without a secret, and is small."""
    let_clients_in(tenant)
    publisher.document |= changed
    page = SigningIn(tenant, publisher.address).page()
    assert page.status_code == 422
    assert "Nothing was allowed" in page.content.decode()
    assert not KnownClient.objects.exists()


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_document_has_to_be_there(tenant: Tenant, publisher: Publisher, status: int) -> None:
    """SEC-538: no redirect is followed."""
    let_clients_in(tenant)
    publisher.status = status
    assert SigningIn(tenant, publisher.address).page().status_code == 422
    assert publisher.reads == 1


@pytest.mark.parametrize(
    "client_id",
    [
        "http://app.example/client.json",
        "https://10.0.0.1/client.json",
        "https://app.example",
        "https://app.example/",
        "https://app.example/a/../client.json",
        "https://user@app.example/client.json",
        "https://app.example/client.json#x",
        "https://app.example/client.json?x=1",
    ],
)
def test_only_secure_addresses_outside_are_read(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, client_id: str
) -> None:
    """SEC-538: by the rules of all requests that leave Trellis."""
    let_clients_in(tenant)
    monkeypatch.setattr("workspaces.outbound.egress.allowed_networks", tuple)
    monkeypatch.setattr("workspaces.outbound.allowed_networks", tuple)
    page = SigningIn(tenant, client_id).page()
    assert page.status_code == 422
    assert not KnownClient.objects.exists()


def test_where_no_document_can_be_read_clients_register(
    tenant: Tenant, publisher: Publisher, settings: Settings
) -> None:
    """REL-2031: the page names the host and what to do; with the setting, clients are told to register."""
    let_clients_in(tenant)
    publisher.server.shutdown()
    publisher.server.server_close()
    page = SigningIn(tenant, publisher.address).page()
    assert page.status_code == 422
    html = page.content.decode()
    assert "cannot reach 127.0.0.1" in html
    assert "TRELLIS_MCP_CLIENT_DOCUMENTS=0" in html
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"mcp_client_documents": False})
    server = Client().get("/.well-known/oauth-authorization-server").json()
    assert server["client_id_metadata_document_supported"] is False
    text = SigningIn(tenant, publisher.address).page().content.decode()
    assert "has to register. Remove this server from it" in text
    assert SigningIn.begun(tenant).tokens()["access_token"]


def test_strangers_have_nothing_read(tenant: Tenant, publisher: Publisher) -> None:
    """SEC-538: neither by opening the page nor by asking for tokens."""
    begun = SigningIn(tenant, publisher.address)
    assert Client().get("/oauth/authorize", begun.params()).status_code == 302
    assert begun.exchange("trk_x").status_code == 401
    assert publisher.reads == 0
