"""Every operation that the schema describes, called with generated input: no crash, and only described answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from django.test import Client
from django.utils import timezone
from drf_spectacular.drainage import GENERATOR_STATS
from jsonschema_rs import Draft202012Validator
from rest_framework.serializers import BaseSerializer

from config.rest.api import _router
from tests.extent import IS_FULL
from tests.factories import CANARY, MembershipFactory
from tests.isolation.world import World
from tests.platform_api import issue
from workspaces.api.filtering import LIST_PARAMETERS, RowFilterSet
from workspaces.models import User
from workspaces.people.tokens import PLATFORM_READ, PLATFORM_WRITE, SCOPES, issue_token

PACKAGES = ("config", "chat", "mcp_servers", "audit", "workspaces")
# These talk with an MCP server, a model or the network when they are let through; they have tests of their own.
TALKING = ("/test/", "/refresh/", "/connect/", "/read_content/", "/fill/")
TRYING = "/api/servers/try/"
"""Talks with the server that its body names."""
PLATFORM = "/api/platform/"
PARTS = 2
"""How many tests the operations are dealt out to, so that processes can share them. Each makes the schema first."""
EXAMPLES = 15 if IS_FULL else 2
"""Of each operation."""


@pytest.fixture
def token(world: World, db: None) -> str:
    """A token of an owner with every scope, in a workspace with a row of every kind."""
    side = world.a
    _, plain = issue_token(
        workspace=side.tenant.workspace,
        user=side.tenant.owner,
        name="schemathesis",
        scopes=list(SCOPES),
        expires_at=timezone.now() + timedelta(days=1),
        actor=side.tenant.actor("owner"),
    )
    return plain


@pytest.fixture
def platform_token(world: World, superuser: User) -> str:
    """A token of the platform's owner for the whole installation."""
    workspace = world.a.tenant.workspace
    MembershipFactory.create(user=superuser, workspace=workspace)
    return issue(superuser, workspace, PLATFORM_READ, PLATFORM_WRITE)


@pytest.fixture
def document(db: None) -> dict[str, Any]:
    """The schema, as clients read it."""
    answer = Client().get("/api/schema/", headers={"Accept": "application/json"})
    found: dict[str, Any] = answer.json()
    return found


def test_each_shape_has_a_name_of_its_own(document: dict[str, Any]) -> None:
    """SEC-76: of two shapes with one name, the description has only the first."""
    warnings = list(GENERATOR_STATS._warn_cache)
    assert not [one for one in warnings if "identical names" in one]
    # The generator does not warn of a shape that a view marks as answered alone.
    twice = {name: homes for name, homes in _homes_of_shapes().items() if len(homes) > 1}
    assert not twice


def _homes_of_shapes() -> dict[str, set[str]]:
    """Names of our serializers, and the modules that define them."""
    homes: dict[str, set[str]] = {}
    waiting: list[type[BaseSerializer[Any]]] = [BaseSerializer]
    while waiting:
        kinds = waiting.pop().__subclasses__()
        waiting += kinds
        for kind in kinds:
            if kind.__module__.partition(".")[0] in PACKAGES and not kind.__name__.startswith("_"):
                homes.setdefault(kind.__name__, set()).add(kind.__module__)
    return homes


def _operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_description_says_who_may_call(document: dict[str, Any]) -> None:
    """REL-1568: the scope of a token for each operation, in words and for programs; none where none is taken."""
    paths = document["paths"]
    assert {"token": ["servers:write"]} in paths["/api/servers/"]["post"]["security"]
    assert "`servers:write`" in paths["/api/servers/"]["post"]["description"]
    assert paths["/api/tokens/"]["post"]["security"] == [{"session": []}]
    assert "no token" in paths["/api/tokens/"]["post"]["description"]
    assert paths["/api/platform/programs/"]["post"]["security"] == [{"session": []}]
    assert {"token": []} in paths["/api/me/"]["get"]["security"]


