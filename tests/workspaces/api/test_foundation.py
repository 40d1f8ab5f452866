"""What every endpoint does alike, seen on one that does nothing else."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from statistics import median
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from uuid_utils.compat import uuid7

from tests.factories import Tenant, TwoTenants
from tests.workspaces.api import probe
from tests.workspaces.api.tokens import bearer, token_of
from workspaces.api.idempotency import ABANDONED_AFTER
from workspaces.models import ApiToken, IdempotentRequest, Membership
from workspaces.people.tokens import SCOPES

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.workspaces.api.probe")]
URL = "/api/probes/"


@pytest.fixture(autouse=True)
def no_calls() -> None:
    probe.calls.clear()


def post(client: Client, body: Any, **headers: str) -> Any:
    raw = body if isinstance(body, bytes | str) else json.dumps(body)
    return client.post(URL, raw, content_type="application/json", headers=headers or None)


# Who calls ------------------------------------------------------------------------------------------------------------


def test_nobody_is_told_to_identify(tenant: Tenant) -> None:
    """SEC-19."""
    answer = Client().get(URL)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["errors"][0]["code"] == "not_authenticated"


def test_a_token_works_within_its_scopes(tenant: Tenant) -> None:
    """SEC-18."""
    reader = Client(headers=bearer(token_of(tenant, "servers:read")))
    assert reader.get(URL).status_code == 200
    assert post(reader, {"text": "x"}).status_code == 403
    writer = Client(headers=bearer(token_of(tenant, "servers:read", "servers:write")))
    assert post(writer, {"text": "x"}).status_code == 201


def test_a_token_of_another_scope_opens_nothing(tenant: Tenant) -> None:
    """SEC-18: every other scope is 403, however the view is called."""
    others = set(SCOPES) - {"servers:read", "servers:write"}
    client = Client(headers=bearer(token_of(tenant, *others, role="owner")))
    assert client.get(URL).status_code == 403
    assert post(client, {"text": "x"}).status_code == 403


@pytest.mark.parametrize("scheme", ["Token", "Basic", "Digest", "", "bearerx"])
def test_only_the_bearer_scheme_carries_tokens(tenant: Tenant, scheme: str) -> None:
    """SEC-18, SEC-19: a good token in another dress is 401."""
    plain = token_of(tenant, "servers:read")
    assert Client().get(URL, headers={"Authorization": f"{scheme} {plain}"}).status_code == 401


@pytest.mark.parametrize("header", ["X-API-Key", "X-Auth-Token", "Proxy-Authorization"])
def test_no_other_header_carries_tokens(tenant: Tenant, header: str) -> None:
    """SEC-18."""
    client = tenant.client("member")
    assert client.get(URL, headers={header: token_of(tenant, "servers:read")}).status_code == 401


@pytest.mark.parametrize("name", ["token", "access_token", "api_key", "TOKEN"])
def test_no_credential_is_taken_from_an_address(tenant: Tenant, name: str) -> None:
    """SEC-17."""
    assert Client().get(URL, {name: token_of(tenant, "servers:read")}).status_code == 401
    assert tenant.client("member").get(URL, {name: "x"}).status_code == 401


@pytest.mark.parametrize(
    "value",
    ["Bearer", "Bearer ", "Bearer nonsense", "Bearer \u00e9", "Bearer " + "x" * 5000, "x" * 9000],
)
def test_a_bad_token_beside_a_good_cookie_is_refused(tenant: Tenant, value: str) -> None:
    """SEC-19: it never becomes the cookie's identity."""
    client = tenant.client("member")
    assert client.get(URL).status_code == 200
    assert client.get(URL, HTTP_AUTHORIZATION=value).status_code == 401


def test_tokens_end(tenant: Tenant) -> None:
    """SEC-18: expired, of a removed member, of a person switched off."""
    expired, switched_off, removed = (token_of(tenant, "servers:read") for _ in range(3))
    rows = ApiToken.objects.for_workspace(tenant.workspace).order_by("id")
    rows.filter(pk=rows[0].pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Client().get(URL, headers=bearer(expired)).status_code == 401
    assert Client().get(URL, headers=bearer(switched_off)).status_code == 200
    tenant.member.is_active = False
    tenant.member.save()
    assert Client().get(URL, headers=bearer(switched_off)).status_code == 401
    tenant.member.is_active = True
    tenant.member.save()
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.member).delete()
    assert Client().get(URL, headers=bearer(removed)).status_code == 401


