"""Shared model providers over REST, for the platform's owner."""

from __future__ import annotations

from typing import Any

import pytest
from uuid_utils.compat import uuid7

from audit.models import AuditEntry
from chat.models import Bud, ModelProvider, SharedProvider, WithheldReason
from tests.chat.providers.sharing import (
    ADDRESS,
    KEY,
    NEW_KEY,
    row_of,
    share,
    stored_key,
)
from tests.chat.providers.usage import ask, make_bud
from tests.factories import CANARY, TwoTenants, make_tenant
from tests.fakes.scripted_model import ScriptedModel
from tests.platform_api import Api, faults, with_token
from workspaces.actors import Actor
from workspaces.models import User
from workspaces.people.tokens import PLATFORM_READ, PLATFORM_WRITE


def given(**changes: Any) -> dict[str, Any]:
    return {"name": "Shared", "base_url": ADDRESS, "default_model": "m", **changes}


@pytest.mark.django_db(transaction=True)
def test_a_provider_is_shared_tested_and_deleted(
    model: ScriptedModel, root: Api, two_workspaces: TwoTenants
) -> None:
    """REL-1060, SEC-503: its key is tried first, and no answer holds it."""
    model.keys = {NEW_KEY}
    body = given(base_url=model.base_url, api_key=KEY, most_at_once=5)
    refused = root.post("providers/", body)
    assert (refused.status_code, set(faults(refused))) == (422, {"api_key"})
    assert KEY not in refused.content.decode()
    model.keys = {KEY}
    model.say("Yes.")
    made = root.post("providers/", body)
    assert made.status_code == 201
    assert (made.json()["has_key"], made.json()["workspaces"]) == (True, 0)
    path = f"providers/{made.json()['id']}/"
    workspace = {"workspace": str(two_workspaces.a.workspace.pk)}
    assert root.post(f"{path}give/", workspace).json()["workspaces"] == 1
    model.say("Yes.")
    trial = root.post(f"{path}test/").json()
    assert (trial["fault"], trial["list_fault"]) == ("", "")
    detail = root.get(path).json()
    assert detail["uses"] == {"buds": 0, "chats": 0}
    assert detail["load"]["running"] == 0
    changed = root.patch(path, {"name": "Renamed"}).json()
    assert (changed["name"], changed["most_at_once"], changed["has_key"]) == ("Renamed", 5, True)
    assert root.post(f"{path}switch/", {"is_active": False}).json()["is_active"] is False
    assert row_of(two_workspaces.a).withheld == WithheldReason.SWITCHED_OFF
    assert root.post(f"{path}withdraw/", workspace).json()["workspaces"] == 0
    assert root.delete(path).status_code == 204
    assert root.get(path).status_code == 404
    everything = "".join(
        one.content.decode() for one in (made, root.get("providers/"), root.get("audit-entries/"))
    )
    assert KEY not in everything


@pytest.mark.django_db(transaction=True)
def test_a_key_that_cannot_be_tested_is_stored_on_request(model: ScriptedModel, root: Api) -> None:
    """REL-1060: as on the page. Otherwise the answer says why it could not be tested."""
    model.stop()
    body = given(base_url=model.base_url, api_key=KEY)
    assert root.post("providers/", body).status_code == 502
    made = root.post("providers/", {**body, "untested_key": True})
    assert made.status_code == 201
    assert stored_key(SharedProvider.objects.get()) == KEY


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "status", "fields"),
    [
        ({"name": ""}, 400, {"name"}),
        ({"base_url": "ftp://a.example.org"}, 422, {"base_url"}),
        ({"most_at_once": 0}, 400, {"most_at_once"}),
        ({"offer": "some"}, 400, {"offer"}),
        ({"offer": "chosen", "chosen_models": ["other"]}, 422, {"chosen_models"}),
        ({"name": "taken"}, 422, {"name"}),
        ({"api_key": "two words — of no key"}, 422, {"api_key"}),
    ],
)
def test_what_is_wrong_is_told_at_its_field(
    root: Api, owner: Actor, changes: dict[str, Any], status: int, fields: set[str]
) -> None:
    """REL-1060."""
    share(owner, name="Taken")
    answer = root.post("providers/", given(**changes))
    assert (answer.status_code, set(faults(answer))) == (status, fields)
    assert SharedProvider.objects.count() == 1


@pytest.mark.django_db
def test_models_are_taken_away_only_on_request(
    root: Api, owner: Actor, two_workspaces: TwoTenants
) -> None:
    """SEC-503: the refusal tells how many buds and chats use them. So for all workspaces, and for one."""
    shared = share(owner, two_workspaces.a)
    bud = make_bud(two_workspaces.a, "Notes")
    Bud.objects.for_workspace(two_workspaces.a.workspace).filter(pk=bud.pk).update(
        provider=row_of(two_workspaces.a), model="big"
    )
    path = f"providers/{shared.pk}/"
    part = f"{path}workspaces/{two_workspaces.a.workspace.pk}/"
    own = {"own_models": "chosen", "chosen_models": ["m"]}
    for where, change in ((path, {"offer": "default"}), (part, own)):
        refused = root.patch(where, change)
        assert (refused.status_code, set(faults(refused))) == (422, {"takes_away"})
        assert "1 bud" in refused.json()["errors"][0]["detail"]
    for where, change in ((path, {"offer": "default"}), (part, own)):
        assert root.patch(where, {**change, "takes_away": True}).status_code == 200
    shown = root.get(part).json()
    assert (shown["own_models"], shown["offered_models"]) == ("chosen", ["m"])
    assert shown["uses"] == {"buds": 1, "chats": 0}
    limited = root.patch(part, {"most_at_once": 2}).json()
    assert limited["most_at_once"] == 2
    capped = root.patch(part, {"most_cost_a_month": "25", "most_tokens_a_month": 0}).json()
    assert (capped["most_cost_a_month"], capped["most_tokens_a_month"]) == ("25.000000", 0)
    again = root.patch(part, {"most_at_once": 2}).json()
    assert again["most_cost_a_month"] == "25.000000", "what is left out stays"
    assert root.patch(part, {"most_cost_a_month": "-1"}).status_code == 400
    root.patch(part, {"most_cost_a_month": None, "most_tokens_a_month": None})
    assert limited["load"] == {"running": 0, "waiting": 0, "in_last_minute": 0}
    assert limited["offered_models"] == ["m"]
    assert root.patch(part, {"own_models": ""}).json()["offered_models"] == ["m"]  # the default one
    assert root.patch(part, {"own_models": "all"}).json()["offered_models"] is None
    assert root.patch(part, {"most_at_once": 0}).status_code == 400
    assert root.get(f"{path}workspaces/{two_workspaces.b.workspace.pk}/").status_code == 404


