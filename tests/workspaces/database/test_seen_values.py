"""Two people have the same form open, and both save it."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from threading import Barrier
from typing import Any

import pytest
from django.db import transaction

from audit.models import AlertRule, AuditPolicy, AuditStream
from chat.models import ModelProvider, ProviderModel
from tests.factories import Tenant
from tests.locks import until_somebody_waits
from tests.mcp_servers.factories import http_server
from tests.patience import PATIENCE
from tests.threads import Threads
from workspaces.models import Membership

pytestmark = pytest.mark.django_db
INPUT = re.compile(r"<(input|textarea|select)\b([^>]*)>(?:([^<]*)</textarea>)?")
OPTION = re.compile(r'<option value="([^"]*)"[^>]*\bselected\b')


def fields_of(page: str) -> dict[str, str]:
    """What a browser would send of the page's forms, were nothing changed."""
    found: dict[str, str] = {}
    for match in INPUT.finditer(page):
        kind, given, text = match.groups()
        names = dict(re.findall(r'([\w-]+)="([^"]*)"', given))
        name = names.get("name", "")
        if not name or names.get("type") in {"submit", "search", "file"}:
            continue
        if kind == "select":
            end = page.index("</select>", match.end())
            chosen = OPTION.search(page, match.end(), end)
            value = chosen[1] if chosen else ""
        elif names.get("type") in {"checkbox", "radio"}:
            if not re.search(r"\bchecked\b", given):
                continue
            value = names.get("value", "on")
        else:
            value = text if kind == "textarea" else names.get("value", "")
        found[name] = unescape(value or "").removeprefix("\n")
    return found


def rule(tenant: Tenant) -> tuple[str, Any, str]:
    row = AlertRule.objects.create(
        workspace=tenant.workspace, name="slow", condition="timeout", threshold=5
    )
    return f"/w/a/audit/alerts/{row.pk}/", row, "name"


def stream(tenant: Tenant) -> tuple[str, Any, str]:
    row = AuditStream.objects.create(
        workspace=tenant.workspace, name="slow", kind="webhook", target="https://s.example.org/"
    )
    return f"/w/a/audit/streams/{row.pk}/", row, "name"


def policy(tenant: Tenant) -> tuple[str, Any, str]:
    row = AuditPolicy.objects.create(workspace=tenant.workspace, keep_days=400)
    return "/w/a/audit/settings/", row, "keep_days"


def server(tenant: Tenant) -> tuple[str, Any, str]:
    row = http_server(tenant, "https://s.example.org/mcp", name="slow")
    return f"/w/a/servers/{row.pk}/settings/", row, "name"


def provider(tenant: Tenant) -> tuple[str, Any, str]:
    row = ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="slow",
        base_url="https://m.example.org/v1",
        default_model="small",
    )
    ProviderModel.objects.create(workspace=tenant.workspace, provider=row, model="small")
    return f"/admin/chat/modelprovider/{row.pk}/change/", row, "name"


@pytest.mark.parametrize("make", [rule, stream, policy, server, provider])
def test_of_two_people_with_the_same_form_open_nobody_loses_a_change(
    tenant: Tenant, make: Callable[[Tenant], tuple[str, Any, str]]
) -> None:
    """REL-733: the second one is told at the field, nothing of theirs is saved yet, and saving again does."""
    url, row, field = make(tenant)
    client = tenant.client("owner")
    mine = fields_of(client.get(url).content.decode())
    assert field in mine, sorted(mine)
    assert mine.get("seen")
    theirs = "77" if field == "keep_days" else "theirs"
    type(row).unscoped.filter(pk=row.pk).update(**{field: theirs})
    untouched = client.post(url, mine)
    assert untouched.status_code in {200, 422}, untouched.headers
    page = untouched.content.decode()
    assert "Somebody else changed this while you had the form open." in page
    assert fields_of(page)[field] == theirs
    touched = client.post(url, {**mine, field: "99"})
    page = touched.content.decode()
    assert f"Somebody else changed this to “{theirs}” while" in page
    row.refresh_from_db()
    assert str(getattr(row, field)) == theirs
    again = {**fields_of(page)}
    assert again[field] == "99"
    saved = client.post(url, again)
    assert saved.status_code == 302, re.findall(
        r"(?s)<ul class=.errorlist.*?</ul>|<p[^>]*red[^>]*>.*?</p>", saved.content.decode()
    )
    row.refresh_from_db()
    assert str(getattr(row, field)) == "99"
    # And who was alone with the form is asked nothing.
    assert client.post(url, fields_of(client.get(url).content.decode())).status_code == 302


