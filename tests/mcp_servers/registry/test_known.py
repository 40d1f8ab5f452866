"""The catalogue of well-known servers: its file, who may install what, and what comes of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEntry
from mcp_servers.models import (
    AuthType,
    CatalogueChoice,
    McpServer,
    OAuthGrant,
    ServerScope,
    ServerStatus,
)
from mcp_servers.pages.views.catalogue import ENTRIES_ON_A_PAGE
from mcp_servers.registry import tasks
from mcp_servers.registry.catalogue import platform_source, services
from mcp_servers.registry.catalogue.file_format import read_known_servers
from mcp_servers.registry.catalogue.listing import list_entries
from tests.factories import Tenant, signed_in
from tests.fakes.mcp_server import CountingServer
from tests.fakes.protected_server import ProtectedServer
from tests.mcp_servers.factories import zoo_program
from workspaces.errors import InvalidInput
from workspaces.models import User

HOME = "/w/acme/catalogue/"


@pytest.fixture
def shelf(
    tmp_path: Path, settings: Any, counting: CountingServer, protected: ProtectedServer
) -> Path:
    """The owner's file: a server without and one with sign-in, one with a key, and a program; one shipped entry hidden."""
    path = tmp_path / "catalogue.json"
    common = {"description": "For tests.", "categories": ["Tests"]}
    path.write_text(
        json.dumps(
            {
                "servers": [
                    {"slug": "open", "title": "Open", "url": counting.url, **common},
                    {
                        "slug": "mail",
                        "title": "Mail",
                        "url": protected.url,
                        "auth": "oauth",
                        **common,
                    },
                    {
                        "slug": "keyed",
                        "title": "Keyed",
                        "url": counting.url + "?keyed",
                        "auth": "api_key",
                        "header": "X-Key",
                        **common,
                    },
                    {
                        "slug": "zoo",
                        "title": "Zoo",
                        "program": {
                            "command": "python",
                            "args": ["-m", "zoo"],
                            "package": "pip install zoo",
                        },
                        **common,
                    },
                ],
                "hidden": ["stripe"],
            }
        )
    )
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"catalogue_file": path})
    return path


@pytest.fixture
def personal(tenant: Tenant) -> Tenant:
    """The workspace, whose members may have servers of their own."""
    tenant.allow_personal_servers()
    return tenant


def install(client: Client, slug: str, whose: str = "workspace", **fields: str) -> Any:
    return client.post(f"{HOME}known/{slug}/install/", {"for": whose, **fields})


def rows() -> list[McpServer]:
    return list(McpServer.objects.across_workspaces())


def open_to_members(tenant: Tenant, slug: str) -> None:
    answer = tenant.client("admin").post(
        f"{HOME}known/{slug}/audience/", {"is_for_everybody": "on"}
    )
    assert answer.status_code == 302


def test_the_shipped_file_is_whole() -> None:
    """Each entry is read strictly; remote ones are reached by https, and say what they need."""
    servers = platform_source.shipped_servers().servers
    slugs = {server.slug for server in servers}
    for slug in ("github", "notion", "linear", "sentry", "atlassian", "stripe", "context7", "time"):
        assert slug in slugs
    for server in servers:
        assert server.url.startswith("https://") or server.program is not None, server.slug
        assert server.docs_url, server.slug
        if server.program is not None:
            # This one comes with Trellis.
            assert server.program.package or server.slug == "time", server.slug


@pytest.mark.parametrize(
    "change",
    [
        {"url": ""},
        {"url": "ftp://example.org"},
        {"auth": "password"},
        {"auth": "api_key"},
        {"surprise": 1},
        {"slug": "Not A Slug"},
        {"categories": []},
        {"docs_url": "javascript:alert(1)"},
        {"program": {"command": "python", "args": []}},
    ],
)
def test_a_wrong_entry_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    """The file is read strictly: what is wrong or unknown stops it, and says where."""
    entry = {
        "slug": "one",
        "title": "One",
        "description": "One.",
        "categories": ["Tests"],
        "url": "https://one.example.org/mcp",
    }
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps({"servers": [entry]}))
    assert read_known_servers(path).servers[0].slug == "one"
    path.write_text(json.dumps({"servers": [entry | change]}))
    with pytest.raises(InvalidInput):
        read_known_servers(path)
    path.write_text(json.dumps({"servers": [entry, entry]}))
    with pytest.raises(InvalidInput):
        read_known_servers(path)


def test_the_owners_file_adds_and_hides(tenant: Tenant, shelf: Path) -> None:
    """It is read anew when it changes; one that cannot be read adds nothing and breaks nothing."""

    def slugs() -> set[str]:
        listing = list_entries(workspace=tenant.workspace, actor=tenant.actor("admin"))
        return {entry.slug for entry in listing.entries}

    assert {"open", "github"} <= slugs()
    assert "stripe" not in slugs()
    shelf.write_text("{")
    assert "open" not in slugs()
    assert "stripe" in slugs()


