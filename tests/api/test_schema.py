"""Every operation that the schema describes, called with generated input: no crash, and only described answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.factories import CANARY
from tests.isolation.world import make_world
from workspaces.tokens import SCOPES, issue_token

schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())

# These talk with an MCP server, a model or the network when they are let through; they have tests of their own.
TALKING = ("/test/", "/refresh/", "/connect/", "/read_content/", "/fill/")


@pytest.fixture
def token(transactional_db: None) -> str:
    """A token of an owner with every scope, in a workspace with a row of every kind."""
    side = make_world().a
    _, plain = issue_token(
        workspace=side.tenant.workspace,
        user=side.tenant.owner,
        name="schemathesis",
        scopes=list(SCOPES),
        expires_at=timezone.now() + timedelta(days=1),
        actor=side.tenant.actor("owner"),
    )
    return plain


@schema.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_keeps_to_the_schema(case: Any, token: str) -> None:
    """SEC-05, SEC-76: never 500, never an answer that the schema does not describe, no canary of another tenant."""
    if case.path.endswith(TALKING) and case.method == "POST":
        case.path_parameters = {"id": "00000000-0000-7000-8000-000000000000"}
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {token}"}
    answer = case.call()
    assert answer.status_code < 500, answer.text
    assert CANARY not in answer.text
    case.validate_response(
        answer,
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ],
    )


@pytest.mark.django_db
def test_the_schema_is_whole() -> None:
    """Ours: OpenAPI 3.1, and the Swagger page loads nothing from elsewhere."""
    client = Client()
    document = client.get("/api/schema/", headers={"Accept": "application/json"}).json()
    assert document["openapi"].startswith("3.1")
    assert {"/api/servers/", "/api/buds/", "/api/conversations/", "/api/audit-entries/"} <= set(
        document["paths"]
    )
    page = client.get("/api/docs/").content.decode()
    assert "http://" not in page
    assert "https://" not in page
    assert "<script>" not in page
    assert client.get("/api/docs/?script=").status_code == 200
