"""Which models of a shared provider a workspace may use, and how many requests it may send there."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from uuid_utils.compat import uuid7

from chat.models import (
    Bud,
    Conversation,
    ModelProvider,
    ModelRequest,
    OfferedModels,
    ProviderModel,
    SharedProvider,
)
from chat.providers import limits, model_requests
from chat.providers.choosing import embedding_spec_for, provider_for
from chat.providers.errors import ProviderModelWithheld
from chat.providers.standing_in import find_stand_in
from chat.sampling import model_for
from chat.services.buds import update_bud
from chat.services.models import choose_model, find_compared, models_of
from chat.services.parts_of_shared import MOST_CHOSEN, PartDraft, change_part
from chat.services.provider_check import choose_embedding_model
from chat.services.providers import ProviderDraft, change_provider
from chat.services.removed_model_uses import RemovedModelUses, would_be_taken, would_be_taken_from
from chat.services.shared_providers import (
    change_shared_provider,
    delete_shared_provider,
    give_provider,
    withdraw_provider,
)
from chat.values import TurnStatus
from config.workspace_files import WorkspaceTarget, apply_file, write_workspace
from mcp_servers.models import InputRequest, McpServer
from tests.chat.conftest import Chat
from tests.chat.providers.sharing import changes_in, draft, row_of, share
from tests.chat.providers.usage import ask, make_bud
from tests.chat.providers.workspace_side import api, edit_page, filled
from tests.factories import Tenant, TwoTenants, signed_in
from workspaces.actors import Actor
from workspaces.errors import InvalidInput, NotFound, PermissionDenied
from workspaces.models import User
from workspaces.yaml_text import read_yaml

NOBODY = RemovedModelUses(models=(), workspaces=0, buds=0, chats=0, searches=0)


@pytest.fixture
def root(superuser: User) -> Client:
    return signed_in(superuser)


def chosen(*names: str, **changes: Any) -> Any:
    """A draft that offers these models."""
    return draft(offer=OfferedModels.CHOSEN.value, chosen_models=names, **changes)


def know(tenant: Tenant, *names: str) -> None:
    """Rows of models, as an admin keeps them or a chat chooses them."""
    for name in names:
        ProviderModel.objects.create(
            workspace=tenant.workspace, provider=row_of(tenant), model=name
        )


def offered_in(tenant: Tenant) -> list[str]:
    row = row_of(tenant)
    return [one.name for one in models_of(tenant.workspace.pk) if one.provider_id == row.pk]


def bud_with(tenant: Tenant, name: str, model: str = "") -> Bud:
    bud = make_bud(tenant, name)
    bud.provider, bud.model = row_of(tenant), model
    bud.save()
    return bud


@pytest.mark.django_db
@pytest.mark.both_engines
def test_a_workspace_sees_only_the_models_that_the_owner_offers(
    two_workspaces: TwoTenants, owner: Actor
) -> None:
    """SEC-490: all, the default one or chosen ones; other ones for a workspace by its name."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a, b)
    for tenant in (a, b):
        know(tenant, "big", "small")
    assert offered_in(a) == ["big", "m", "small"]
    default = draft(offer=OfferedModels.DEFAULT.value)
    shared = change_shared_provider(shared=shared, draft=default, actor=owner)
    assert (offered_in(a), offered_in(b)) == (["m"], ["m"])
    only_small = PartDraft(has_own_offer=True, offered_models=["small"])
    change_part(shared=shared, workspace=b.workspace, draft=only_small, actor=owner)
    shared = change_shared_provider(shared=shared, draft=chosen("m", "big"), actor=owner)
    assert (offered_in(a), offered_in(b)) == (["big", "m"], ["small"])
    everything = PartDraft(has_own_offer=True)
    change_part(shared=shared, workspace=b.workspace, draft=everything, actor=owner)
    assert offered_in(b) == ["big", "m", "small"]
    change_part(shared=shared, workspace=b.workspace, draft=PartDraft(), actor=owner)
    assert offered_in(b) == ["big", "m"]
    change_shared_provider(shared=shared, draft=draft(), actor=owner)
    assert offered_in(a) == ["big", "m", "small"]