def test_search_and_categories(tenant: Tenant, shelf: Path) -> None:
    """Every word has to be in the entry, in any case; a category narrows further."""
    client = tenant.client("admin")
    text = client.get(HOME, {"q": "issues CODE"}).content.decode()
    assert 'id="known-github"' in text
    assert 'id="known-notion"' not in text
    text = client.get(HOME, {"category": "Tests"}).content.decode()
    assert 'id="known-open"' in text
    assert 'id="known-github"' not in text
    assert "Nothing found" in client.get(HOME, {"q": "no such thing"}).content.decode()


def test_an_administrator_installs_for_the_workspace(tenant: Tenant, shelf: Path) -> None:
    """The server is there with its tools, the entry says so, and it can be taken away again."""
    client = tenant.client("admin")
    answer = install(client, "open")
    (server,) = rows()
    assert answer["Location"] == f"/w/acme/servers/#server-{server.pk}"
    assert (server.name, server.scope) == ("Open", ServerScope.WORKSPACE)
    assert server.state.status == ServerStatus.CONNECTING
    tasks.look_first(str(tenant.workspace.pk), str(server.pk), str(tenant.admin.pk))
    server.state.refresh_from_db()
    assert server.state.tools_listed_at is not None
    text = client.get(HOME, {"q": "open for tests"}).content.decode()
    assert "Installed" in text
    again = install(client, "open")
    assert again.status_code == 409
    assert "installed already" in again.content.decode()
    uninstall = f"{HOME}known/open/{server.pk}/uninstall/"
    assert tenant.client("member").post(uninstall).status_code == 404
    assert client.post(f"{HOME}known/mail/{server.pk}/uninstall/").status_code == 404
    assert client.post(uninstall).status_code == 302
    assert rows() == []


def test_one_with_sign_in_leads_straight_there(
    tenant: Tenant, shelf: Path, protected: ProtectedServer
) -> None:
    """From Install to a connected account, as the browser goes."""
    client = tenant.client("admin")
    answer = install(client, "mail")
    (server,) = rows()
    assert server.auth_type == AuthType.OAUTH
    assert answer["Location"] == f"/w/acme/servers/{server.pk}/sign-in/"
    assert client.get(answer["Location"]).status_code == 200
    assert not OAuthGrant.objects.across_workspaces().exists()
    assert protected.listed == []


def test_one_with_a_key_asks_for_it(tenant: Tenant, shelf: Path, counting: CountingServer) -> None:
    """Without the key nothing is installed; with it, it is stored encrypted."""
    client = tenant.client("admin")
    assert install(client, "keyed").status_code == 422
    assert rows() == []
    assert install(client, "keyed", secret="the-key-itself").status_code == 302
    (server,) = rows()
    assert server.auth_config is not None
    assert server.auth_config.reveal_json("test") == {"header": "X-Key", "value": "the-key-itself"}
    assert "the-key-itself" not in client.get(HOME).content.decode()


def test_members_install_what_was_opened_to_them(
    tenant: Tenant, personal: Tenant, shelf: Path
) -> None:
    """Ours: nothing until an administrator opens it, then for themselves alone; and each choice is an entry of the log."""
    member = tenant.client("member")
    assert "Nothing to install" in member.get(HOME).content.decode()
    assert install(member, "open", "me").status_code == 404
    assert member.post(f"{HOME}known/open/audience/", {"is_for_everybody": "on"}).status_code == 403
    open_to_members(tenant, "open")
    assert install(member, "open", "workspace").status_code == 403
    assert install(member, "open", "me").status_code == 302
    (server,) = rows()
    assert (server.owner, server.scope) == (tenant.member, ServerScope.PERSONAL)
    # Somebody else's is not shown as installed, and not theirs to take away.
    other = tenant.client("auditor")
    assert "Installed" not in other.get(HOME).content.decode()
    assert other.post(f"{HOME}known/open/{server.pk}/uninstall/").status_code == 404
    assert member.post(f"{HOME}known/open/{server.pk}/uninstall/").status_code == 302
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    assert any("catalogue choice" in str(entry.details) for entry in entries)


def test_a_workspace_without_own_servers_opens_nothing(
    tenant: Tenant, personal: Tenant, shelf: Path
) -> None:
    """Ours: what was opened earlier is closed as long as members may have no servers of their own."""
    open_to_members(tenant, "open")
    tenant.workspace.allows_personal_servers = False
    tenant.workspace.save()
    member = tenant.client("member")
    assert "does not allow personal servers" in member.get(HOME).content.decode()
    assert install(member, "open", "me").status_code == 403
    assert rows() == []


