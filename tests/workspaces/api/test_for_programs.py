"""What somebody meets who writes a program with nothing but the docs."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chat.api.models import ModelOutput
from tests.factories import MembershipFactory, Tenant, TwoTenants, signed_in
from workspaces.people.tokens import issue_token

pytestmark = pytest.mark.django_db


def token_of(tenant: Tenant, *scopes: str) -> str:
    _, plain = issue_token(
        workspace=tenant.workspace,
        user=tenant.member,
        name="script",
        scopes=scopes,
        expires_at=timezone.now() + timedelta(days=1),
        actor=tenant.actor("member"),
    )
    return plain


def call(plain: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
    sent = {"Authorization": f"Bearer {plain}", **headers}
    return Client().generic(
        method, path, b"" if body is None else body, "application/json", headers=sent
    )


def fault(answer: Any) -> tuple[int, str, str | None]:
    (one,) = answer.json()["errors"]
    return answer.status_code, one["code"], one["attr"]


def test_a_field_that_is_not_known_is_told(tenant: Tenant) -> None:
    """REL-1561: by name, with those that there are, and nothing is done; what a row shows may come back with it."""
    plain = token_of(tenant, "chat")
    answer = call(plain, "POST", "/api/folders/", b'{"name": "a", "color": "red"}')
    assert fault(answer) == (400, "unknown_field", "color")
    assert "colour" in answer.json()["errors"][0]["detail"]
    assert call(plain, "GET", "/api/folders/").json()["results"] == []
    row = call(plain, "POST", "/api/folders/", b'{"name": "a"}').json()
    same = b'{"id": "%s", "name": "b", "colour": "red"}' % row["id"].encode()
    changed = call(plain, "PATCH", f"/api/folders/{row['id']}/", same)
    assert changed.json() == {"id": row["id"], "name": "b", "colour": "red"}


def test_a_field_that_is_not_known_is_told_within_inner_objects(tenant: Tenant) -> None:
    """REL-1648: with its place, and nothing is done; what a row shows within may come back with it."""
    owner = tenant.client("owner")

    def send(method: str, path: str, body: dict[str, Any]) -> Any:
        return owner.generic(method, path, json.dumps(body), "application/json")

    people = [{"email": "a@example.org"}, {"email": "b@example.org", "rolle": "admin"}]
    refused = send("POST", "/api/invitations/", {"people": people})
    assert fault(refused) == (400, "unknown_field", "people.1.rolle")
    assert "email, role, is_auditor" in refused.json()["errors"][0]["detail"]
    bud = send("POST", "/api/buds/", {"name": "A", "slug": "a"}).json()
    checks = f"/api/buds/{bud['id']}/checks/"
    call_of_it = {"tool": "orders.find", "argumnts": {"id": 1}}
    refused = send("POST", checks, {"question": "?", "calls": [call_of_it]})
    assert fault(refused) == (400, "unknown_field", "calls.0.argumnts")
    made = send("POST", checks, {"question": "?", "calls": [{"tool": "orders.find"}]}).json()
    assert [one["calls"] for one in send("GET", checks, {}).json()] == [made["calls"]]
    again = send("PATCH", f"/api/checks/{made['id']}/", {"calls": made["calls"]})
    assert again.status_code == 200
    model = dict.fromkeys(ModelOutput().fields)  # as the list of models shows one
    chat: dict[str, Any] = {"bud_id": bud["id"], "model": {**model, "nmae": "x"}}
    assert fault(send("POST", "/api/conversations/", chat))[1:] == ("unknown_field", "model.nmae")
    del chat["model"]["nmae"]
    assert fault(send("POST", "/api/conversations/", chat))[2] == "model.name"


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_an_address_without_its_last_slash_keeps_the_method(tenant: Tenant, method: str) -> None:
    """REL-1562: 308, with the reason in the body for clients that follow nothing."""
    answer = call(token_of(tenant, "chat"), method, "/api/folders?page_size=1", b"{}")
    assert fault(answer) == (308, "no_slash", None)
    assert answer["Location"] == "/api/folders/?page_size=1"


def test_pages_without_their_last_slash_are_found_as_before(tenant: Tenant) -> None:
    """REL-1562: browsers get Django's answer, and what is not there stays not there."""
    client = tenant.client("member")
    assert client.get("/account/tokens").status_code == 301
    assert client.post("/account/tokens").status_code == 308
    assert client.post("/nothing").status_code == 404


