"""Every route and method, called by each role of one workspace with the ids of another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from tests.extent import IS_FULL, first_and_another
from tests.factories import CANARY
from tests.isolation.calling import call
from tests.isolation.conftest import States
from tests.isolation.routes import METHODS, SAFE, SAMPLES, Sample, address, route_names
from tests.isolation.state import rows_of, state_of
from tests.isolation.world import Side, World

pytestmark = pytest.mark.django_db
MOST = "owner"
"""Who may see and do most."""
ROLES = (MOST, "admin", "member", "auditor")
ECHOES = frozenset({"HEAD", "OPTIONS"})
"""Answered by the code of the other methods: one role shows that no more comes out."""
READING = ("GET", "HEAD") if IS_FULL else ("GET",)
"""A view answers HEAD with what answers GET."""
NAMES = route_names()
HIDDEN = {400, 403, 404, 405, 415, 422}
NOT_TAKEN = 405
"""There is nothing behind the address for this method, so no body is read."""
ADDRESSED = [name for name in NAMES if name in SAMPLES and not SAMPLES[name].is_public]


def text_of(answer: Any) -> str:
    """Everything that an answer tells: headers, body, and the pieces of a stream.

    A live stream goes on as long as what it follows; what is in it is looked at where it is tested.
    """
    if getattr(answer, "is_async", False):
        return str(answer.headers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = b"".join(answer) if answer.streaming else answer.content
    return f"{answer.headers} {body.decode(errors='replace')}"


def test_every_route_has_a_sample() -> None:
    """SEC-01: what is found and not known is red."""
    missing = sorted(set(NAMES) - set(SAMPLES))
    gone = sorted(set(SAMPLES) - set(NAMES))
    assert not missing, f"add a sample of each to tests/isolation/routes.py: {missing}"
    assert not gone, f"these routes do not exist any more: {gone}"


@pytest.mark.parametrize("name", ADDRESSED)
def test_no_route_reads_or_changes_another_workspace(
    world: World, before: States, name: str
) -> None:
    """SEC-01, SEC-02, SEC-03, SEC-12: ids of B in the address and in every body, as each role of A.

    SEC-84: the refusals carry the strict headers, whatever the method.
    """
    sample = SAMPLES[name]
    bodies = [None, *(make(world.b) for make in sample.bodies)]
    has_ids = bool(sample.ids(world.b))
    urls = {address(name, sample, world.b)}
    if "workspace_slug" in sample.ids(world.a):
        # The caller's own workspace in the address, and the other one's row in it.
        mixed = {**sample.ids(world.b), "workspace_slug": world.a.slug}
        from django.urls import reverse

        urls.add(reverse(name, kwargs=mixed))
    nothing_there: set[tuple[str, str]] = set()
    for role in first_and_another(ROLES, name):
        client = world.a.client(role, raise_request_exception=False)
        for url in urls:
            if role != MOST and not IS_FULL and url.startswith(f"/w/{world.b.slug}/"):
                continue  # the workspace itself is not found, whoever asks
            is_other = has_ids and url != address(name, sample, world.a)
            for method in METHODS:
                if (url, method) in nothing_there or (role != MOST and method in ECHOES):
                    continue
                for body in bodies if method not in SAFE else [None]:
                    answer = call(client, method, url, body, name)
                    text = text_of(answer).replace(url, "")
                    assert CANARY not in text, (role, method, url, answer.status_code)
                    assert answer.status_code < 500, (role, method, url, answer.status_code)
                    if is_other and method != "OPTIONS" and world.a.slug not in url.split("/"):
                        assert answer.status_code in HIDDEN, (role, method, url, text[:500])
                        check_headers(answer)
                    if answer.status_code == NOT_TAKEN:
                        nothing_there.add((url, method))
                        break  # whatever the body, and whoever asks
    assert state_of(world.b) == before.b


@pytest.mark.parametrize("name", [name for name in ADDRESSED if SAMPLES[name].bodies])
def test_no_body_can_name_another_workspaces_row(world: World, before: States, name: str) -> None:
    """SEC-03: in A's own address, with B's ids in every position of the body."""
    sample = SAMPLES[name]
    for role in first_and_another(ROLES, name):
        client = world.a.client(role, raise_request_exception=False)
        for make in sample.bodies:
            body = make(world.b)
            if not any(str(row.pk) in str(body) for row in world.b.rows.values()):
                continue
            for method in ("POST", "PATCH", "PUT"):
                answer = call(client, method, address(name, sample, world.a), body, name)
                assert CANARY not in text_of(answer)
                assert answer.status_code < 500
                if name.startswith("api:") and "workspace" not in body:
                    assert answer.status_code in HIDDEN, (role, method, text_of(answer)[:500])
    assert state_of(world.b) == before.b


@pytest.mark.parametrize("name", [name for name in NAMES if name in SAMPLES])
def test_nobody_without_a_session_gets_anything(world: World, before: States, name: str) -> None:
    """SEC-01, SEC-84: every route that is not public sends a stranger away, and all carry the strict headers."""
    sample = SAMPLES[name]
    client = Client(raise_request_exception=False)
    for method in METHODS:
        answer = call(client, method, address(name, sample, world.b), None, name)
        assert answer.status_code < 500, (method, answer.status_code)
        check_headers(answer)
        text = text_of(answer).replace(address(name, sample, world.b), "")
        assert CANARY not in text.replace(world.b.slug, "") or answer.status_code == 302
        if not sample.is_public and method != "OPTIONS":
            assert answer.status_code in {*HIDDEN, 302, 401}
            if answer.status_code == 302:
                assert "/accounts/login/" in answer["Location"]
    assert (state_of(world.a), state_of(world.b)) == (before.a, before.b)


@pytest.mark.parametrize("name", [name for name in NAMES if name in SAMPLES])
def test_no_change_without_csrf_proof(world: World, before: States, name: str) -> None:
    """SEC-22: a session alone changes nothing, whatever the method."""
    sample = SAMPLES[name]
    if sample.asks_no_session:
        return
    client = world.a.client("owner", enforce_csrf_checks=True)
    body = sample.bodies[0](world.a) if sample.bodies else None
    for method in first_and_another(("POST", "PUT", "PATCH", "DELETE"), name):
        answer = call(client, method, address(name, sample, world.a), body, name)
        assert answer.status_code in {401, 403, 404, 405}, (method, answer.status_code)
    # Where a browser was seen last may be noted all the same.
    seen = "workspaces.WorkspaceSession"
    assert {**state_of(world.a), seen: None} == {**before.a, seen: None}


SESSION = frozenset({"django_session", "workspaces_workspacesession"})
"""A browser's session, and where it was used last."""


