"""Model providers that the platform's owner shares: workspaces use them, and never see their address or key."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import override_settings
from uuid_utils.compat import uuid7

from audit.models import AuditEntry, Notice
from chat.models import (
    Bud,
    Conversation,
    ModelProvider,
    ModelRequest,
    ProviderModel,
    SharedProvider,
    WithheldReason,
)
from chat.providers.choosing import provider_for
from chat.providers.errors import ProviderKeyUntested, ProviderSwitchedOff
from chat.providers.key_changes import with_changed_key
from chat.providers.limits import LEASE, ask_for_place, shared_load
from chat.services.models import models_of
from chat.services.platform_provider import usage_by_workspace
from chat.services.provider_check import rotate_key, try_draft
from chat.services.providers import ProviderDraft, change_provider
from chat.services.shared_providers import (
    change_shared_provider,
    delete_shared_provider,
    give_provider,
    share_provider,
    switch_shared_provider,
    withdraw_provider,
)
from chat.services.shared_uses import list_shared, uses_of
from chat.values import TurnStatus
from config.env import EncryptionKey
from tests.chat.conftest import Chat
from tests.chat.database_dump import dump
from tests.chat.providers.sharing import (
    ADDRESS,
    KEY,
    NEW_KEY,
    changes_in,
    draft,
    row_of,
    share,
    stored_key,
)
from tests.chat.providers.usage import ask, make_bud
from tests.factories import Tenant, TwoTenants
from tests.fakes.scripted_model import DONE, Answer, ScriptedModel, chunk, usage
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.models import User
from workspaces.people.services import create_workspace
from workspaces.secrets import count_by_key, find_unreadable


@pytest.mark.both_engines
def test_a_bud_of_a_workspace_answers_with_what_is_shared(
    chat: Chat, shared: SharedProvider
) -> None:
    """REL-930: also on a private network that no workspace may reach, as the platform's owner chose it."""
    closed = settings.TRELLIS.model_copy(update={"allowed_networks": ()})
    with override_settings(TRELLIS=closed):
        chat.model.say("From the shared one.")
        assert chat.ask().status == TurnStatus.COMPLETED
    assert chat.answer() == "From the shared one."
    assert set(chat.model.keys_sent) == {KEY}
    row = row_of(chat.tenant)
    assert (row.base_url, row.api_key) == ("", None)


@pytest.mark.django_db
def test_what_nobody_sees_is_no_part_of_its_name(tenant: Tenant, owner: Actor) -> None:
    """REL-3321: a bud's editor and the log name it to people of all workspaces."""
    shared = share(owner, tenant, name="Ga\u202erden\u200b")
    assert (shared.name, row_of(tenant).name) == ("Garden", "Garden")
    with pytest.raises(InvalidInput) as refused:
        share(owner, name="\u200b")
    assert list(refused.value.fields) == ["name"]


@pytest.mark.django_db
def test_address_and_key_are_in_the_platforms_row_alone(tenant: Tenant, owner: Actor) -> None:
    """SEC-455: the database itself refuses a copy in a workspace's row."""
    share(owner, tenant)
    row = row_of(tenant)
    for changed in ({"base_url": ADDRESS}, {"api_key": KEY}):
        for name, value in changed.items():
            setattr(row, name, value)
        with pytest.raises(IntegrityError), transaction.atomic():
            row.save()
        row.refresh_from_db()


def test_the_key_is_written_nowhere(chat: Chat, shared: SharedProvider) -> None:
    """SEC-455: also where the model says it piece by piece, or a refusal repeats it."""
    half = len(KEY) // 2
    pieces = [chunk({"content": part}) for part in ("Your key: ", KEY[:half], KEY[half:], ".")]
    chat.model.give(Answer([*pieces, chunk({}, "stop"), usage(), DONE]))
    assert chat.ask().status == TurnStatus.COMPLETED
    chat.watching.forget()
    chat.model.fail(401, json.dumps({"error": {"message": f"Incorrect API key: {KEY}"}}).encode())
    error = chat.ask("again").error_message + str(chat.snapshot())
    written = " ".join(text for _table, text in dump())
    assert "Your key: " in written
    assert KEY not in error + written
    assert stored_key(shared) == KEY