def test_a_cookie_needs_csrf_proof_to_change(tenant: Tenant) -> None:
    """SEC-22."""
    client = tenant.client("member", enforce_csrf_checks=True)
    assert post(client, {"text": "x"}).status_code == 403
    assert probe.calls == []
    proof = "a" * 32
    client.cookies[settings.CSRF_COOKIE_NAME] = proof
    assert post(client, {"text": "x"}, **{"X-CSRFToken": "b" * 32}).status_code == 403
    assert post(client, {"text": "x"}, **{"X-CSRFToken": proof}).status_code == 201


# Whose rows -----------------------------------------------------------------------------------------------------------


def test_the_workspace_comes_from_the_header_or_the_token(two_workspaces: TwoTenants) -> None:
    """SEC-01, SEC-02, SEC-711: another tenant's slug looks like one that does not exist, with a token, too."""
    a, b = two_workspaces.a, two_workspaces.b
    client = a.client("member")
    foreign = client.get(URL, headers={"X-Workspace": b.workspace.slug})
    missing = client.get(URL, headers={"X-Workspace": "nowhere"})
    assert foreign.status_code == missing.status_code == 404
    # REL-1828: a page that is open must not take it for a row that was deleted.
    assert foreign.json()["errors"][0]["code"] == "workspace_not_found"
    assert foreign.json() == missing.json()
    plain = token_of(a, "servers:read")
    for slug in (b.workspace.slug, "nowhere"):
        other = Client().get(URL, headers={**bearer(plain), "X-Workspace": slug})
        assert (other.status_code, other.json()["errors"][0]["code"]) == (403, "forbidden")
    found = Client().get(URL, headers={**bearer(plain), "X-Workspace": a.workspace.slug})
    ids = {row["id"] for row in found.json()["results"]}
    mine = Membership.objects.for_workspace(a.workspace).values_list("pk", flat=True)
    assert ids == {str(pk) for pk in mine}


def test_a_person_without_workspace_is_told_so(superuser: Any, tenant: Tenant) -> None:
    """SEC-11."""
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.member).delete()
    answer = tenant.client("member").get(URL)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["code"] == "no_workspace"


@pytest.mark.both_engines
def test_a_foreign_id_and_a_missing_id_answer_alike(two_workspaces: TwoTenants) -> None:
    """SEC-02: same status, same body, and no telling by time."""
    client = two_workspaces.a.client("admin")
    foreign = Membership.objects.for_workspace(two_workspaces.b.workspace).order_by("id")[0].pk
    times: dict[str, list[float]] = {"foreign": [], "missing": []}
    for _ in range(40):
        for kind, pk in (("foreign", foreign), ("missing", uuid7())):
            begin = time.perf_counter()
            answer = client.get(f"{URL}{pk}/")
            times[kind].append(time.perf_counter() - begin)
            assert answer.status_code == 404
            assert answer.json()["errors"] == [
                {"code": "not_found", "detail": "Membership not found.", "attr": None}
            ]
    # Both do the same query; the bound is wide because the machine is shared.
    assert 0.5 < median(times["foreign"]) / median(times["missing"]) < 2


@pytest.mark.both_engines
def test_an_id_that_is_no_id_is_not_found(tenant: Tenant) -> None:
    """SEC-02."""
    assert tenant.client("admin").get(f"{URL}nonsense/").status_code == 404


# Lists ----------------------------------------------------------------------------------------------------------------


@pytest.mark.both_engines
def test_pages_follow_keys(tenant: Tenant) -> None:
    """Ours: forward through all pages and back again gives the same rows."""
    client = tenant.client("admin")
    forward: list[str] = []
    where: Any = f"{URL}?page_size=1"
    previous: Any = None
    while where:
        answer = client.get(where).json()
        forward += [row["id"] for row in answer["results"]]
        where, previous = answer["next"], answer["previous"]
    assert forward == sorted(forward, reverse=True)
    assert len(forward) == 4
    assert client.get(previous).json()["results"][0]["id"] == forward[-2]


def test_a_cursor_is_of_its_list_and_whole(two_workspaces: TwoTenants) -> None:
    """REL-2304: a cut one began the list anew, which a program reads for ever."""
    client = two_workspaces.a.client("admin")
    following = client.get(URL, {"page_size": 1}).json()["next"]
    (cursor,) = parse_qs(urlsplit(following).query)["cursor"]
    other = two_workspaces.b.client("admin")
    assert client.get(URL, {"cursor": cursor}).status_code == 200
    answers = [
        client.get(URL, {"cursor": cursor[:-4]}),
        client.get(URL, {"cursor": cursor[4:]}),
        client.get(URL, {"cursor": "AAAA"}),
        client.get(URL, {"cursor": cursor, "ordering": "role"}),
        other.get(URL, {"cursor": cursor}),
    ]
    assert [answer.status_code for answer in answers] == [400] * len(answers)