def test_a_row_of_a_table_in_a_form_is_compared_too(tenant: Tenant) -> None:
    """REL-733."""
    url, row, _field = provider(tenant)
    client = tenant.client("admin")
    mine = fields_of(client.get(url).content.decode())
    models = ProviderModel.objects.for_workspace(tenant.workspace).filter(provider=row)
    models.update(prompt_price="7")
    prefix = next(name for name in mine if name.endswith("-seen")).removesuffix("-seen")
    answer = client.post(url, {**mine, f"{prefix}-prompt_price": "3"})
    assert answer.status_code == 200
    assert "Somebody else changed this to “7" in answer.content.decode()
    assert str(models.get().prompt_price).startswith("7")


def test_a_persons_role_is_not_put_back_by_an_older_page(tenant: Tenant) -> None:
    """REL-733."""
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    client = tenant.client("owner")
    where = f"/w/a/people/{row.pk}/"
    mine = fields_of(client.get(where).content.decode())
    Membership.objects.for_workspace(tenant.workspace).filter(pk=row.pk).update(role="admin")
    refused = client.post(f"{where}role/", {**mine, "is_auditor": "on"})
    assert refused.status_code == 422
    assert b"Somebody else changed this" in refused.content
    row.refresh_from_db()
    assert (row.role, row.is_auditor) == ("admin", False)
    again = fields_of(refused.content.decode())
    assert again["role"] == "admin"
    assert client.post(f"{where}role/", {**again, "is_auditor": "on"}).status_code == 302
    row.refresh_from_db()
    assert (row.role, row.is_auditor) == ("admin", True)


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("make", [rule, stream, policy, server, provider])
def test_whoever_comes_second_compares_with_what_the_first_saved(
    tenant: Tenant, make: Callable[[Tenant], tuple[str, Any, str]]
) -> None:
    """REL-760: they wait for the first before they compare, not only before they save."""
    url, row, field = make(tenant)
    client = tenant.client("owner")
    mine = fields_of(client.get(url).content.decode())
    theirs = "77" if field == "keep_days" else "theirs"
    with Threads(1) as threads:
        with transaction.atomic():
            type(row).unscoped.filter(pk=row.pk).update(**{field: theirs})
            answer = threads.submit(client.post, url, {**mine, field: "99"})
            until_somebody_waits()
        refused = answer.result(PATIENCE)
    assert refused.status_code in {200, 422}
    assert f"Somebody else changed this to “{theirs}” while" in refused.content.decode()
    row.refresh_from_db()
    assert str(getattr(row, field)) == theirs


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("make", [rule, stream, policy, server, provider])
def test_of_two_saves_at_the_same_moment_one_is_told(
    tenant: Tenant, make: Callable[[Tenant], tuple[str, Any, str]]
) -> None:
    """REL-760."""
    url, row, field = make(tenant)
    clients = [tenant.client("owner"), tenant.client("owner")]
    mine = fields_of(clients[0].get(url).content.decode())
    together = Barrier(2)

    def save(client: Any, value: str) -> int:
        together.wait(PATIENCE)
        return int(client.post(url, {**mine, field: value}).status_code)

    with Threads(2) as threads:
        answers = [
            threads.submit(save, client, value)
            for client, value in zip(clients, ("98", "99"), strict=True)
        ]
        codes = [one.result(PATIENCE) for one in answers]
    assert sorted(codes) in ([302, 422], [200, 302]), codes
    row.refresh_from_db()
    assert str(getattr(row, field)) == ("98" if codes[0] == 302 else "99")
