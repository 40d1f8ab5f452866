"""What the product's own middleware adds to every answer."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import uuid4

import pytest
import structlog
from django.core.cache import cache
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from audit.models import AuditEntry
from config.serving.middleware import RequestLogMiddleware
from tests.factories import PASSWORD, Tenant, UserFactory, signed_in
from tests.mcp_servers.factories import http_server
from workspaces.models import Membership

pytestmark = pytest.mark.django_db


def test_the_request_id_is_ours_and_the_same_everywhere(tenant: Tenant) -> None:
    """SEC-104: what a caller sends as an id reaches neither the log nor the answer."""
    client = Client()
    answer = client.post(
        "/accounts/login/",
        {"login": tenant.member.email, "password": PASSWORD},
        headers={"X-Request-ID": "forged"},
    )
    assert answer.status_code == 302
    entry = AuditEntry.objects.for_workspace(tenant.workspace).latest("id")
    assert entry.action == "auth.signed_in"
    assert answer["X-Request-ID"] == entry.request_id != "forged"


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP"]
)
def test_the_address_in_the_log_is_that_of_the_edge(header: str) -> None:
    """SEC-372: a header that a caller invents does not change it."""
    request = RequestFactory().get("/", headers={header: "8.8.8.8"}, REMOTE_ADDR="192.0.2.1")
    with structlog.contextvars.bound_contextvars():
        RequestLogMiddleware.bind_ip(request)
        assert structlog.contextvars.get_contextvars()["ip"] == "192.0.2.1"
    structlog.contextvars.unbind_contextvars("ip")


def test_pages_are_not_kept_by_caches(tenant: Tenant) -> None:
    """SEC-84: what a person sees is nobody else's."""
    answer = tenant.client("member").get(f"/w/{tenant.workspace.slug}/")
    assert "no-store" in answer["Cache-Control"]


def test_an_expected_failure_in_a_page_is_a_page(tenant: Tenant) -> None:
    """SEC-96: the status and the words of the failure, and nothing else."""
    answer = tenant.client("member").get(f"/w/{tenant.workspace.slug}/audit/")
    assert answer.status_code == 403
    assert b"Traceback" not in answer.content


def test_a_form_that_is_sent_after_the_session_ended_leads_back_to_its_page(tenant: Tenant) -> None:
    """REL-1314, REL-1481: signing in led to the form's address, for which browsers show an empty page."""
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    page = f"/w/{tenant.workspace.slug}/people/{row.pk}/?tokens_after=x"
    address = f"/w/{tenant.workspace.slug}/people/{row.pk}/role/"
    browser = Client()
    for came_from, led_to in (
        (f"http://testserver{page}", f"{page}#unsent"),
        ("https://evil.example/page", "/"),
        ("", "/"),
    ):
        headers = {"Referer": came_from} if came_from else {}
        answer = browser.post(address, {"role": "admin"}, headers=headers)
        assert answer.status_code == 302
        target = urlsplit(answer["Location"])
        assert (target.path, parse_qs(target.query)) == ("/accounts/login/", {"next": [led_to]})
    entered = browser.get(answer["Location"]).content.decode()
    assert "You were signed out, so nothing was saved." in entered
    seen = browser.get(page)
    assert parse_qs(urlsplit(seen["Location"]).query) == {"next": [page]}
    add = "/admin/chat/modelprovider/add/"
    shown = Client().post(
        add, {"name": "x"}, headers={"Referer": f"http://testserver{add}"}, follow=True
    )
    assert "You were signed out, so nothing was saved." in shown.content.decode()
    assert shown.request["QUERY_STRING"] == urlencode({"next": f"{add}#unsent"})


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_part_of_a_page_does_not_become_the_page_to_sign_in(tenant: Tenant, method: str) -> None:
    """REL-1314, REL-2785: a notice says that the session, or the access of who is signed in, has ended."""
    server = http_server(tenant, "https://mcp.example.org/mcp")
    address = f"/w/{tenant.workspace.slug}/servers/{server.pk}/"
    address += "test/" if method == "post" else ""
    headers = {"HX-Request": "true", "Referer": f"http://testserver{address}"}
    answer = getattr(Client(), method)(address, headers=headers)
    assert answer.status_code == 401
    assert answer.content.decode().startswith("You were signed out")
    assert answer["Content-Type"].startswith("text/plain")
    gone = getattr(signed_in(UserFactory.create()), method)(address, headers=headers)
    assert (gone.status_code, gone["Content-Type"]) == (404, answer["Content-Type"])
    assert "no longer have access" in gone.content.decode()


def test_an_address_that_only_takes_forms_says_so(tenant: Tenant) -> None:
    """REL-1314: with a way on, instead of an empty page; programs get what they got."""
    client = tenant.client("admin")
    answer = client.get(f"/w/{tenant.workspace.slug}/servers/klavis/save/")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert "only takes what a form sends" in answer.content.decode()
    assert 'href="/"' in answer.content.decode()
    head = {"X-Workspace": tenant.workspace.slug}
    response = client.get("/api/hosted-servers/account/test/", headers=head)
    assert response.headers["Content-Type"].startswith("application/json")


