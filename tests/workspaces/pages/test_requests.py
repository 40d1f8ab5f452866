"""What each request knows before its view begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver

from tests.factories import Tenant, TwoTenants


def patterns(resolver: Any, prefix: str = "") -> Iterator[str]:
    """Every address, as it is written."""
    for one in resolver.url_patterns:
        here = prefix + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from patterns(one, here)
        elif isinstance(one, URLPattern):
            yield here


def test_every_address_of_a_workspace_begins_with_it() -> None:
    """Ours: so the middleware reads the workspace in the address before anything else is asked."""
    named = [one for one in patterns(get_resolver()) if "workspace_slug" in one]
    assert len(named) > 50
    assert all(one.startswith("w/<slug:workspace_slug>/") for one in named)


@pytest.mark.django_db
def test_a_page_asks_for_its_workspace_and_membership_once(tenant: Tenant) -> None:
    """REL-411: both in one statement, and never twice."""
    client = tenant.client("auditor")
    url = f"/w/{tenant.workspace.slug}/activity/"
    client.get(url)
    with CaptureQueriesContext(connection) as asked:
        assert client.get(url).status_code == 200
    # With row-level security, how far the page reaches goes ahead of each in the same message.
    statements = [query["sql"].rpartition("; ")[2] for query in asked.captured_queries]
    by_slug = [one for one in statements if '"workspaces_workspace"."slug" = ' in one]
    whole = [one for one in statements if one.startswith('SELECT "workspaces_membership"."id"')]
    assert len(by_slug) == 1, statements
    assert whole == by_slug, statements


@pytest.mark.django_db
def test_a_page_of_another_workspace_is_not_found_in_ones_own(two_workspaces: TwoTenants) -> None:
    """SEC-01."""
    client = two_workspaces.a.client("owner")
    assert client.get(f"/w/{two_workspaces.b.workspace.slug}/audit/").status_code == 404
    assert client.get(f"/w/{two_workspaces.a.workspace.slug}/audit/").status_code == 200