@contextmanager
def writes() -> Iterator[list[str]]:
    """Collect the tables that are written to."""
    found: list[str] = []

    def watch(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        words = sql.replace('"', " ").split()
        match words[0].upper() if words else "":
            case "INSERT" | "REPLACE" | "DELETE":
                found.append(words[2])
            case "UPDATE":
                found.append(words[1])
        return execute(sql, *rest)

    with connection.execute_wrapper(watch):
        yield found


@pytest.mark.parametrize("name", [name for name in NAMES if name in SAMPLES])
def test_reading_ones_own_answers_strictly_and_changes_nothing(world: World, name: str) -> None:
    """SEC-01, SEC-22, SEC-84: with the caller's own ids, as an owner, another role, and whoever is answered.

    The sample is real, since somebody of the workspace is answered; no GET writes, but to the tables that the sample
    names with a reason; and pages, errors, redirects, files and the REST interface carry the strict headers.
    """
    sample = SAMPLES[name]
    url = address(name, sample, world.a)
    allowed = sample.writes_on_get | SESSION
    statuses: dict[str, int] = {}
    usual = first_and_another(ROLES, name)
    for role in (*usual, *(role for role in ROLES if role not in usual)):
        if role not in usual and {200, 302} & {*statuses.values()}:
            break
        client = world.a.client(role)
        for method in READING if role == MOST else ("GET",):
            with writes() as found:
                answer = call(client, method, url, None, name)
                text_of(answer)
            assert set(found) <= allowed, (role, method, found)
            if method == "HEAD":
                continue
            statuses[role] = answer.status_code
            if sample.gives_content and answer.status_code == 200:
                check_content_headers(answer)
            else:
                check_headers(answer)
    if name in ADDRESSED and sample.reads:
        assert {200, 302} & {*statuses.values()}, statuses


def check_content_headers(answer: Any) -> None:
    """Fail unless nothing of a person's file can reach anything, wherever it is opened."""
    policy = answer["Content-Security-Policy"]
    assert policy.startswith("sandbox")
    assert "allow-same-origin" not in policy
    for part in ("default-src 'none'", "form-action 'none'", "base-uri 'none'"):
        assert part in policy
    assert "frame-ancestors 'none'" in policy or "frame-ancestors 'self'" in policy
    assert "http" not in policy
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cache-Control"].startswith("private")


def check_headers(answer: Any) -> None:
    """Fail unless the answer carries every header that protects a page."""
    policy = answer["Content-Security-Policy"]
    for part in (
        *("default-src 'none'", "frame-ancestors 'none'", "form-action 'self'"),
        *("base-uri 'none'", "img-src 'self' data: blob:"),
    ):
        assert part in policy
    assert "unsafe" not in policy
    assert answer["X-Content-Type-Options"] == "nosniff"
    # Not no-referrer: browsers then send "Origin: null" with forms. Other sites get nothing either way.
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["X-Frame-Options"] == "DENY"


def test_the_other_workspace_cannot_be_chosen_by_header_or_session(world: World) -> None:
    """SEC-01: X-Workspace and a forged session value lead nowhere."""
    client = world.a.client("owner")
    session = client.session
    session["workspace_id"] = str(world.b.tenant.workspace.pk)
    session.save()
    for headers in ({}, {"X-Workspace": world.b.slug}):
        for name in NAMES:
            if name.startswith("api:") and name.endswith("-list"):
                url = address(name, SAMPLES[name], world.a)
                assert CANARY not in text_of(client.get(url, headers=headers or None))


# Fields that belong to the server ------------------------------------------------------------------------------------

HOSTILE: dict[str, Any] = {
    "id": "00000000-0000-7000-8000-000000000001",
    "workspace": CANARY,
    "workspace_id": "00000000-0000-7000-8000-000000000001",
    "owner": "x",
    "owner_id": "00000000-0000-7000-8000-000000000001",
    "user": "x",
    "role": "owner",
    "is_auditor": True,
    "is_superuser": True,
    "is_staff": True,
    "scope": "global",
    "status": "connected",
    "decision": "approved",
    "approved_hash": "0" * 64,
    "definition_hash": "0" * 64,
    "approval_rule": "x",
    "created_at": "2000-01-01T00:00:00Z",
    "lease_token": 9,
    "transport": "stdio",
    "command": "sh",
    "program": "x",
}


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.startswith("api:") and name.endswith("-detail")]
)
def test_server_owned_fields_cannot_be_set(world: World, name: str) -> None:
    """SEC-24: all of them in one PATCH, and one by one for who may most; rejected or without effect."""
    sample = SAMPLES[name]
    url = address(name, sample, world.a)
    before = owned_by_server(world.a)
    one_by_one = [{key: value} for key, value in HOSTILE.items()]
    taken = ["PATCH", "PUT"]
    for role in ROLES:
        client = world.a.client(role, raise_request_exception=False)
        for method in list(taken):
            for body in (HOSTILE, *(one_by_one if role == MOST else ())):
                status = call(client, method, url, body, name).status_code
                assert status < 500
                if status == NOT_TAKEN:
                    taken.remove(method)
                    break
        assert owned_by_server(world.a) == before, role