def test_the_description_reads_well(document: dict[str, Any]) -> None:
    """REL-1569: lists and rows say of what, one function for two methods says what each does, and statuses are said once."""
    paths = document["paths"]
    summaries = {(path, method): one.get("summary") for path, method, one in _operations(document)}
    assert summaries["/api/servers/", "get"] == "List MCP servers"
    assert summaries["/api/servers/{id}/", "get"] == "Read one MCP server"
    assert (
        summaries["/api/conversations/{id}/messages/", "get"] == "Read the messages, oldest first"
    )
    assert summaries["/api/conversations/{id}/messages/", "post"] == "Send one, which starts a turn"
    faults = {
        status: answer
        for _, _, one in _operations(document)
        for status, answer in one["responses"].items()
        if status >= "400" and "$ref" not in answer
    }
    assert set(faults) <= {"404", "409", "416", "502", "503", "507"}, sorted(faults)
    assert all(one["description"] for one in document["components"]["responses"].values())
    assert paths["/api/servers/"]["get"]["responses"]["401"] == {
        "$ref": "#/components/responses/Error401"
    }


def test_the_description_says_what_may_be_out_of_reach(document: dict[str, Any]) -> None:
    """REL-3213: 503 of each operation, and 507 of those that take a file, and of no reading one."""
    without = [
        (path, method)
        for path, method, one in _operations(document)
        if "503" not in one["responses"]
    ]
    assert not without
    for path, method, one in _operations(document):
        takes_file = "multipart/form-data" in one.get("requestBody", {}).get("content", {})
        if takes_file:
            assert "507" in one["responses"], path
        elif method == "get":
            assert one["responses"].get("507") != {"$ref": "#/components/responses/Error507"}
    shared = document["components"]["responses"]
    assert "Retry-After" in shared["Error503"]["description"]
    assert "Error507" in shared


def test_files_have_the_type_of_what_they_hold(document: dict[str, Any]) -> None:
    """REL-2308: the description promised bytes of no kind, and no refusal of a file that has no text."""
    version = "/api/artifacts/{id}/versions/{number}"
    for path in (f"{version}/content/", "/api/knowledge/{id}/content/"):
        answers = document["paths"][path]["get"]["responses"]
        assert [list(answers[status]["content"]) for status in ("200", "206")] == [["*/*"]] * 2
        assert {"304", "416"} <= set(answers)
    assert "422" in document["paths"][f"{version}/text/"]["get"]["responses"]


def test_lists_name_all_that_they_take(document: dict[str, Any]) -> None:
    """REL-1574: every filter, every ordering and every other parameter that the list knows."""
    missing = {}
    routes: list[tuple[str, Any, str]] = list(_router().registry)
    for prefix, view, _ in routes:
        operation = document["paths"].get(f"/api/{prefix}/", {}).get("get")
        if operation is None:
            continue
        named = {one["name"] for one in operation.get("parameters", ())}
        known = set(view.parameters.get("list", ()))
        if view.pagination_class is not None:
            known |= LIST_PARAMETERS
            filters = getattr(view, "filterset_class", None) or RowFilterSet
            known |= set(filters.base_filters)
        if known - named:
            missing[prefix] = known - named
    assert not missing
    (ordering,) = (
        one
        for one in document["paths"]["/api/servers/"]["get"]["parameters"]
        if one["name"] == "ordering"
    )
    for name in ("name", "-name", "-id"):
        assert re.search(ordering["schema"]["pattern"], name)
    assert not re.search(ordering["schema"]["pattern"], "--id")


def test_each_default_fits_its_own_field(document: dict[str, Any]) -> None:
    """Ours: validators of OpenAPI refuse the whole description otherwise."""
    shapes = document["components"]["schemas"].values()
    fields = [
        (name, field)
        for shape in shapes
        for name, field in shape.get("properties", {}).items()
        if "default" in field and "type" in field
    ]
    assert fields
    unfit = [
        name for name, field in fields if not Draft202012Validator(field).is_valid(field["default"])
    ]
    assert not unfit


