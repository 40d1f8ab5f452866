"""A server that people sign in to, and a person who does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import settings

from mcp_servers.models import McpServer
from mcp_servers.oauth.services import start_sign_in
from mcp_servers.registry.services.sign_ins import FinishedSignIn, finish_sign_in
from tests.factories import Tenant
from tests.fakes.protected_server import ProtectedServer
from tests.mcp_servers.factories import actor_of, http_server

SESSION = "a-browser-session"

SignIn = Callable[..., FinishedSignIn]


def origin() -> str:
    """The address under which the test's browser reaches us."""
    return str(settings.TRELLIS.public_origins[0])


@pytest.fixture
def server(tenant: Tenant, protected: ProtectedServer) -> McpServer:
    """A server of the workspace to which each person signs in."""
    return http_server(tenant, protected.url, name="mail", auth_type="oauth", allows_new_tools=True)


@pytest.fixture
def sign_in(tenant: Tenant, protected: ProtectedServer) -> SignIn:
    """Sign a person in, as two requests of one browser do."""

    def run(server: McpServer, role: str = "member", account: str = "") -> FinishedSignIn:
        actor = actor_of(tenant, role)
        started = start_sign_in(server=server, actor=actor, session_key=SESSION, origin=origin())
        params = protected.issuer.consent(started.url, account)
        return finish_sign_in(server=server, params=params, actor=actor, session_key=SESSION)

    return run