@pytest.mark.django_db
def test_only_the_platforms_owner_shares(two_workspaces: TwoTenants, owner: Actor) -> None:
    """SEC-456: no role of a workspace adds, changes, gives, switches, withdraws or deletes one."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a)
    for role in ("owner", "admin", "auditor", "member"):
        actor = a.actor(role)
        for attempt in (
            lambda who: share_provider(draft=draft(name="Other"), actor=who),
            lambda who: change_shared_provider(shared=shared, draft=draft(), actor=who),
            lambda who: switch_shared_provider(shared=shared, is_active=False, actor=who),
            lambda who: give_provider(shared=shared, workspace=b.workspace, actor=who),
            lambda who: withdraw_provider(shared=shared, workspace=a.workspace, actor=who),
            lambda who: delete_shared_provider(shared=shared, actor=who),
            lambda who: list_shared(actor=who),
            lambda who: usage_by_workspace(actor=who, shared=shared),
        ):
            with pytest.raises(PermissionDenied):
                attempt(actor)
    assert [row.name for row in SharedProvider.objects.all()] == ["Shared"]
    assert not ModelProvider.objects.for_workspace(b.workspace).exists()


@pytest.mark.django_db
def test_no_admin_of_a_workspace_changes_or_sends_elsewhere_what_is_shared(
    tenant: Tenant, owner: Actor, model: ScriptedModel
) -> None:
    """SEC-456: neither address, key, name nor limits, and no test with another address gets the key."""
    share(owner, tenant)
    row, admin = row_of(tenant), tenant.actor("admin")
    kept: dict[str, Any] = {"name": "Shared", "base_url": "", "default_model": "m"}
    for field, value in (
        ("name", "Mine"),
        ("base_url", model.base_url),
        ("api_key", "sk-mine-canary-0123456789"),
        ("most_at_once", 3),
        ("most_a_minute", 3),
    ):
        with pytest.raises(InvalidInput) as refused:
            wanted = ProviderDraft(**{**kept, field: value})
            change_provider(provider=row, draft=wanted, actor=admin)
        assert list(refused.value.fields) == [field]
    with pytest.raises(InvalidInput):
        rotate_key(provider=row, new_key=NEW_KEY, actor=admin)
    with pytest.raises(InvalidInput):
        elsewhere = ProviderDraft(**{**kept, "base_url": model.base_url, "api_key": NEW_KEY})
        try_draft(provider=row, draft=elsewhere, actor=admin)
    assert model.requests == []
    mine = ProviderDraft(**{**kept, "default_model": "small", "is_active": False})
    change_provider(provider=row, draft=mine, actor=admin)
    row.refresh_from_db()
    assert (row.default_model, row.is_active, row.name) == ("small", False, "Shared")


@pytest.mark.django_db(transaction=True)
def test_a_key_is_tested_before_it_is_kept(model: ScriptedModel, owner: Actor) -> None:
    """REL-931: a refused key is a fault at its field; without an answer it is kept only on request."""
    model.keys = {KEY}
    at_model = {"base_url": model.base_url}
    with pytest.raises(InvalidInput) as refused:
        share_provider(draft=draft(api_key="sk-wrong-canary-012345", **at_model), actor=owner)
    assert list(refused.value.fields) == ["api_key"]
    assert not SharedProvider.objects.exists()
    model.say("Yes.")
    shared = share_provider(draft=draft(api_key=KEY, **at_model), actor=owner)
    assert stored_key(shared) == KEY
    with pytest.raises(InvalidInput, match="stored already"):
        change_shared_provider(shared=shared, draft=draft(api_key=KEY, **at_model), actor=owner)
    with pytest.raises(InvalidInput):
        change_shared_provider(shared=shared, draft=draft(api_key=NEW_KEY, **at_model), actor=owner)
    model.stop()
    with pytest.raises(ProviderKeyUntested):
        change_shared_provider(shared=shared, draft=draft(api_key=NEW_KEY, **at_model), actor=owner)
    assert stored_key(shared) == KEY
    untested = draft(api_key=NEW_KEY, **at_model)
    change_shared_provider(shared=shared, draft=untested, actor=owner, is_tested=False)
    assert stored_key(shared) == NEW_KEY


@pytest.mark.django_db
def test_a_key_goes_to_no_other_address(owner: Actor) -> None:
    """SEC-455: an address of another origin comes without the stored key; a bad one is told at its field."""
    shared = share(owner)
    for bad in ("ftp://a.example.org", "https://user:pw@a.example.org/v1", "nothing"):
        with pytest.raises(InvalidInput) as refused:
            change_shared_provider(shared=shared, draft=draft(base_url=bad), actor=owner)
        assert list(refused.value.fields) == ["base_url"]
    same = draft(base_url=f"{ADDRESS}/more")
    shared = change_shared_provider(shared=shared, draft=same, actor=owner)
    assert stored_key(shared) == KEY
    other = draft(base_url="https://other.example.org/v1")
    shared = change_shared_provider(shared=shared, draft=other, actor=owner)
    assert stored_key(shared) == ""


@pytest.mark.both_engines
def test_a_question_that_waited_while_the_shared_key_changed_takes_the_new_one(
    chat: Chat, shared: SharedProvider, owner: Actor
) -> None:
    """REL-932: keys change without a pause, as those of a workspace do."""
    chat.model.keys = {KEY, NEW_KEY}
    chat.model.say("Yes.")
    wanted = draft(base_url=chat.model.base_url, api_key=NEW_KEY)
    asked = provider_for(Bud.objects.for_workspace(chat.tenant.workspace).get(pk=chat.bud.pk))
    change_shared_provider(shared=shared, draft=wanted, actor=owner)
    chat.model.keys = {NEW_KEY}
    changed = with_changed_key(asked)
    assert changed is not None
    assert changed.api_key is not None
    assert changed.api_key.reveal("test") == NEW_KEY
    chat.model.say("With the new key.")
    assert chat.ask().status == TurnStatus.COMPLETED
    assert set(chat.model.keys_sent[-1:]) == {NEW_KEY}
    withdraw_provider(shared=shared, workspace=chat.tenant.workspace, actor=owner)
    assert with_changed_key(asked) is None


@pytest.mark.both_engines
def test_a_refused_key_is_told_to_the_platforms_owner(
    chat: Chat, shared: SharedProvider, superuser: User
) -> None:
    """REL-932: people read whose key it is; no admin of the workspace is sent to a page that they may not open."""
    chat.model.keys = set()
    turn = chat.ask()
    assert turn.error_code == "provider_key_refused"
    assert "“Shared” is shared by whoever runs Trellis" in turn.error_message
    notices = Notice.objects.for_workspace(chat.tenant.workspace)
    recipients = list(notices.values_list("user__email", "url"))
    assert recipients == [(superuser.email, f"/platform/providers/{shared.pk}/edit/#id_api_key")]


@pytest.mark.both_engines
def test_what_is_switched_off_or_withdrawn_stops_answering_and_destroys_nothing(
    chat: Chat, shared: SharedProvider, owner: Actor
) -> None:
    """REL-933: buds and chats stay, people read why, and all works again once it is given back."""
    workspace = chat.tenant.workspace
    uses = uses_of(shared)
    assert (uses.workspaces, uses.buds, uses.chats) == (1, 1, 1)
    switch_shared_provider(shared=shared, is_active=False, actor=owner)
    turn = chat.ask()
    assert (turn.error_code, "they have switched it off" in turn.error_message) == (
        "provider_switched_off",
        True,
    )
    assert all(one.provider_name != "Shared" for one in models_of(workspace.pk))
    withdraw_provider(shared=shared, workspace=workspace, actor=owner)
    switch_shared_provider(shared=shared, is_active=True, actor=owner)
    chat.watching.forget()
    assert "no longer shared with this workspace" in chat.ask("again").error_message
    assert uses_of(shared).workspaces == 0
    give_provider(shared=shared, workspace=workspace, actor=owner)
    assert any(one.provider_name == "Shared" for one in models_of(workspace.pk))
    chat.watching.forget()
    chat.model.say("Back again.")
    assert chat.ask("and again").status == TurnStatus.COMPLETED
    assert Bud.objects.for_workspace(workspace).get(pk=chat.bud.pk).provider == row_of(chat.tenant)


@pytest.mark.django_db
def test_what_a_workspace_switched_off_stays_off(tenant: Tenant, owner: Actor) -> None:
    """REL-933: also after the platform's owner has switched it off and on again."""
    shared = share(owner, tenant)
    off = ProviderDraft(name="Shared", base_url="", default_model="m", is_active=False)
    change_provider(provider=row_of(tenant), draft=off, actor=tenant.actor("admin"))
    switch_shared_provider(shared=shared, is_active=False, actor=owner)
    switch_shared_provider(shared=shared, is_active=True, actor=owner)
    row = row_of(tenant)
    assert (row.is_active, row.withheld, row.answers) == (False, WithheldReason.NO, False)


