"""What pages cost that people wait for most: none of it may creep back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from gettext import GNUTranslations
from typing import Any

import pytest
from django.contrib.admin.views.main import ChangeList
from django.db import connection
from django.db.models.sql.compiler import SQLCompiler
from django.test.utils import CaptureQueriesContext

from chat.models import Bud, Conversation
from tests.factories import MembershipFactory, Tenant
from tests.mcp_servers.factories import http_server

pytestmark = pytest.mark.django_db


@contextmanager
def counting(owner: Any, name: str) -> Iterator[list[Any]]:
    """What a function of Django's is called with."""
    found: list[Any] = []
    function = getattr(owner, name)

    def noted(*args: Any, **kwargs: Any) -> Any:
        found.append(args)
        return function(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, noted)
        yield found


@pytest.mark.both_engines
def test_the_frame_of_pages_is_asked_for_as_it_was_compiled(tenant: Tenant) -> None:
    """REL-2801: the person, their workspaces and bell, what waits for them, and what the chat begins with."""
    workspace = tenant.workspace
    bud = Bud.objects.create(workspace=workspace, slug="notes", name="Notes")
    chat = Conversation.objects.create(workspace=workspace, owner=tenant.admin, bud=bud)
    here = f"/w/{workspace.slug}"
    client = tenant.client("admin")
    for page in (
        f"{here}/",
        f"{here}/c/{chat.pk}/",
        f"{here}/waiting/",
        "/api/waiting/",
        "/account/appearance/",
        "/admin/workspaces/invitation/add/",
    ):
        assert client.get(page).status_code == 200, page
        with (
            counting(SQLCompiler, "as_sql") as compiled,
            counting(GNUTranslations, "gettext") as looked,
        ):
            client.get(page)
        assert not compiled, [str(one[0].query)[:200] for one in compiled]
        assert not looked, page


def test_rows_of_a_list_do_not_ask_how_it_is_sorted(tenant: Tenant) -> None:
    """REL-2802: the heads of columns are the same beside each row."""
    client = tenant.client("admin")
    asked = []
    for _ in range(2):
        with counting(ChangeList, "get_query_string") as found:
            assert client.get("/admin/workspaces/membership/").status_code == 200
        asked.append(len(found))
        MembershipFactory.create_batch(3, workspace=tenant.workspace)
    assert asked[0] == asked[1]


def test_what_is_only_read_is_worked_out_once(tenant: Tenant) -> None:
    """REL-2803: the tools of a server, for the form and for its page."""
    server = http_server(tenant, "https://one.example.org/mcp")
    with CaptureQueriesContext(connection) as captured:
        page = tenant.client("admin").get(f"/admin/mcp_servers/mcpserver/{server.pk}/change/")
    assert page.status_code == 200
    of_tools = [
        one["sql"] for one in captured if one["sql"].startswith('SELECT "mcp_servers_mcptool"')
    ]
    assert len(of_tools) <= 3


def test_a_server_is_read_once_for_its_card(tenant: Tenant) -> None:
    """REL-2804: an open page of servers asks for one after each change."""
    server = http_server(tenant, "https://one.example.org/mcp")
    with CaptureQueriesContext(connection) as captured:
        answer = tenant.client("admin").get(f"/w/{tenant.workspace.slug}/servers/{server.pk}/")
    assert answer.status_code == 200
    begin = 'SELECT "mcp_servers_mcpserver"."id", "mcp_servers_mcpserver"."workspace_id"'
    assert sum(one["sql"].startswith(begin) for one in captured) == 1