def test_what_is_done_to_an_entry_keeps_the_list_as_it_is_filtered(
    tenant: Tenant, shelf: Path
) -> None:
    """REL-1273: choosing who may install it, a refused installation, and taking it away again."""
    client = tenant.client("admin")
    page = client.get(f"{HOME}?q=o&category=").content.decode()
    actions = re.findall(r'action="([^"]+/(?:audience|install)/[^"]*)"', page)
    assert actions
    assert all(one.endswith("/?q=o&amp;category=") for one in actions)
    answer = client.post(f"{HOME}known/open/audience/?q=o", {"is_for_everybody": "on"})
    assert answer["Location"] == f"{HOME}?q=o#known-open"
    refused = client.post(f"{HOME}known/zoo/install/?q=o", {"for": "workspace"})
    assert (refused.status_code, refused.context["query"]) == (409, "o")
    assert install(client, "open").status_code == 302
    (row,) = rows()
    answer = client.post(f"{HOME}known/open/{row.pk}/uninstall/?q=o")
    assert answer["Location"] == f"{HOME}?q=o"
    assert rows() == []


def test_a_program_is_the_owners_word(tenant: Tenant, shelf: Path, superuser: User) -> None:
    """SEC-37, REL-2544: without an entry of the program catalogue there is nothing to install; the owner gets a form."""
    client = tenant.client("admin")
    text = "has not put this program into the program catalogue"
    assert text in client.get(HOME).content.decode()
    assert install(client, "zoo").status_code == 409
    assert CatalogueChoice.objects.across_workspaces().count() == 0
    answer = client.post(f"{HOME}known/zoo/audience/", {"is_for_everybody": "on"})
    assert answer.status_code == 409
    owner = signed_in(superuser)
    add = "/admin/mcp_servers/stdioprogram/add/?known=zoo"
    shown = owner.get(HOME).content.decode()
    assert add in shown
    # The form would take it without, and the program would not start.
    assert (
        "Install it on this machine first (in a container: in its image): pip install zoo" in shown
    )
    assert "pip install zoo" not in client.get(HOME).content.decode()
    form = owner.get(add).content.decode()
    assert 'value="zoo"' in form
    assert "-m\nzoo</textarea>" in form
    zoo_program()
    # It has a parameter that somebody has to fill in.
    assert install(client, "zoo").status_code == 409
    assert "Fill in and add" in client.get(HOME).content.decode()
    assert rows() == []


def test_a_name_that_is_taken_gets_a_number(tenant: Tenant, shelf: Path) -> None:
    """A server of that name is left alone."""
    from tests.mcp_servers.factories import http_server

    http_server(tenant, "https://elsewhere.example.org/mcp", name="Open")
    assert install(tenant.client("admin"), "open").status_code == 302
    assert {row.name for row in rows()} == {"Open", "Open 2"}


def test_installing_needs_a_known_source(tenant: Tenant, shelf: Path) -> None:
    """What is not there is not found."""
    client = tenant.client("admin")
    assert client.post(f"{HOME}elsewhere/open/install/", {"for": "workspace"}).status_code == 404
    assert install(client, "nothing").status_code == 404
    with pytest.raises(InvalidInput):
        services.install_entry(
            workspace=tenant.workspace,
            source="known",
            slug="keyed",
            actor=tenant.actor("admin"),
            for_workspace=True,
        )


def test_the_catalogue_over_rest(tenant: Tenant, shelf: Path) -> None:
    """Seen, installed and uninstalled by programs, with the same rules as on the page."""
    headers = {"x-workspace": "acme"}
    admin, member = (
        tenant.client("admin", headers=headers),
        tenant.client("member", headers=headers),
    )

    def post(client: Client, what: str, **body: Any) -> Any:
        whole = {"source": "known", "slug": "open", **body}
        return client.post(f"/api/catalogue/{what}/", whole, content_type="application/json")

    assert member.get("/api/catalogue/").json() == []
    (entry,) = admin.get("/api/catalogue/", {"search": "open", "category": "Tests"}).json()
    assert (entry["slug"], entry["auth"], entry["installed"]) == ("open", "none", [])
    assert post(member, "install", for_workspace=True).status_code == 403
    answer = post(admin, "install", for_workspace=True)
    assert answer.status_code == 201
    (server,) = rows()
    assert answer.json()["server_id"] == str(server.pk)
    assert post(admin, "install", for_workspace=True).status_code == 409
    assert post(admin, "audience", is_for_everybody=True).json()["slug"] == "open"
    assert post(admin, "uninstall", server_id=str(server.pk)).status_code == 204
    assert rows() == []


def test_a_long_catalogue_comes_in_pages(tenant: Tenant, shelf: Path) -> None:
    """No page grows with what a provider offers; a page that is none is the nearest."""
    common = {"description": "For tests.", "categories": ["Tests"]}
    many = [
        {"slug": f"s{n}", "title": f"S {n}", "url": f"https://s{n}.example.org/mcp", **common}
        for n in range(ENTRIES_ON_A_PAGE + 1)
    ]
    shelf.write_text(json.dumps({"servers": many}))
    client = tenant.client("admin")
    first = client.get(HOME, {"category": "Tests"}).content.decode()
    last = client.get(HOME, {"category": "Tests", "page": "99"}).content.decode()
    assert "Page 1 of 2" in first
    assert 'id="known-s0"' in first
    assert f'id="known-s{ENTRIES_ON_A_PAGE}"' not in first
    assert f'id="known-s{ENTRIES_ON_A_PAGE}"' in last
    assert 'id="known-s0"' not in last