@pytest.mark.django_db
def test_what_is_given_later_follows_the_offer(two_workspaces: TwoTenants, owner: Actor) -> None:
    """SEC-490: to workspaces that had none, and to those from which it was withdrawn meanwhile."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a)
    bud_with(a, "Notes")
    withdraw_provider(shared=shared, workspace=a.workspace, actor=owner)
    shared.refresh_from_db()
    shared = change_shared_provider(shared=shared, draft=chosen("m"), actor=owner)
    for tenant in (a, b):
        give_provider(shared=shared, workspace=tenant.workspace, actor=owner)
        assert row_of(tenant).offered_models == ["m"]


@pytest.mark.django_db
def test_no_road_leads_to_a_model_that_is_not_offered(tenant: Tenant, owner: Actor) -> None:
    """SEC-491: chats, comparisons, buds, stand-ins, embeddings, servers' questions, admin, REST and the file."""
    shared = share(owner, tenant)
    know(tenant, "m", "secret-one")
    secret, plain = bud_with(tenant, "Secret", "secret-one"), bud_with(tenant, "Plain")
    row, admin = row_of(tenant), tenant.actor("admin")
    ModelProvider.objects.for_workspace(tenant.workspace).update(embedding_model="secret-one")
    change_shared_provider(shared=shared, draft=chosen("m"), actor=owner)
    secret.refresh_from_db()
    with pytest.raises(ProviderModelWithheld, match="Choose another model, or ask them"):
        provider_for(secret)
    for refused, field in (
        (lambda: choose_model(bud=plain, provider_id=row.pk, name="secret-one"), "model"),
        (
            lambda: find_compared(bud=plain, names=[(row.pk, "m"), (row.pk, "secret-one")]),
            "compare",
        ),
        (lambda: update_bud(bud=plain, actor=admin, values={"model": "secret-one"}), "model"),
        (
            lambda: change_provider(
                provider=row_of(tenant),
                draft=ProviderDraft(
                    name="Shared",
                    base_url="",
                    default_model="secret-one",
                    embedding_model="secret-one",
                ),
                actor=admin,
            ),
            "default_model",
        ),
    ):
        with pytest.raises(InvalidInput) as fault:
            refused()
        assert list(fault.value.fields) == [field]
    plain.refresh_from_db()
    assert embedding_spec_for(plain) is None
    trial = choose_embedding_model(provider=row_of(tenant), model="secret-one", actor=admin)
    assert "no longer lets this workspace use" in trial.fault
    behind = ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="Own",
        base_url="https://own.example.org/v1",
        default_model="own",
        fallback=row,
    )
    Bud.objects.for_workspace(tenant.workspace).filter(pk=plain.pk).update(provider=behind)
    plain.refresh_from_db()
    found = find_stand_in(tenant.workspace.pk, provider_for(plain), "It failed.")
    assert found is not None
    assert found.spec.model == "m"
    change_part(
        shared=shared,
        workspace=tenant.workspace,
        draft=PartDraft(has_own_offer=True, offered_models=["other"]),
        actor=owner,
    )
    assert find_stand_in(tenant.workspace.pk, provider_for(plain), "It failed.") is None
    client = tenant.client("admin")
    for page in (
        reverse("admin:chat_providermodel_changelist"),
        edit_page(row),
        f"/w/{tenant.workspace.slug}/buds/new/",
        "/api/models/",
    ):
        answer = client.get(page, headers={"X-Workspace": tenant.workspace.slug})
        text = answer.content.decode().replace('value="secret-one"', "")
        assert (answer.status_code, "secret-one" in text) == (200, False), page
    edited = client.post(edit_page(row), filled(row, default_model="secret-one"))
    assert "no longer lets this workspace use" in edited.content.decode()
    added = client.post(
        reverse("admin:chat_providermodel_add"), {"provider": str(row.pk), "model": "secret-one"}
    )
    assert "no longer lets this workspace use" in added.content.decode()
    changed = api(tenant, "PATCH", f"{row.pk}/", default_model="secret-one")
    assert (changed.status_code, changed.json()["errors"][0]["attr"]) == (422, "default_model")
    assert api(tenant, "GET", f"{row.pk}/").json()["offered_models"] == ["other"]
    assert "secret-one:" not in write_workspace(
        WorkspaceTarget(tenant.workspace, tenant.actor("owner"))
    )


