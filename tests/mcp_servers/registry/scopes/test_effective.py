"""Which servers a conversation may use, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import pytest
from pytest_django import DjangoAssertNumQueries
from uuid_utils.compat import uuid7

from mcp_servers.client import transports
from mcp_servers.client.errors import NOTHING_ENTERED
from mcp_servers.models import AuthType, GlobalServer, McpServer, ServerScope, ServerStatus
from mcp_servers.registry.scopes.effective import EffectiveServer, effective_servers, usable_ids
from tests.factories import Tenant, TwoTenants
from workspaces.models import User

pytestmark = pytest.mark.django_db


def of_workspace(
    tenant: Tenant, name: str, state: dict[str, object] | None = None, **fields: object
) -> McpServer:
    """A server of the workspace."""
    server = McpServer.objects.create(
        workspace=tenant.workspace,
        name=name,
        transport=transports.STREAMABLE_HTTP,
        url="https://tools.example.org/mcp",
        **fields,
    )
    server.state.write(**state or {})
    return server


def personal(tenant: Tenant, name: str, owner: User, **fields: object) -> McpServer:
    """Somebody's own server."""
    return of_workspace(tenant, name, None, scope=ServerScope.PERSONAL, owner=owner, **fields)


def of_platform(tenant: Tenant, name: str, **fields: object) -> McpServer:
    """A server of the platform's file, switched on."""
    known = GlobalServer.objects.create(
        name=name, transport="streamable_http", definition_hash="0" * 64, **fields
    )
    return McpServer.objects.create(
        workspace=tenant.workspace, name=name, scope=ServerScope.GLOBAL, global_server=known
    )


def for_member(
    tenant: Tenant, bud: Iterable[McpServer | UUID] = (), added: Iterable[McpServer | UUID] = ()
) -> tuple[EffectiveServer, ...]:
    """What a conversation of the member may use."""
    return effective_servers(
        workspace_id=tenant.workspace.pk,
        user_id=tenant.member.pk,
        bud_servers=[one if isinstance(one, UUID) else one.pk for one in bud],
        added=[one if isinstance(one, UUID) else one.pk for one in added],
    )


def in_short(servers: Iterable[EffectiveServer]) -> list[tuple[str, str, str]]:
    """Name, source and code of each."""
    return [(one.label, one.source.value, one.code) for one in servers]


def test_that_precedence_is_the_platform_then_the_bud_then_the_conversation_then_ones_own(
    tenant: Tenant,
) -> None:
    """Whatever the order in which they are named."""
    tenant.allow_personal_servers()
    mine = personal(tenant, "mine", tenant.member)
    required = of_platform(tenant, "house rules", is_required=True)
    optional = of_platform(tenant, "weather")
    bud, added = of_workspace(tenant, "notes"), of_workspace(tenant, "time")

    found = for_member(tenant, bud=[bud, optional], added=[mine, added])

    assert in_short(found) == [
        ("house rules", "required", ""),
        ("notes", "bud", ""),
        ("weather", "bud", ""),
        ("time", "conversation", ""),
        ("mine", "personal", ""),
    ]
    assert usable_ids(found) == [required.pk, bud.pk, optional.pk, added.pk, mine.pk]


def test_that_a_platform_server_that_is_not_required_is_used_only_where_it_is_named(
    tenant: Tenant,
) -> None:
    """Switched on is not the same as used everywhere."""
    of_platform(tenant, "weather")
    assert for_member(tenant) == ()


def test_that_nobody_uses_or_sees_somebody_elses_server(two_workspaces: TwoTenants) -> None:
    """SEC-01: another person's, another workspace's and no server at all are one and the same."""
    a, b = two_workspaces.a, two_workspaces.b
    a.allow_personal_servers()
    foreign = of_workspace(b, "canary-of-b")
    somebodys = personal(a, "canary-of-owner", a.owner)

    found = for_member(a, bud=[somebodys], added=[foreign, uuid7()])

    assert [one.code for one in found] == ["unknown"] * 3
    assert {one.reason for one in found} == {found[0].reason}
    assert all(one.server is None and not one.is_usable for one in found)
    assert "canary" not in str([one.as_json() for one in found])


def test_that_a_personal_server_is_used_only_where_the_workspace_allows_it(tenant: Tenant) -> None:
    """And at once no longer when it stops."""
    mine = personal(tenant, "mine", tenant.member)
    (found,) = for_member(tenant, added=[mine])
    assert (found.is_usable, found.code) == (False, "not_allowed")
    tenant.allow_personal_servers()
    assert usable_ids(for_member(tenant, added=[mine])) == [mine.pk]


@pytest.mark.parametrize("name", ["Notes", "nоtes", "nótes", "n0tes"])
def test_that_ones_own_server_cannot_pass_for_one_of_the_workspace(
    tenant: Tenant, name: str
) -> None:
    """The first in precedence keeps the name; one that looks like it says that it is not used."""
    tenant.allow_personal_servers()
    shared = of_workspace(tenant, "notes")
    mine = personal(tenant, name, tenant.member)
    found = for_member(tenant, bud=[shared], added=[mine])
    assert [one.code for one in found] == ["", "collision"]
    assert "“notes”" in found[1].reason


def test_that_what_is_off_or_gone_from_the_file_is_told(tenant: Tenant) -> None:
    """A server that cannot be used does not hold its name either."""
    off = of_workspace(tenant, "old notes", is_active=False)
    gone = of_platform(tenant, "weather", is_present=False)
    twin = of_workspace(tenant, "Old Notes")
    found = for_member(tenant, bud=[off, gone, twin])
    assert [one.code for one in found] == ["off", "not_present", ""]


def test_that_a_server_in_trouble_stays_usable_and_says_so(tenant: Tenant) -> None:
    """REL-3191: its calls tell what is wrong, and may find it healed."""
    broken = of_workspace(
        tenant, "broken", {"status": ServerStatus.ERROR, "status_reason": "No answer.\nTraceback"}
    )
    wants: dict[str, object] = {"status": ServerStatus.AUTH_REQUIRED}
    locked = of_workspace(tenant, "locked", wants, auth_type=AuthType.OAUTH)
    refusing = of_workspace(tenant, "refusing", wants, auth_type=AuthType.BEARER)
    bare = of_workspace(tenant, "bare", wants | {"status_reason": f"{NOTHING_ENTERED}\nAdvice."})
    found = for_member(tenant, bud=[broken, locked, refusing, bare])
    assert [(one.is_usable, one.code) for one in found] == [
        (True, "error"),
        (True, "auth_required"),
        (True, "credentials_refused"),
        (True, "credentials_refused"),
    ]
    assert found[0].reason == "No answer."
    assert "refuses its credentials" in found[2].reason
    assert "asks for a sign-in or a key" in found[3].reason


def test_that_it_takes_one_query(
    tenant: Tenant, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """However many servers there are."""
    rows = [of_workspace(tenant, f"server {number}") for number in range(5)]
    with django_assert_num_queries(1):
        found = for_member(tenant, bud=rows)
        assert len([one.as_json() for one in found]) == 5