@pytest.mark.django_db
def test_a_provider_that_nothing_uses_leaves_no_row(tenant: Tenant, owner: Actor) -> None:
    """REL-934: while one that a bud, a chat or a server's setting uses stays for it."""
    shared = share(owner, tenant)
    withdraw_provider(shared=shared, workspace=tenant.workspace, actor=owner)
    assert not ModelProvider.objects.for_workspace(tenant.workspace).exists()
    give_provider(shared=shared, workspace=tenant.workspace, actor=owner)
    bud = make_bud(tenant, "Notes")
    ask(tenant, bud, tenant.member, "member")
    chosen = ProviderModel.objects.create(
        workspace=tenant.workspace, provider=row_of(tenant), model="m"
    )
    Conversation.objects.for_workspace(tenant.workspace).update(chosen_model=chosen)
    withdraw_provider(shared=shared, workspace=tenant.workspace, actor=owner)
    assert row_of(tenant).withheld == WithheldReason.WITHDRAWN


@pytest.mark.django_db
def test_a_deleted_provider_leaves_used_ones_to_their_workspaces(
    two_workspaces: TwoTenants, owner: Actor
) -> None:
    """REL-934: switched off, without address and key; an admin may enter their own, and the buds go on."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a, b)
    bud = make_bud(a, "Notes")
    bud.provider = row_of(a)
    bud.save()
    delete_shared_provider(shared=shared, actor=owner)
    assert not SharedProvider.objects.exists()
    assert not ModelProvider.objects.for_workspace(b.workspace).exists()
    left = ModelProvider.objects.for_workspace(a.workspace).get()
    assert (left.shared_id, left.is_active, left.base_url, left.api_key) == (None, False, "", None)
    bud.refresh_from_db()
    with pytest.raises(ProviderSwitchedOff):
        provider_for(bud)
    own = ProviderDraft(name="Shared", base_url="https://own.example.org/v1", default_model="m")
    change_provider(provider=left, draft=own, actor=a.actor("admin"))
    bud.refresh_from_db()
    assert provider_for(bud).base_url == "https://own.example.org/v1"
    assert not provider_for(bud).is_platforms
    with pytest.raises(NotFound):
        switch_shared_provider(shared=shared, is_active=True, actor=owner)


@pytest.mark.django_db
@pytest.mark.both_engines
def test_one_for_every_workspace_is_given_to_later_ones_too(
    two_workspaces: TwoTenants, owner: Actor, superuser: User
) -> None:
    """REL-935: also to those from which it was withdrawn; then it is withdrawn from none of them alone."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a)
    withdraw_provider(shared=shared, workspace=a.workspace, actor=owner)
    shared.refresh_from_db()
    shared = change_shared_provider(shared=shared, draft=draft(is_for_all=True), actor=owner)
    later = create_workspace(name="Later", slug="later", owner=superuser, actor=owner)
    for workspace in (a.workspace, b.workspace, later):
        row = ModelProvider.objects.for_workspace(workspace).get()
        assert (row.shared_id, row.answers, row.name) == (shared.pk, True, "Shared")
    with pytest.raises(Conflict):
        withdraw_provider(shared=shared, workspace=a.workspace, actor=owner)
    [listed] = list_shared(actor=owner)
    assert (listed.shared.pk, listed.workspaces) == (shared.pk, 3)