def owned_by_server(side: Side) -> Any:
    """The rows of a side without what a PATCH always moves."""
    return {
        label: [
            {key: value for key, value in row.items() if key in HOSTILE or key.endswith("_id")}
            for row in rows
        ]
        for label, rows in rows_of(side).items()
        if label != "audit.AuditEntry"
    }


@pytest.mark.parametrize("role", ["member", "auditor"])
def test_a_member_cannot_relax_what_protects_others(world: World, role: str) -> None:
    """SEC-24: servers and tools are the administrators' to change."""
    client = world.a.client(role)
    before = state_of(world.a)
    bodies: dict[str, dict[str, Any]] = {
        "api:servers-detail": {
            "trusts_annotations": True,
            "is_active": True,
            "url": "https://x.org",
        },
        "api:tools-detail": {"is_enabled": False, "approval_override": "auto"},
        "api:buds-detail": {"system_prompt": "obey"},
    }
    for name, body in bodies.items():
        url = address(name, SAMPLES[name], world.a)
        assert call(client, "PATCH", url, body, name).status_code == 403
        assert call(client, "DELETE", url, None, name).status_code in {403, 405}
    after = state_of(world.a)
    assert after == before
    assert settings.SECRET_KEY


def test_samples_are_complete_values(world: World) -> None:
    """SEC-01: a sample of a route that has ids gives them."""
    for name, sample in SAMPLES.items():
        assert isinstance(sample, Sample)
        assert address(name, sample, world.a)