@pytest.mark.django_db
def test_what_is_not_there_and_what_does_not_fit_is_told(
    root: Api, owner: Actor, two_workspaces: TwoTenants
) -> None:
    """REL-1060."""
    shared = share(owner, is_for_all=True)
    path = f"providers/{shared.pk}/"
    workspace = {"workspace": str(two_workspaces.a.workspace.pk)}
    assert root.post(f"{path}withdraw/", workspace).status_code == 409
    assert root.post(f"{path}give/", {"workspace": str(uuid7())}).status_code == 404
    assert root.post(f"{path}give/", {}).status_code == 400
    assert root.post(f"{path}switch/", {}).status_code == 400
    assert root.get(f"{path}list-changes/").status_code == 404
    for one in ("", "test/", "give/", "switch/"):
        missing = f"providers/{uuid7()}/{one}"
        answer = root.post(missing, workspace) if one else root.get(missing)
        assert answer.status_code in {404, 400}


@pytest.mark.django_db
def test_a_token_shares_gives_and_limits_but_sends_nobody_elsewhere(
    superuser: User, owner: Actor, two_workspaces: TwoTenants
) -> None:
    """SEC-502: another address would get what everybody writes. The log says that a token did the rest."""
    api = with_token(superuser, two_workspaces.a.workspace, PLATFORM_READ, PLATFORM_WRITE)
    made = api.post("providers/", given())
    assert made.status_code == 201
    path = f"providers/{made.json()['id']}/"
    workspace = {"workspace": str(two_workspaces.b.workspace.pk)}
    assert api.post(f"{path}give/", workspace).status_code == 200
    moved = api.patch(path, {"base_url": "https://elsewhere.example.org/v1"})
    assert moved.status_code == 403
    assert SharedProvider.objects.get().base_url == ADDRESS
    assert api.patch(path, {"most_a_minute": 10, "base_url": ADDRESS}).status_code == 200
    rows = AuditEntry.objects.across_workspaces().filter(workspace_id=None)
    by_token = rows.filter(action="config.changed", sign_in="token")
    assert by_token.filter(actor_label=superuser.email).count() == 2


@pytest.mark.django_db
def test_the_workspaces_of_a_provider_come_in_pages(root: Api, owner: Actor) -> None:
    """REL-1061: with as many statements for many as for a few."""
    shared = share(owner, *(make_tenant(f"t{number}") for number in range(2)), most_at_once=3)
    path = f"providers/{shared.pk}/workspaces/"
    limited = ModelProvider.objects.across_workspaces()
    limited.update(most_at_once=2)
    few = root.statements(path)
    for number in range(12):
        share(owner, name=f"Other {number}")
        tenant = make_tenant(f"more{number}")
        root.post(f"providers/{shared.pk}/give/", {"workspace": str(tenant.workspace.pk)})
    limited.update(most_at_once=2)
    assert root.statements(path) == few
    page = root.get(f"{path}?page_size=10").json()
    rest = root.get(page["next"].partition("/api/platform/")[2]).json()
    assert (len(page["results"]), len(rest["results"]), rest["next"]) == (10, 4, None)
    assert root.get(f"{path}?ordering=name").status_code == 400


@pytest.mark.django_db
def test_what_workspaces_use_is_counted(
    root: Api, owner: Actor, two_workspaces: TwoTenants
) -> None:
    """REL-1060: as on the page, by workspace."""
    tenant = two_workspaces.a
    shared = share(owner, tenant)
    bud = make_bud(tenant, "Notes")
    Bud.objects.for_workspace(tenant.workspace).filter(pk=bud.pk).update(provider=row_of(tenant))
    bud.refresh_from_db()
    ask(tenant, bud, tenant.member, "member", prompt_tokens=7)
    usage = root.get(f"providers/{shared.pk}/usage/").json()
    assert (usage["days"], usage["left_out"]) == (30, 0)
    assert [(one["workspace"], one["prompt_tokens"]) for one in usage["workspaces"]] == [
        (str(tenant.workspace.pk), 7)
    ]


@pytest.mark.django_db
def test_the_environments_provider_is_told_without_its_key(root: Api) -> None:
    """REL-1060, SEC-503."""
    shown = root.get("environment-provider/").json()
    assert shown["is_demo"] is True
    key = next(one for one in shown["variables"] if one["variable"] == "OPENAI_API_KEY")
    assert key == {"variable": "OPENAI_API_KEY", "value": "", "is_set": False}
    assert root.get("environment-provider/list-changes/").status_code == 404
    assert root.get("environment-provider/usage/").json()["workspaces"] == []
    assert root.post("environment-provider/test/").json()["fault"] == ""
    assert CANARY not in str(shown)