@pytest.mark.django_db
def test_a_name_that_a_workspace_has_already_is_told_apart(tenant: Tenant, owner: Actor) -> None:
    """REL-935: nothing of the workspace's own is renamed, and a new name of the shared one follows."""
    ModelProvider.objects.create(
        workspace=tenant.workspace, name="Shared", base_url=ADDRESS, default_model="own"
    )
    shared = share(owner, tenant)
    assert row_of(tenant).name == "Shared (shared)"
    wanted = draft(name="For all of us", default_model="big")
    change_shared_provider(shared=shared, draft=wanted, actor=owner)
    row = row_of(tenant)
    assert (row.name, row.default_model) == ("For all of us", "big")
    with pytest.raises(InvalidInput) as taken:
        share(owner, name="FOR ALL of us")
    assert list(taken.value.fields) == ["name"]


@pytest.mark.django_db
def test_of_two_who_save_at_once_nobody_loses_a_change(tenant: Tenant, owner: Actor) -> None:
    """REL-935: the second one is told."""
    shared = share(owner, tenant)
    seen = SharedProvider.objects.get()
    change_shared_provider(shared=shared, draft=draft(default_model="big"), actor=owner)
    with pytest.raises(Conflict):
        change_shared_provider(shared=seen, draft=draft(default_model="small"), actor=owner)
    assert SharedProvider.objects.get().default_model == "big"