def test_refusals_say_what_to_do(tenant: Tenant) -> None:
    """REL-1563: types of bodies and answers, an address that there is not, a moment, and a fault of no field."""
    plain = token_of(tenant, "chat", "servers:read")
    form = Client().post(
        "/api/folders/", {"name": "x"}, headers={"Authorization": f"Bearer {plain}"}
    )
    assert fault(form) == (415, "unsupported_media_type", None)
    assert "application/json" in form.json()["errors"][0]["detail"]
    page = call(plain, "GET", "/api/folders/", Accept="text/html")
    assert fault(page) == (406, "not_acceptable", None)
    assert "application/json" in page.json()["errors"][0]["detail"]
    nothing = call(plain, "GET", "/api/nothing/")
    assert fault(nothing) == (404, "not_found", None)
    assert "/api/docs/" in nothing.json()["errors"][0]["detail"]
    moment = call(plain, "GET", "/api/health-checks/?since=yesterday")
    assert fault(moment) == (400, "invalid", "since")
    assert "2026-11-27T10:00:00Z" in moment.json()["errors"][0]["detail"]
    assert fault(call(plain, "POST", "/api/folders/", b"[]")) == (400, "invalid", None)
    gone = call(plain, "GET", "/api/servers/00000000-0000-7000-8000-000000000000/")
    assert gone.json()["errors"][0]["detail"] == "MCP server not found."
    host = Client().get("/api/folders/", headers={"Host": "elsewhere.example"})
    assert fault(host) == (400, "bad_request", None)
    assert "TRELLIS_PUBLIC_ORIGINS" in host.json()["errors"][0]["detail"]


def test_a_session_without_proof_reads_what_proof_is(tenant: Tenant) -> None:
    """REL-1563: a program that uses a person's session learns which header is missing."""
    client = signed_in(tenant.member, enforce_csrf_checks=True)
    answer = client.post(
        "/api/folders/",
        b'{"name": "a"}',
        content_type="application/json",
        headers={"X-Workspace": tenant.workspace.slug},
    )
    assert fault(answer) == (403, "permission_denied", None)
    assert "X-CSRFToken" in answer.json()["errors"][0]["detail"]


def test_every_fault_has_a_code(tenant: Tenant) -> None:
    """REL-1563: in filters of the log, too."""
    answer = tenant.client("owner").get("/api/audit-entries/?q=since:whenever")
    assert fault(answer) == (400, "invalid", "q")


def test_options_tell_what_an_address_takes(tenant: Tenant) -> None:
    """REL-1563: and no fields, which the schema has for each operation."""
    answer = call(token_of(tenant, "chat"), "OPTIONS", "/api/folders/")
    assert answer.json() == {"renders": ["application/json"], "parses": ["application/json"]}
    assert "POST" in answer["Allow"]


def test_a_token_learns_whose_it_is(tenant: Tenant) -> None:
    """REL-1564: its person, workspace, role, scopes and end, whatever its scope is."""
    body = call(token_of(tenant, "servers:read"), "GET", "/api/me/").json()
    assert body["person"]["email"] == tenant.member.email
    assert (body["workspace"]["slug"], body["workspace"]["role"]) == (
        tenant.workspace.slug,
        "member",
    )
    assert (body["token"]["name"], body["token"]["scopes"]) == ("script", ["servers:read"])
    assert tenant.client("admin").get("/api/me/").json()["token"] is None
    assert Client().get("/api/me/").status_code == 401


def test_a_token_for_mcp_clients_learns_nothing_there(tenant: Tenant) -> None:
    """SEC-712."""
    answer = call(token_of(tenant, "mcp:read"), "GET", "/api/me/")
    assert fault(answer) == (403, "forbidden", None)


def test_what_takes_a_browser_says_so_to_tokens(tenant: Tenant) -> None:
    """REL-1565."""
    answer = call(token_of(tenant, "chat"), "GET", "/api/tokens/")
    assert fault(answer) == (403, "forbidden", None)
    assert "browser" in answer.json()["errors"][0]["detail"]


def test_a_value_that_is_no_choice_is_told_which_there_are(tenant: Tenant) -> None:
    """REL-2306: at fields, within lists, and at filters; the error named what was sent, and not what can be sent."""
    client = tenant.client("admin")
    theme = client.post("/api/profile/", {"theme": "pink"}, content_type="application/json")
    wrong = {"url": "https://example.org/", "events": ["pink"]}
    events = tenant.client("owner").post("/api/webhooks/", wrong, content_type="application/json")
    status = client.get("/api/input-requests/", {"status": "pink"})
    level = {"name": "x", "url": "https://example.org/", "log_level": "pink"}
    log_level = client.post("/api/servers/", level, content_type="application/json")
    member = client.get("/api/members/").json()["results"][0]["id"]
    kind = client.get(f"/api/members/{member}/access/", {"kind": "pink"})
    for answer, attr, known in (
        (theme, "theme", "Use one of: system, light, dark."),
        (events, "events.0", "Use one of: turn.finished, approval.wanted."),
        (status, "status", "Use one of: pending, "),
        (log_level, "log_level", "Use one of: debug, "),
        (kind, "kind", "Use one of: permission, "),
    ):
        (error,) = answer.json()["errors"]
        assert (error["code"], error["attr"]) == ("invalid_choice", attr)
        assert known in error["detail"]


def test_the_list_of_ones_own_workspaces_goes_on_in_another_one(two_workspaces: TwoTenants) -> None:
    """REL-2304: its rows are the person's, whichever workspace they are in."""
    a, b = two_workspaces.a, two_workspaces.b
    MembershipFactory.create(user=a.owner, workspace=b.workspace)
    following = a.client("owner").get("/api/workspaces/", {"page_size": 1}).json()["next"]
    there = a.client("owner", headers={"X-Workspace": b.workspace.slug}).get(following)
    assert [one["slug"] for one in there.json()["results"]] == [b.workspace.slug]
