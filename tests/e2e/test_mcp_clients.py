"""A member signs in with another MCP client in the browser, sees it in the list, and ends it."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from config.demo.people import PASSWORD
from tests.e2e.accessibility import expect_fits
from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import ADMIN, MEMBER, enter
from tests.e2e.screens import DESK

pytestmark = pytest.mark.screens(DESK, reason="sets its sizes and themes itself")

RETURN = "http://127.0.0.1:1/callback"
"""As the client registers it; where it waits, it knows when it begins."""
CLIENTS = "/w/demo/servers/clients/"
VERIFIER = "v" * 64
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
ALLOW = """
from workspaces.models import Workspace
Workspace.objects.filter(slug="demo").update(allows_mcp_clients={is_on})
"""


def post(url: str, body: bytes, kind: str) -> dict[str, str]:
    request = urllib.request.Request(url, body, {"Content-Type": kind})
    with urllib.request.urlopen(request) as answer:
        made: dict[str, str] = json.load(answer)
        return made


@dataclass
class Waiting:
    """A client on the person's computer that waits for the browser to come back."""

    address: str
    came: list[str] = field(default_factory=list)

    def answer(self) -> dict[str, str]:
        """What the browser brought."""
        return dict(parse_qsl(urlsplit(self.came[0]).query))


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    """A client that waits."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/callback"):
                found.came.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<link rel=icon href='data:,'><p>Back in the client.</p>")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Waiting(f"http://127.0.0.1:{server.server_port}/callback")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def address_for(trellis: RunningTrellis, client_id: str, waiting: Waiting) -> str:
    """What a client opens in the browser."""
    challenge = hashlib.sha256(VERIFIER.encode()).digest()
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": waiting.address,
        "scope": "mcp:read mcp:call",
        "state": "state-of-client",
        "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
        "code_challenge_method": "S256",
        "resource": f"{trellis.url}/w/demo/mcp/",
    }
    return f"/oauth/authorize?{urlencode(asked)}"


def test_a_member_lets_a_client_in_and_ends_it(
    trellis: RunningTrellis, new_context: NewContext, waiting: Waiting
) -> None:
    """REL-1104, REL-1100, SEC-114: they sign in first, choose, and are led back; later the client is signed out."""
    trellis.shell(ALLOW.format(is_on=True))
    values = {"client_name": "Garden editor", "redirect_uris": [RETURN]}
    made = post(f"{trellis.url}/oauth/register", json.dumps(values).encode(), "application/json")
    page = new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(address_for(trellis, made["client_id"], waiting))
    expect(page.locator("input[name=login]")).to_be_visible()
    _log_in(page)
    expect(page.get_by_role("heading", name="Garden editor")).to_be_visible()
    expect(page.get_by_label("Resources, prompts, and tools that just read")).to_be_checked()
    screenshot(page, "mcp-client-consent")
    page.get_by_label("All tools, resources and prompts that you may use here").check()
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_text("Back in the client.")).to_be_visible()
    answer = waiting.answer()
    assert (answer["state"], answer["iss"]) == ("state-of-client", trellis.url)
    asked = {
        "grant_type": "authorization_code",
        "client_id": made["client_id"],
        "code": answer["code"],
        "code_verifier": VERIFIER,
        "redirect_uri": waiting.address,
        "resource": f"{trellis.url}/w/demo/mcp/",
    }
    form = "application/x-www-form-urlencoded"
    tokens = post(f"{trellis.url}/oauth/token", urlencode(asked).encode(), form)
    assert tokens["scope"] == "mcp:call"
    page.goto(CLIENTS)
    row = page.get_by_role("listitem").filter(has_text="Garden editor")
    expect(row).to_be_visible()
    screenshot(page, "mcp-clients")
    admin = new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True).new_page()
    enter(admin, ADMIN, "/w/demo/servers/clients/members/")
    expect(admin.get_by_role("listitem").filter(has_text=MEMBER)).to_be_visible()
    look_in_both_themes(admin, "mcp-clients-members")
    admin.set_viewport_size({"width": 390, "height": 720})
    expect_fits(admin)
    row.get_by_role("button", name="End").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("“Garden editor” is signed out.")).to_be_visible()
    expect(row).to_have_count(0)


def test_the_page_is_accessible(
    trellis: RunningTrellis, new_context: NewContext, waiting: Waiting
) -> None:
    """REL-1104: in both themes, wide and narrow, where it asks and where it says why not."""
    trellis.shell(ALLOW.format(is_on=True))
    values = {"client_name": "Garden editor", "redirect_uris": [RETURN]}
    made = post(f"{trellis.url}/oauth/register", json.dumps(values).encode(), "application/json")
    page = new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True).new_page()
    enter(page, MEMBER)
    asks = address_for(trellis, made["client_id"], waiting)
    for name, address in (
        ("asks", asks),
        ("refuses", asks.replace("state-of-client", "x").replace("S256", "plain")),
        ("clients", CLIENTS),
    ):
        page.goto(address)
        look_in_both_themes(page, f"mcp-client-{name}")
        page.set_viewport_size({"width": 360, "height": 720})
        expect_fits(page, name)
        screenshot(page, f"mcp-client-{name}-phone")
        page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(asks)
    page.get_by_role("button", name="Refuse").click()
    expect(page.get_by_text("Back in the client.")).to_be_visible()
    assert waiting.answer()["error"] == "access_denied"


def _log_in(page: Page) -> None:
    page.locator("input[name=login]").fill(MEMBER)
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("form button[type=submit]").first.click()