@pytest.mark.django_db
def test_each_workspace_reads_in_its_log_what_happened_behind_it(
    two_workspaces: TwoTenants, owner: Actor
) -> None:
    """SEC-457: by whom and what, without address, key or what another workspace has."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a)
    wanted = draft(base_url=f"{ADDRESS}/more", api_key=NEW_KEY)
    change_shared_provider(shared=shared, draft=wanted, actor=owner, is_tested=False)
    switch_shared_provider(shared=shared, is_active=False, actor=owner)
    delete_shared_provider(shared=shared, actor=owner)
    changes = changes_in(a.workspace)
    assert [verb for verb, _name, _after in changes] == ["created", "changed", "changed", "deleted"]
    assert set(changes[1][2]) == {"base_url", "api_key"}
    assert changes[2][2] == {"withheld": "off"}
    assert changes_in(b.workspace) == []
    assert [one[0] for one in changes_in(None)] == ["created", "changed", "changed", "deleted"]
    entries = AuditEntry.objects.across_workspaces()
    assert ADDRESS not in str(list(entries.filter(workspace_id=a.workspace.pk).values()))
    assert "sk-shared-canary" not in str(list(entries.values()))
    actors = set(entries.filter(workspace_id=a.workspace.pk).values_list("actor_label", flat=True))
    assert actors == {owner.label}


@pytest.mark.django_db
@pytest.mark.both_engines
def test_limits_count_the_requests_of_all_workspaces(
    two_workspaces: TwoTenants, owner: Actor
) -> None:
    """REL-936: one at once is one at once, whichever workspace asks."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a, b, most_at_once=1)
    now = database_now()
    running = ModelRequest.objects.create(
        workspace=a.workspace, provider=row_of(a), alive_until=now + LEASE, started_at=now
    )
    bud = make_bud(b, "Notes")
    bud.provider = row_of(b)
    limits = provider_for(bud).limits
    assert limits is not None
    place = ask_for_place(limits, mine := uuid7())
    assert (place.has_started, place.ahead) == (False, 0)
    load = shared_load(shared.pk)
    assert (load.running, load.waiting) == (1, 1)
    running.delete()
    assert ask_for_place(limits, mine).has_started


@pytest.mark.django_db
def test_use_is_counted_for_each_workspace(two_workspaces: TwoTenants, owner: Actor) -> None:
    """REL-937: what goes to a shared provider, and not what goes to the environment's or a workspace's own."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a, b)
    for tenant, tokens in ((a, 1000), (b, 7)):
        bud = make_bud(tenant, "Notes")
        ask(tenant, bud, tenant.member, "member", prompt_tokens=5)
        bud.provider = row_of(tenant)
        bud.save()
        other = make_bud(tenant, "Plain")
        ask(tenant, other, tenant.member, "member", prompt_tokens=99)
        ask(tenant, bud, tenant.member, "member", prompt_tokens=tokens)
    found = usage_by_workspace(actor=owner, shared=shared).rows
    assert {(one.workspace.pk, one.questions, one.prompt_tokens) for one in found} == {
        (a.workspace.pk, 2, 1005),
        (b.workspace.pk, 2, 12),
    }
    plain = usage_by_workspace(actor=owner).rows
    assert {one.prompt_tokens for one in plain} == {99}


@pytest.mark.django_db
def test_the_key_joins_the_rotation_of_the_installations_keys(owner: Actor) -> None:
    """SEC-458: sealed anew under the new key, and bound to its row."""
    shared = share(owner)
    old = settings.TRELLIS.encryption_keys[0]
    new = EncryptionKey("new", bytes(range(32)))
    with override_settings(
        TRELLIS=settings.TRELLIS.model_copy(update={"encryption_keys": (new, old)})
    ):
        assert set(count_by_key()) == {old.id}
        call_command("rotate_keys", verbosity=0)
        assert set(count_by_key()) == {"new"}
        assert not find_unreadable()
        assert stored_key(shared) == KEY