@pytest.mark.both_engines
@pytest.mark.parametrize("ordering", ["-id", "id", "role", "-role"])
def test_lists_are_ordered_by_allowed_names(tenant: Tenant, ordering: str) -> None:
    """SEC-05."""
    query: dict[str, Any] = {"ordering": ordering, "page_size": 3}
    rows = tenant.client("admin").get(URL, query).json()
    name = ordering.removeprefix("-")
    values = [row[name] for row in rows["results"]]
    assert values == sorted(values, reverse=ordering.startswith("-"))


@pytest.mark.parametrize(
    "query",
    [
        "ordering=user__password",
        "ordering=id);--",
        "ordering=?",
        "ordering=",
        "user__password__startswith=a",
        "workspace=x",
        "fields=id",
        "format=json",
        "page_size=0",
        "page_size=201",
        "page_size=199999",
        f"page_size=000001{'0' * 5000}",
        "page_size=²",
        "page_size=-1",
        "page_size=٣",
        "page_size=1e3",
        "cursor=nonsense",
        "cursor=%00",
        "cursor=cD1ub25zZW5zZQ==",
        "role=a&role=b",
        "role=%00",
        "created_after=yesterday",
        "created_after=99999-01-01T00:00:00Z",
    ],
)
def test_an_unknown_parameter_or_value_is_refused(tenant: Tenant, query: str) -> None:
    """SEC-05: names come from an allow-list, values never become identifiers."""
    answer = tenant.client("admin").get(f"{URL}?{query}")
    assert answer.status_code == 400, answer.content
    assert answer.json()["errors"]


@pytest.mark.both_engines
def test_filters_narrow(tenant: Tenant) -> None:
    """Ours."""
    rows = tenant.client("admin").get(URL, {"role": "owner"}).json()["results"]
    assert [row["role"] for row in rows] == ["owner"]


# Bodies ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        "[" * 200_000,
        "{" * 1000,
        '{"text": ' + "[" * 70 + "]" * 70 + "}",
        '{"text": "a", "text": "b"}',
        '{"text": NaN}',
        '{"text": -Infinity}',
        '{"text": 1e400}',
        '{"text": ' + "9" * 5000 + "}",
        '{"text": "\\u0000"}',
        '{"text": "\\ud800"}',
        '{"\\ud800": 1}',
        b'{"text": "\xff"}',
        '"just text"',
        "null",
        "[]",
        "",
        "{'text': 1}",
        '\ufeff{"text": 1}',
    ],
)
def test_hostile_json_is_a_clear_400(tenant: Tenant, raw: str | bytes) -> None:
    """SEC-76, REL-2305: never 500, nothing of it is done, and no words of Python's own."""
    answer = post(tenant.client("member"), raw)
    assert answer.status_code == 400, answer.content
    assert b"sys." not in answer.content
    assert answer.json()["type"] in {"client_error", "validation_error"}
    assert probe.calls == []


def test_a_body_of_another_kind_or_size_is_refused(tenant: Tenant) -> None:
    """SEC-76."""
    client = tenant.client("member")
    assert client.post(URL, {"text": "x"}).status_code == 415
    assert post(client, {"text": "x" * 2_000_000}).status_code == 413
    assert probe.calls == []