@pytest.mark.django_db
def test_a_server_asks_no_model_that_is_not_offered(tenant: Tenant, owner: Actor) -> None:
    """SEC-491: whichever model its settings name."""
    shared = share(owner, tenant)
    server = McpServer.objects.create(
        workspace=tenant.workspace,
        name="asks",
        url="https://asks.example.org/mcp",
        sampling_provider_id=row_of(tenant).pk,
        sampling_model="big",
    )
    question = InputRequest(workspace_id=tenant.workspace.pk, server_id=server.pk)
    assert model_for(question) == "big"
    change_shared_provider(shared=shared, draft=chosen("m"), actor=owner)
    assert model_for(question) == ""


@pytest.mark.both_engines
def test_a_model_that_is_taken_away_says_so_and_nothing_is_changed(
    chat: Chat, shared: SharedProvider, owner: Actor
) -> None:
    """REL-1030: in the answer's error, in the bud's editor and on the provider's page; given back, it answers again."""
    know(chat.tenant, "big")
    Bud.objects.for_workspace(chat.tenant.workspace).update(model="big")
    at_model = {"base_url": chat.model.base_url}
    row = change_shared_provider(shared=shared, draft=chosen("m", **at_model), actor=owner)
    turn = chat.ask()
    assert turn.error_code == "provider_model_withheld"
    assert turn.error_message == (
        "Whoever runs Trellis no longer lets this workspace use “big” of “Shared”. Choose another model, or ask them."
    )
    assert Bud.objects.for_workspace(chat.tenant.workspace).get(pk=chat.bud.pk).model == "big"
    client = chat.tenant.client("admin")
    slug = chat.tenant.workspace.slug
    editor = client.get(f"/w/{slug}/buds/{chat.bud.pk}/").content.decode()
    assert "no longer lets this workspace use “big”" in editor
    update_bud(bud=chat.bud, actor=chat.tenant.actor("admin"), values={"description": "Kept."})
    change_shared_provider(shared=row, draft=draft(**at_model), actor=owner)
    chat.watching.forget()
    chat.model.say("Back again.")
    assert chat.ask("again").status == TurnStatus.COMPLETED


@pytest.mark.django_db
def test_an_admin_reads_that_the_default_model_was_taken_away(tenant: Tenant, owner: Actor) -> None:
    """REL-1030: with what that stops and what to do; another default one is theirs to choose."""
    shared = share(owner, tenant)
    own = PartDraft(has_own_offer=True, offered_models=["small"])
    change_part(shared=shared, workspace=tenant.workspace, draft=own, actor=owner)
    row = row_of(tenant)
    page = reverse("chat:provider", args=[tenant.workspace.slug, row.pk])
    html = tenant.client("admin").get(page).content.decode()
    assert "use the default model “m”" in html
    assert "They let this workspace use: small" in html
    assert row.default_model == "m"
    changed = api(tenant, "PATCH", f"{row.pk}/", default_model="small")
    assert changed.status_code == 200
    assert "use the default model" not in tenant.client("admin").get(page).content.decode()


def test_only_offered_models_are_listed_and_kept(
    chat: Chat, shared: SharedProvider, owner: Actor
) -> None:
    """SEC-490: a test tells of no others, and none of them is kept."""
    chat.model.models = {"data": [{"id": "big"}, {"id": "m"}]}
    at_model = {"base_url": chat.model.base_url}
    change_shared_provider(shared=shared, draft=chosen("m", **at_model), actor=owner)
    checked = api(chat.tenant, "POST", f"{row_of(chat.tenant).pk}/check/")
    assert [one["name"] for one in checked.json()["models"]] == ["m"]
    kept = api(chat.tenant, "POST", f"{row_of(chat.tenant).pk}/check/", keep=["big"])
    assert kept.status_code == 422