def test_generated_clients_understand_the_description(document: dict[str, Any]) -> None:
    """REL-1569: null is written as OpenAPI 3.1 does, and a value that may be anything may be null."""

    def all_of(part: Any) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict):
            yield part
        for inner in part.values() if isinstance(part, dict) else part:
            if isinstance(inner, dict | list):
                yield from all_of(inner)

    parts = list(all_of(document))
    assert not [part for part in parts if part.get("nullable") is True]
    assert not [part for part in parts if {} in part.get("oneOf", ())]
    page = document["components"]["schemas"]["PaginatedServerOutputList"]["properties"]
    assert page["next"]["type"] == ["string", "null"]


@pytest.fixture
def one_connection(document: dict[str, Any]) -> Iterator[None]:
    """Leave the connection open between requests, as Django's own test client does: the rows are in its transaction.

    It comes after that client's last request, which connects the signals anew.
    """
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.usefixtures("one_connection")
def test_every_operation_keeps_to_the_schema(
    part: int, token: str, platform_token: str, document: dict[str, Any]
) -> None:
    """SEC-05, SEC-76: never 500, never an answer that the schema does not describe, no canary of another tenant."""
    # Imported here: every process collects this file, one or two run it.
    import schemathesis
    from schemathesis.core.result import Ok

    schema = schemathesis.openapi.from_dict(document)
    schema.app = get_wsgi_application()
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) > 90
    for operation in operations[part::PARTS]:
        # Each operation finds the world as it was.
        around = transaction.atomic()
        around._from_testcase = True  # type: ignore[attr-defined]  # no code under test opened it
        with around:
            is_owners = operation.path.startswith(PLATFORM) and not _talks(operation)
            _call_with_generated_input(operation, platform_token if is_owners else token)
            transaction.set_rollback(True)


def _talks(operation: Any) -> bool:
    """Whether a provider would be asked, which takes no transaction around it."""
    is_key = operation.path.startswith(f"{PLATFORM}providers/") and operation.method != "get"
    return is_key or operation.path.endswith(TALKING)


def _call_with_generated_input(operation: Any, token: str) -> None:
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def call(case: Any) -> None:
        if case.path.endswith(TALKING) and case.method == "POST":
            case.path_parameters = {"id": "00000000-0000-7000-8000-000000000000"}
        if case.path == TRYING and isinstance(case.body, dict):
            case.body = {**case.body, "url": "nowhere"}
        case.headers = {
            **(case.headers or {}),
            "Authorization": f"Bearer {token}",
            "Accept-Encoding": "identity",
        }
        answer = case.call()
        assert answer.status_code < 500, (operation.label, answer.text)
        # The platform's owner sees every workspace.
        assert CANARY not in answer.text or operation.path.startswith(PLATFORM), operation.label
        case.validate_response(
            answer,
            checks=[
                not_a_server_error,
                status_code_conformance,
                content_type_conformance,
                response_schema_conformance,
            ],
        )

    call()


@pytest.mark.django_db
def test_the_schema_is_whole(document: dict[str, Any]) -> None:
    """Ours: OpenAPI 3.1, and the Swagger page loads nothing from elsewhere."""
    client = Client()
    assert document["openapi"].startswith("3.1")
    assert {"/api/servers/", "/api/buds/", "/api/conversations/", "/api/audit-entries/"} <= set(
        document["paths"]
    )
    page = client.get("/api/docs/").content.decode()
    assert "http://" not in page
    assert "https://" not in page
    assert "<script>" not in page
    assert client.get("/api/docs/?script=").status_code == 200


@pytest.mark.django_db
def test_the_page_of_the_api_belongs_to_the_product() -> None:
    """REL-496: its head, its icon and its theme, from our own files."""
    page = Client().get("/api/docs/").content.decode()
    for name in ("api-docs.css", "api-docs.js", "favicon.svg"):
        assert f"/static/web/{name.partition('.')[0]}" in page
    assert 'href="/"' in page