def test_every_error_has_one_shape(tenant: Tenant) -> None:
    """Ours: validation, domain, method, and crash."""
    client = tenant.client("member", raise_request_exception=False)
    answers = {
        400: post(client, {}),
        409: post(client, {"text": "x", "failure": "conflict"}),
        422: post(client, {"text": "x", "failure": "invalid"}),
        405: client.delete(URL),
        500: post(client, {"text": "x", "failure": "crash"}),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        body = answer.json()
        assert set(body) == {"type", "errors"}
        assert all(set(error) == {"code", "detail", "attr"} for error in body["errors"])
    assert answers[400].json()["errors"][0]["attr"] == "text"
    assert answers[422].json()["errors"][0] == {
        "code": "invalid",
        "detail": "Not that.",
        "attr": "text",
    }


def test_a_crash_tells_nothing(tenant: Tenant) -> None:
    """SEC-96: no text of the exception, no traceback, no path."""
    client = tenant.client("member", raise_request_exception=False)
    answer = post(client, {"text": "x", "failure": "crash"})
    assert b"secret detail" not in answer.content
    assert b"Traceback" not in answer.content


# Repeats --------------------------------------------------------------------------------------------------------------


@pytest.mark.both_engines
def test_a_repeated_request_gets_the_first_answer(tenant: Tenant) -> None:
    """REL-02: nothing is done again, whatever the spelling of the same JSON."""
    client = tenant.client("member")
    key = {"Idempotency-Key": str(uuid4())}
    first = post(client, '{"text": "x", "extra": {"a": 1, "b": 2}}', **key)
    second = post(client, '{ "extra": {"b": 2, "a": 1}, "text": "x" }', **key)
    assert (first.status_code, first.json()) == (second.status_code, second.json())
    assert second["Idempotency-Replayed"] == "true"
    assert len(probe.calls) == 1


@pytest.mark.both_engines
def test_a_key_belongs_to_one_request_of_one_person(two_workspaces: TwoTenants) -> None:
    """REL-02: another body is 422; another person or tenant has keys of his own."""
    key = {"Idempotency-Key": "same-for-all"}
    a, b = two_workspaces.a, two_workspaces.b
    assert post(a.client("member"), {"text": "x"}, **key).status_code == 201
    assert post(a.client("member"), {"text": "y"}, **key).status_code == 422
    assert post(a.client("admin"), {"text": "y"}, **key).status_code == 201
    assert post(b.client("member"), {"text": "z"}, **key).status_code == 201
    assert [call["text"] for call in probe.calls] == ["x", "y", "z"]


@pytest.mark.both_engines
def test_a_request_that_still_runs_is_told(tenant: Tenant) -> None:
    """REL-02: 409, also after a restart in the middle."""
    client = tenant.client("member")
    key = {"Idempotency-Key": "k"}
    post(client, {"text": "x"}, **key)
    rows = IdempotentRequest.objects.for_workspace(tenant.workspace)
    rows.update(status_code=None, body=None)
    assert post(client, {"text": "x"}, **key).status_code == 409
    assert len(probe.calls) == 1


def test_a_request_whose_process_ended_is_not_said_to_run(tenant: Tenant) -> None:
    """REL-1556: nobody knows what came of it, so it is not made a second time, and its caller reads what to do."""
    client = tenant.client("member")
    key = {"Idempotency-Key": "k"}
    post(client, {"text": "x"}, **key)
    rows = IdempotentRequest.objects.for_workspace(tenant.workspace)
    rows.update(status_code=None, body=None)
    assert "still running" in post(client, {"text": "x"}, **key).content.decode()
    rows.update(created_at=timezone.now() - ABANDONED_AFTER)
    answer = post(client, {"text": "x"}, **key)
    assert (answer.status_code, "with a new key" in answer.content.decode()) == (409, True)
    assert len(probe.calls) == 1


@pytest.mark.both_engines
def test_a_refusal_is_kept_and_a_crash_is_not(tenant: Tenant) -> None:
    """REL-02: after a 5xx the same key tries again."""
    client = tenant.client("member", raise_request_exception=False)
    for fail, done in (("invalid", 1), ("crash", 2)):
        probe.calls.clear()
        for _ in range(2):
            post(client, {"text": "x", "failure": fail}, **{"Idempotency-Key": f"key-{fail}"})
        assert len(probe.calls) == done


@pytest.mark.parametrize("key", ["", "x" * 201, "\u00e9", "a\tb"])
def test_a_malformed_key_is_refused(tenant: Tenant, key: str) -> None:
    """REL-02."""
    assert (
        post(tenant.client("member"), {"text": "x"}, **{"Idempotency-Key": key}).status_code == 400
    )
    assert probe.calls == []


def test_callers_are_throttled(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-2217: 429 with Retry-After and plain words, counted for each person or token by itself."""
    from workspaces.api.viewsets import CallerThrottle

    monkeypatch.setattr(CallerThrottle, "get_rate", lambda _: "3/min")
    client = tenant.client("member")
    assert [client.get(URL).status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = client.get(URL)
    assert int(refused["Retry-After"]) > 0
    words = f"Too many requests in a short time. Try again in {refused['Retry-After']} seconds."
    assert refused.json()["errors"][0]["detail"] == words
    assert tenant.client("admin").get(URL).status_code == 200
    assert Client().get(URL, headers=bearer(token_of(tenant, "servers:read"))).status_code == 200