@pytest.mark.django_db
def test_wrong_choices_are_told_at_their_field(tenant: Tenant, owner: Actor) -> None:
    """REL-1031: no model, too many, no name, and chosen ones without the default one."""
    shared = share(owner, tenant)
    for names in (
        (),
        (" ",),
        ("big",),
        ("m", "x" * 201),
        ("m", "a\x07b"),
        ("m", *map(str, range(MOST_CHOSEN))),
    ):
        with pytest.raises(InvalidInput) as refused:
            change_shared_provider(shared=shared, draft=chosen(*names), actor=owner)
        assert list(refused.value.fields) == ["chosen_models"]
    for wrong, field in (
        (PartDraft(has_own_offer=True, offered_models=[]), "chosen_models"),
        (PartDraft(most_at_once=0), "most_at_once"),
        (PartDraft(most_a_minute=100_001), "most_a_minute"),
    ):
        with pytest.raises(InvalidInput) as refused:
            change_part(shared=shared, workspace=tenant.workspace, draft=wrong, actor=owner)
        assert list(refused.value.fields) == [field]
    assert (row_of(tenant).offered_models, row_of(tenant).most_at_once) == (None, None)


@pytest.mark.django_db
def test_only_the_platforms_owner_says_what_a_workspace_may_have(
    two_workspaces: TwoTenants, owner: Actor
) -> None:
    """SEC-492: no role of a workspace does, nor sees the page; a workspace without the provider has none."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a)
    page = reverse("chat:shared_provider_part", args=[shared.pk, a.workspace.pk])
    for role in ("owner", "admin", "auditor", "member"):
        with pytest.raises(PermissionDenied):
            change_part(
                shared=shared, workspace=a.workspace, draft=PartDraft(), actor=a.actor(role)
            )
        with pytest.raises(PermissionDenied):
            would_be_taken(shared=shared, draft=draft(), actor=a.actor(role))
        assert a.client(role).get(page).status_code == 404
        assert a.client(role).post(page, {"most_at_once": "5"}).status_code == 404
    with pytest.raises(NotFound):
        change_part(shared=shared, workspace=b.workspace, draft=PartDraft(), actor=owner)
    assert row_of(a).most_at_once is None


@pytest.mark.django_db
@pytest.mark.both_engines
def test_the_owner_learns_what_would_get_no_answers(
    two_workspaces: TwoTenants, owner: Actor, django_assert_max_num_queries: Any
) -> None:
    """REL-1031: buds and chats of each workspace that use a model now and could not then, also by a default one."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a, b)
    for tenant in (a, b):
        know(tenant, "big")
        plain, big = bud_with(tenant, "Plain"), bud_with(tenant, "Big", "big")
        ask(tenant, plain, tenant.member, "member")
        ask(tenant, big, tenant.member, "member")
    picked = ProviderModel.objects.for_workspace(a.workspace).get(model="big")
    chats = Conversation.objects.for_workspace(a.workspace)
    chats.filter(pk=chats.get(bud__name="Plain").pk).update(chosen_model=picked)

    def taken(**changes: Any) -> RemovedModelUses:
        return would_be_taken(shared=shared, draft=draft(**changes), actor=owner)

    assert taken() == NOBODY
    both = RemovedModelUses(models=("big",), workspaces=2, buds=2, chats=3, searches=0)
    with django_assert_max_num_queries(6):
        assert taken(offer=OfferedModels.DEFAULT.value) == both
    assert taken(offer=OfferedModels.CHOSEN.value, chosen_models=["m", "big"]) == NOBODY
    assert taken(offer=OfferedModels.DEFAULT.value, default_model="big").models == ()
    own = PartDraft(has_own_offer=True, offered_models=["big"])
    found = would_be_taken_from(shared=shared, workspace=b.workspace, draft=own, actor=owner)
    assert found == RemovedModelUses(models=("m",), workspaces=1, buds=1, chats=1, searches=0)
    change_part(shared=shared, workspace=b.workspace, draft=own, actor=owner)
    assert taken(offer=OfferedModels.DEFAULT.value).workspaces == 1
    ModelProvider.objects.for_workspace(a.workspace).update(embedding_model="find")
    assert taken(offer=OfferedModels.CHOSEN.value, chosen_models=["m", "big"]).searches == 1