def test_a_form_whose_row_is_gone_leads_back_to_its_page(tenant: Tenant) -> None:
    """REL-1265: somebody else has deleted it while the page stood; only a page of ours is led to."""
    base = f"/w/{tenant.workspace.slug}/requests/"
    client = tenant.client("admin")
    for referer, is_ours in (
        (f"http://testserver{base}", True),
        ("https://elsewhere.example/", False),
    ):
        gone = client.post(f"{base}{uuid4()}/grant/", headers={"Referer": referer})
        assert gone.status_code == 404
        assert (f'href="{referer}#unsent">Go back' in gone.content.decode()) == is_ours
    odd = client.post(base, headers={"Host": "elsewhere.example", "Referer": "http://testserver/"})
    assert odd.status_code == 400
    assert b"Go back</a>" not in odd.content


def test_login_is_rate_limited_and_tells_nothing_of_accounts(
    tenant: Tenant, settings: Settings
) -> None:
    """SEC-20: the same words for a known and an unknown account, then none at all."""
    # Fewer than in real life, so that a slow machine still gets there within the minute.
    settings.ACCOUNT_RATE_LIMITS = {**settings.ACCOUNT_RATE_LIMITS, "login": "9/m/ip"}
    values: dict[str, list[str]] = {}
    for email in (tenant.member.email, "nobody@example.org"):
        cache.clear()
        client = Client()
        answers = [
            client.post("/accounts/login/", {"login": email, "password": "wrong"})
            for _ in range(10)
        ]
        assert answers[-1].status_code == 429
        values[email] = [
            str(answer.context["form"].non_field_errors()) if answer.status_code == 200 else "429"
            for answer in answers
        ]
    known, unknown = values.values()
    assert known == unknown
    assert "too many" in " ".join(known).lower()


def test_the_session_changes_when_a_person_signs_in(tenant: Tenant) -> None:
    """SEC-21: an id that somebody planted before is worth nothing after."""
    client = Client()
    client.get("/accounts/login/")
    session = client.session
    session["planted"] = True
    session.save()
    before = session.session_key
    client.cookies["trellis-session"] = str(before)
    client.post("/accounts/login/", {"login": tenant.member.email, "password": PASSWORD})
    assert client.session.session_key != before
    cookie = client.cookies["trellis-session"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    client.post("/accounts/logout/")
    assert (
        Client(headers={"Cookie": f"trellis-session={before}"}).get("/api/buds/").status_code == 401
    )


def test_a_form_without_a_cookie_says_what_is_missing() -> None:
    """REL-2036: whoever blocks cookies reads so; neither page says that the person has no access."""
    browser = Client(enforce_csrf_checks=True)
    blocked = browser.post("/accounts/login/", {"login": "a@b.example"})
    browser.cookies["other"] = "1"
    run_out = browser.post("/accounts/login/", {"login": "a@b.example"})
    for answer, words in ((blocked, "Allow cookies for this site"), (run_out, "has run out")):
        text = answer.content.decode()
        assert answer.status_code == 403
        assert words in text
        assert "no access" not in text


@pytest.mark.parametrize(
    ("path", "charset"),
    [("/accounts/login/", "zlib"), ("/oauth/token", "utf-16"), ("/api/profile/picture/", "idna")],
)
def test_a_form_of_another_charset_is_refused(tenant: Tenant, path: str, charset: str) -> None:
    """REL-2301: Python has charsets that are no text. A form that named one was a 500 wherever forms are taken."""
    form = b'--x\r\nContent-Disposition: form-data; name="login"\r\n\r\nrosa\r\n--x--\r\n'
    kind = f"multipart/form-data; boundary=x; charset={charset}"
    answer = tenant.client("member").generic("POST", path, form, content_type=kind)
    assert answer.status_code == 400


def test_the_log_line_of_a_request_has_no_query(tenant: Tenant) -> None:
    """SEC-51, SEC-98: an issuer's code, a state and what people look for stand after the path, and in no log."""
    path = "/oauth/mcp/00000000-0000-7000-8000-000000000000/callback"
    with structlog.testing.capture_logs() as lines:
        tenant.client("member").get(f"{path}?code=canary-code&state=canary-state")
    listed = [line for line in lines if "request" in line]
    assert [line["request"] for line in listed] == [f"GET {path}"] * len(listed)
    assert {"request_started", "request_finished"} <= {line["event"] for line in listed}
    assert "canary" not in str(lines)


def test_what_callers_do_is_no_warning_in_the_log(tenant: Tenant) -> None:
    """REL-2002: MCP clients ask for a stream, and read 405, as the protocol has it. Trellis has nothing to mend."""
    with structlog.testing.capture_logs() as lines:
        answer = tenant.client("member").get(f"/w/{tenant.workspace.slug}/mcp/")
    assert answer.status_code == 405
    ends = [line for line in lines if line["event"] == "request_finished"]
    assert [(line["code"], line["log_level"]) for line in ends] == [(405, "info")]