@pytest.mark.django_db
def test_the_form_asks_before_it_takes_models_away(
    tenant: Tenant, owner: Actor, root: Client
) -> None:
    """REL-1031: with the numbers and names; only with a yes it saves, for all workspaces and for one."""
    shared = share(owner, tenant)
    bud_with(tenant, "Big", "big")
    given = {
        "name": "Shared",
        "base_url": shared.base_url,
        "default_model": "m",
        "offer": "default",
        "chosen_models": "",
    }
    edit = reverse("chat:shared_provider_edit", args=[shared.pk])
    asked = root.post(edit, given)
    error = str(asked.context["form"].errors["takes_away"])
    assert asked.status_code == 422
    assert "Models that you take away are used by 1 bud of 1 workspace: big." in error
    assert row_of(tenant).offered_models is None
    assert root.post(edit, {**given, "takes_away": "on"}).status_code == 302
    assert row_of(tenant).offered_models == ["m"]
    part = reverse("chat:shared_provider_part", args=[shared.pk, tenant.workspace.pk])
    assert root.get(part).context["form"].initial["own_models"] == ""
    own = {"own_models": "chosen", "chosen_models": "big\n\n m ", "most_a_minute": "7"}
    assert root.post(part, own).status_code == 302
    row = row_of(tenant)
    assert (row.offered_models, row.has_own_offer, row.most_a_minute) == (["big", "m"], True, 7)
    asked = root.post(part, {**own, "chosen_models": "m"})
    assert "takes_away" in asked.context["form"].errors
    assert row_of(tenant).offered_models == ["big", "m"]
    faulty = root.post(part, {**own, "chosen_models": "", "most_a_minute": "0"})
    assert (faulty.status_code, list(faulty.context["form"].errors)) == (422, ["most_a_minute"])
    page = root.get(reverse("chat:shared_provider", args=[shared.pk])).content.decode()
    assert "0 of 7 a minute" in page
    assert "Workspaces may use its default model only." in page


@pytest.mark.django_db
@pytest.mark.both_engines
def test_a_workspace_at_its_part_waits_and_keeps_nobody_else_waiting(
    two_workspaces: TwoTenants, owner: Actor
) -> None:
    """REL-1032: its own requests wait for its own limit; those of others go on within the limit of all together."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a, b, most_at_once=2)
    part = PartDraft(most_at_once=1)
    change_part(shared=shared, workspace=a.workspace, draft=part, actor=owner)
    bounds = {}
    for tenant in (a, b):
        bounds[tenant] = provider_for(bud_with(tenant, "Notes")).limits
    of_a, of_b = bounds[a], bounds[b]
    assert of_a is not None
    assert of_b is not None
    first, second, third, other = uuid7(), uuid7(), uuid7(), uuid7()
    assert limits.ask_for_place(of_a, first).has_started
    place = limits.ask_for_place(of_a, second)
    assert place.reason == "“Shared” takes at most 1 request at once from this workspace."
    assert limits.ask_for_place(of_a, third).ahead == 1
    assert limits.ask_for_place(of_b, other).has_started
    assert not limits.has_room(provider_for(bud_with(a, "More")))
    late = uuid7()
    assert limits.ask_for_place(of_b, late).reason == "“Shared” takes at most 2 requests at once."
    limits.give_back(of_a, first)
    assert not limits.ask_for_place(of_a, third).has_started
    assert limits.ask_for_place(of_a, second).has_started


@pytest.mark.django_db
@pytest.mark.both_engines
def test_work_that_nobody_waits_for_goes_on_beside_a_workspace_at_its_part(
    two_workspaces: TwoTenants, owner: Actor
) -> None:
    """REL-1032: only that workspace's own work has to wait."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a, b, most_at_once=10)
    part = PartDraft(most_at_once=1)
    change_part(shared=shared, workspace=a.workspace, draft=part, actor=owner)
    of_a, of_b = (provider_for(bud_with(tenant, "Notes")) for tenant in (a, b))
    assert of_a.limits is not None
    assert limits.has_room(of_a)
    for _ in range(2):
        limits.ask_for_place(of_a.limits, uuid7())
    assert (limits.has_room(of_a), limits.has_room(of_b)) == (False, True)


@pytest.mark.django_db
@pytest.mark.both_engines
def test_a_part_holds_where_all_together_have_no_limit(
    two_workspaces: TwoTenants, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1032: and a line of one workspace has an end of its own."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a, b)
    part = PartDraft(most_a_minute=1)
    change_part(shared=shared, workspace=a.workspace, draft=part, actor=owner)
    of_a = provider_for(bud_with(a, "Notes")).limits
    assert of_a is not None
    assert limits.ask_for_place(of_a, uuid7()).has_started
    place = limits.ask_for_place(of_a, uuid7())
    assert place.reason == "“Shared” takes at most 1 request a minute from this workspace."
    assert provider_for(bud_with(b, "Notes")).limits is None
    page = reverse("chat:provider", args=[a.workspace.slug, row_of(a).pk])
    html = a.client("admin").get(page).content.decode()
    assert "At most 1 a minute." in html
    assert "Now: 1 running, 1 waiting, 1 in the last minute." in html


def test_a_person_reads_that_the_part_is_used_up(
    chat: Chat, shared: SharedProvider, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1032: as a kind of error of its own, with whose limit it is."""
    monkeypatch.setattr(model_requests, "LONGEST_WAIT_SECONDS", 0.1)
    change_part(
        shared=shared,
        workspace=chat.tenant.workspace,
        draft=PartDraft(most_at_once=1),
        actor=owner,
    )
    bounds = limits_of_chat(chat)
    limits.ask_for_place(bounds, uuid7())
    turn = chat.ask()
    assert turn.error_code == "provider_busy"
    assert "takes at most 1 request at once from this workspace" in turn.error_message


def limits_of_chat(chat: Chat) -> Any:
    rows = Bud.objects.for_workspace(chat.tenant.workspace).select_related("provider")
    found = provider_for(rows.get(pk=chat.bud.pk)).limits
    assert found is not None
    return found


@pytest.mark.django_db
def test_the_log_of_a_workspace_tells_what_it_may_have(
    two_workspaces: TwoTenants, owner: Actor
) -> None:
    """REL-1033: its own models and limits, and that it follows the shared provider; other logs tell nothing of it."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a, b)
    part = PartDraft(has_own_offer=True, offered_models=["small"], most_at_once=3)
    change_part(shared=shared, workspace=a.workspace, draft=part, actor=owner)
    assert changes_in(a.workspace)[-1][2] == {
        "has_own_offer": True,
        "offered_models": ["small"],
        "most_at_once": 3,
    }
    change_shared_provider(shared=shared, draft=chosen("m"), actor=owner)
    assert changes_in(b.workspace)[-1][2] == {"offered_models": ["m"]}
    assert len(changes_in(a.workspace)) == 2
    assert changes_in(None)[-1][2] == {"offer": "chosen", "chosen_models": ["m"]}


@pytest.mark.django_db
def test_a_deleted_provider_takes_its_limits_with_it(tenant: Tenant, owner: Actor) -> None:
    """REL-1033: what is left to the workspace is the workspace's own."""
    shared = share(owner, tenant)
    bud_with(tenant, "Notes")
    part = PartDraft(has_own_offer=True, offered_models=["small"], most_at_once=3)
    change_part(shared=shared, workspace=tenant.workspace, draft=part, actor=owner)
    delete_shared_provider(shared=shared, actor=owner)
    left = ModelProvider.objects.for_workspace(tenant.workspace).get()
    assert (left.offered_models, left.has_own_offer, left.most_at_once) == (None, False, None)
    assert not ModelRequest.objects.for_workspace(tenant.workspace).exists()


@pytest.mark.django_db
def test_the_file_of_a_workspace_says_nothing_of_its_part(tenant: Tenant, owner: Actor) -> None:
    """REL-1033: a file without limits is applied where the platform's owner has set some, and leaves them."""
    shared = share(owner, tenant)
    part = PartDraft(most_at_once=3)
    change_part(shared=shared, workspace=tenant.workspace, draft=part, actor=owner)
    place = WorkspaceTarget(tenant.workspace, tenant.actor("owner"))
    text = write_workspace(place)
    assert "most_at_once: 3" not in text
    apply_file(place, read_yaml(text.replace("default_model: m", "default_model: n")))
    assert (row_of(tenant).default_model, row_of(tenant).most_at_once) == ("n", 3)
