"""Spending limits of a month: what counts, who is refused and told, and that nothing goes around them."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.urls import reverse

from audit.models import AuditEntry, Notice
from chat.engine import endings
from chat.models import (
    Bud,
    KnowledgePreparation,
    ModelProvider,
    MonthlySpending,
    ProviderModel,
)
from chat.providers import months
from chat.providers.base import MonthLimit, TokenCount
from chat.providers.errors import SpendingLimitReached
from chat.providers.known_models import Prices
from chat.providers.months import Month
from chat.providers.specs import spec_of
from chat.providers.spending import (
    Bill,
    LimitOwner,
    LimitUse,
    Payer,
    add_to_month,
    allowance_for,
)
from chat.providers.spending_months import month_of_workspace
from chat.sampling import ask_model
from chat.services.conversations import erase_conversation
from chat.services.knowledge import add_knowledge
from chat.services.parts_of_shared import PartDraft, change_part
from chat.services.preparing_knowledge import prepare_due
from chat.services.spending_limits import (
    KEEP_MONTHS,
    LimitsDraft,
    forget_old_months,
    remove_member_limit,
    set_limits,
    set_member_limit,
)
from chat.services.turns import retry_turn, stop_turn
from chat.sockets.socket_access import SocketAccess
from chat.values import TurnStatus
from mcp_servers.client.connections import runtime
from tests.chat.conftest import Chat
from tests.chat.engine.titling import titled
from tests.chat.engine.turn_price import at_most, say
from tests.chat.providers.platform_owner import owns
from tests.chat.providers.sharing import row_of, share
from tests.chat.providers.spending import (
    COST,
    TOKENS,
    ask,
    limit,
    refusals,
    sampling,
    spent,
)
from tests.chat.services.checking import begin, check, finish, results
from tests.factories import Tenant, TwoTenants, signed_in
from tests.fakes.scripted_model import DONE, Answer, chunk
from tests.price import counted
from tests.threads import Threads
from workspaces.database import database_now
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.models import User


@pytest.mark.both_engines
def test_what_answers_cost_is_summed_by_month(priced: Chat) -> None:
    """REL-1083: for the person and the workspace, in the commit that stores the answer."""
    for _ in range(2):
        assert ask(priced).status == TurnStatus.COMPLETED
    for row in (spent(priced.tenant), spent(priced.tenant, priced.tenant.member)):
        assert (row.requests, row.tokens, row.cost) == (2, 2 * TOKENS, 2 * COST)
        assert (row.estimated_tokens, row.unpriced_tokens) == (0, 0)
        assert row.month == Month.of(database_now(), "").key


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("limits", "rule", "message"),
    [
        (
            {"member": MonthLimit(tokens=TOKENS)},
            "spending.member",
            (
                r"You have reached your monthly spending limit: 12 of 12 tokens\. It begins anew on 1 \w+ \d+ \(UTC\)\."
                r" To go on before then, ask a workspace admin to raise your limit\."
            ),
        ),
        (
            {"workspace": MonthLimit(cost=COST)},
            "spending.workspace",
            (
                r"This workspace has reached its monthly spending limit\. It begins anew on 1 \w+ \d+ \(UTC\)\."
                r" To go on before then, ask a workspace admin to raise it\."
            ),
        ),
    ],
)
def test_a_question_beyond_the_limit_reaches_no_model(
    priced: Chat, limits: dict[str, MonthLimit], rule: str, message: str
) -> None:
    """REL-1081, SEC-521: the person reads which limit, when it begins anew and whom to ask, and goes on once it is raised."""
    limit(priced.tenant, **limits)
    assert ask(priced).status == TurnStatus.COMPLETED
    priced.model.clear()
    turn = priced.ask("One more")
    assert (turn.status, turn.error_code) == (TurnStatus.FAILED, "spending_limit_reached")
    assert turn.can_retry
    assert re.fullmatch(message, turn.error_message), turn.error_message
    assert priced.model.requests == []
    [entry] = refusals(priced.tenant)
    assert (entry.refused_by, entry.rule) == ("spending_limit", rule)
    assert (entry.actor_id, entry.turn_id) == (priced.tenant.member.pk, turn.pk)
    limit(priced.tenant)
    priced.watching.forget()
    priced.model.say("Here I am")
    retry_turn(turn=turn, actor=priced.actor)
    priced.watching.turn("completed")
    assert priced.answer() == "Here I am"


def test_nothing_is_allowed_with_a_limit_of_0(priced: Chat) -> None:
    """REL-1081: also not the first question of the month."""
    limit(priced.tenant, member=MonthLimit(cost=Decimal(0)))
    turn = priced.ask()
    assert turn.error_message == (
        "Your monthly spending limit is 0, so models do not answer you here. Ask a workspace admin to raise your limit."
    )
    limit(priced.tenant, workspace=MonthLimit(tokens=0))
    assert "limit of this workspace is 0" in priced.ask().error_message
    assert priced.model.requests == []


def test_a_member_may_have_another_limit_or_none(priced: Chat) -> None:
    """REL-1080: higher, lower or none; without one of their own, that of all members holds. Lowering one below what is used holds at once."""
    tenant = priced.tenant
    whose: dict[str, Any] = {
        "workspace": tenant.workspace,
        "person": tenant.member,
        "actor": tenant.actor("admin"),
    }
    limit(tenant, member=MonthLimit(tokens=0))
    set_member_limit(limit=MonthLimit(tokens=2 * TOKENS), **whose)
    assert ask(priced).status == TurnStatus.COMPLETED
    set_member_limit(limit=MonthLimit(tokens=TOKENS - 5), **whose)
    assert "12 of 7 tokens" in priced.ask().error_message
    set_member_limit(limit=MonthLimit(), **whose)
    assert ask(priced).status == TurnStatus.COMPLETED
    remove_member_limit(**whose)
    assert "is 0" in priced.ask().error_message


def test_a_turn_with_many_steps_stops_before_the_next_request(priced: Chat) -> None:
    """REL-1082: what it did is kept, and it goes on from there."""
    limit(priced.tenant, member=MonthLimit(tokens=TOKENS))
    priced.model.call(("counting__echo", {"text": "once"}))
    turn = priced.ask()
    assert turn.error_code == "spending_limit_reached"
    assert len(priced.model.requests) == 1
    [call] = priced.calls()
    assert (call.status, turn.prompt_tokens + turn.completion_tokens) == ("succeeded", TOKENS)
    limit(priced.tenant)
    priced.watching.forget()
    priced.model.say("It said once")
    retry_turn(turn=turn, actor=priced.actor)
    priced.watching.turn("completed")
    assert priced.answer() == "It said once"
    assert len(priced.calls()) == 1


def test_an_answer_that_is_stopped_still_costs(priced: Chat, hold: threading.Event) -> None:
    """REL-1083, REL-2443: what its provider did not count is estimated, and marked so; it is of the model that was asked."""
    priced.model.give(Answer([chunk({"content": "Half an answer"}), hold, chunk({}, "stop"), DONE]))
    sent = priced.send()
    priced.watching.until(lambda event: event["type"] == "text.delta")
    stop_turn(turn=sent.turn, actor=priced.actor)
    priced.watching.turn("cancelled")
    row = spent(priced.tenant)
    assert row.tokens == row.estimated_tokens > 0
    assert row.cost > 0
    assert priced.reload(sent.turn).model == "m"


def test_where_no_price_is_known_only_tokens_count(chat: Chat) -> None:
    """REL-1080, REL-3122: a limit on cost does not pretend to hold. The page says what it leaves out, and what to do."""
    limit(chat.tenant, workspace=MonthLimit(cost=COST))
    for _ in range(2):
        assert ask(chat).status == TurnStatus.COMPLETED
    row = spent(chat.tenant)
    assert row.cost == 0
    assert row.unpriced_tokens == 2 * TOKENS
    at = f"/w/{chat.tenant.workspace.slug}"
    page = chat.tenant.client("admin").get(f"{at}/spending/").content.decode()
    left_out = "24 tokens are of models for which no price is set, so the cost leaves them out."
    prices = f'href="{reverse("admin:chat_providermodel_changelist")}">Enter prices</a>'
    assert page.count("Cost: no price set · 24 tokens") == 2, (
        "of the workspace, and of who used most"
    )
    assert left_out in page
    assert prices in page
    report = chat.tenant.client("admin").get(f"{at}/audit/reports/").content.decode()
    assert report.count("no price set") == 2, "of the workspace, and of who used most"
    own = chat.tenant.client("member").get(f"{at}/usage/").content.decode()
    assert f"{left_out} They count" in own
    assert "A workspace admin can enter their prices." in own
    assert prices not in own


def test_a_price_that_changes_changes_nothing_that_was_counted(priced: Chat) -> None:
    """REL-1083: the sums are of what was asked for at the time."""
    ask(priced)
    ProviderModel.objects.for_workspace(priced.tenant.workspace).update(prompt_price=100)
    assert spent(priced.tenant).cost == COST
    ask(priced)
    assert spent(priced.tenant).cost == 2 * COST + Decimal("0.000693")


def test_sums_outlive_the_chats(priced: Chat) -> None:
    """REL-1084: whoever deletes a chat gets nothing back."""
    ask(priced)
    erase_conversation(conversation=priced.conversation, actor=priced.actor)
    assert spent(priced.tenant, priced.tenant.member).tokens == TOKENS


def test_every_road_to_a_model_counts(priced: Chat) -> None:
    """REL-1083: titles, verdicts on checks, sampling of servers, and searches and preparation of knowledge."""
    tenant = priced.tenant
    priced.model.say("The sky is blue")
    priced.ask()
    priced.model.say("The sky")
    assert titled(priced)
    assert spent(tenant, tenant.member).requests == 2
    check(priced, contains=["hi"], criterion="It is polite")
    priced.model.say("hi")
    priced.model.say("YES")
    run = finish(priced, begin(priced))
    assert run.passed == 1
    assert spent(tenant, tenant.admin).requests == 2
    task = sampling(priced)
    priced.model.say("Hello")
    runtime.run_sync(ask_model(task), timeout_seconds=30)
    assert spent(tenant, tenant.member).requests == 3
    ModelProvider.objects.for_workspace(tenant.workspace).update(embedding_model="embed-small")
    add_knowledge(bud=priced.bud, name="a.md", content=b"Dogs bark", actor=tenant.actor("admin"))
    prepare_due()
    assert spent(tenant).requests == 6
    assert spent(tenant).tokens > 5 * TOKENS


def test_every_road_to_a_model_is_closed_at_the_limit(priced: Chat) -> None:
    """REL-1082: what runs in the background asks nothing either, and tries again later."""
    tenant = priced.tenant
    priced.model.say("The sky is blue")
    priced.ask()
    ModelProvider.objects.for_workspace(tenant.workspace).update(embedding_model="embed-small")
    add_knowledge(bud=priced.bud, name="a.md", content=b"Dogs bark", actor=tenant.actor("admin"))
    check(priced, contains=["hi"])
    limit(tenant, workspace=MonthLimit(tokens=1))
    priced.model.clear()
    assert not titled(priced)
    prepare_due()
    [preparation] = KnowledgePreparation.objects.for_workspace(tenant.workspace)
    assert "monthly spending limit" in preparation.fault
    run = finish(priced, begin(priced))
    assert "monthly spending limit" in results(run)[0].faults[0]
    task = sampling(priced)
    with pytest.raises(SpendingLimitReached):
        runtime.run_sync(ask_model(task), timeout_seconds=30)
    assert priced.model.requests == []
    assert priced.model.embedded == []
    wanted = [entry.details["wanted"] for entry in refusals(tenant)]
    assert wanted == ["title", "answer", "sampling for counting"]


def test_only_the_road_to_models_asks_them() -> None:
    """REL-1082: nothing else has a client, and only a turn, which counts in its own commits, reads a bare stream."""
    found: dict[str, set[str]] = {
        "model_client(": set(),
        "model_requests.stream(": set(),
        "bill=None": set(),
    }
    for path in Path("chat").rglob("*.py"):
        text = path.read_text()
        for words, paths in found.items():
            if words in text:
                paths.add(str(path))
    assert found["model_client("] == {
        "chat/providers/choosing.py",
        "chat/providers/model_requests.py",
    }
    assert found["model_requests.stream("] == {"chat/engine/asking.py"}
    assert found["bill=None"] == {"chat/services/provider_check.py"}


def test_a_member_is_told_once_in_a_month_how_much_is_used(priced: Chat) -> None:
    """REL-1086: quietly, below the answer."""
    limit(priced.tenant, member=MonthLimit(tokens=4 * TOKENS), warn_percent=50)
    assert ask(priced).notice == ""
    priced.watching.forget()
    turn = ask(priced)
    priced.watching.until(lambda event: event["type"] == "turn.changed" and event["turn"]["notice"])
    text = r"You have used 50% of your monthly spending limit \(24 of 48 tokens\)\. It begins anew on 1 .*"
    assert re.fullmatch(text, priced.reload(turn).notice)
    assert ask(priced).notice == ""
    assert Notice.objects.for_workspace(priced.tenant.workspace).count() == 0


def test_admins_are_told_once_how_much_of_the_workspaces_limit_is_used(priced: Chat) -> None:
    """REL-1086: at the share that they set, at its end, and anew for another limit."""
    tenant = priced.tenant
    rows = Notice.objects.for_workspace(tenant.workspace)

    def titles_of(person: User) -> list[str]:
        return list(rows.filter(user=person).order_by("pk").values_list("title", flat=True))

    limit(tenant, workspace=MonthLimit(tokens=3 * TOKENS), warn_percent=60)
    for _ in range(3):
        ask(priced)
    near, full = "66% of the spending limit used: ", "Spending limit reached: "
    name = tenant.workspace.name
    assert titles_of(tenant.admin) == titles_of(tenant.owner) == [near + name, full + name]
    assert titles_of(tenant.member) == []
    limit(tenant, workspace=MonthLimit(tokens=4 * TOKENS), warn_percent=60)
    ask(priced)
    assert titles_of(tenant.admin)[2:] == [full + name]


def test_the_check_costs_two_statements_where_a_limit_is_set(priced: Chat) -> None:
    """REL-1085: within the price of a turn, and none where nobody has set one."""
    door = SocketAccess(
        priced.tenant.member, priced.tenant.workspace.slug, ip_address=None, session_key=None
    )
    priced.model.say("first")
    say(priced, door)
    asked = []
    for limits in ({}, {"member": MonthLimit(tokens=10**6)}):
        if limits:
            limit(priced.tenant, **limits)
        priced.model.say("one two three")
        priced.watching.forget()
        with counted() as price:
            say(priced, door)
        at_most(price, statements=15 + bool(limits), commits=2 + bool(limits), crossings=3)
        asked.append(len(price.statements))
    assert asked[1] == asked[0] + 2


@pytest.mark.both_engines
def test_requests_that_end_at_one_moment_lose_nothing(tenant: Tenant) -> None:
    """REL-1084: many processes add to the same rows, and one of them tells."""
    limit(tenant, workspace=MonthLimit(tokens=50))
    payer = Payer(
        workspace_id=tenant.workspace.pk,
        person_id=tenant.member.pk,
        actor=tenant.actor("member"),
        purpose="answer",
    )
    row = ModelProvider(workspace=tenant.workspace, name="p", default_model="m")
    prices = Prices(prompt=Decimal(1), completion=Decimal(1))
    bill = Bill.of(allowance_for(payer, spec_of(row)), spec_of(row), prices)

    def add() -> int:
        with transaction.atomic():
            return len(add_to_month(bill, TokenCount(prompt=3, completion=2), database_now()))

    with Threads(8) as threads:
        listed = [one.result() for one in [threads.submit(add) for _ in range(40)]]
    for found in (spent(tenant), spent(tenant, tenant.member)):
        assert (found.requests, found.tokens, found.cost) == (40, 200, Decimal("0.000200"))
    assert sum(listed) == 2


@pytest.mark.parametrize(
    ("moment", "zone", "key", "begins_anew"),
    [
        (datetime(2026, 11, 30, 23, 30, tzinfo=UTC), "", 202611, date(2026, 12, 1)),
        (datetime(2026, 11, 30, 23, 30, tzinfo=UTC), "Europe/Zurich", 202612, date(2027, 1, 1)),
        (datetime(2026, 12, 1, 3, tzinfo=UTC), "America/New_York", 202611, date(2026, 12, 1)),
    ],
)
def test_months_are_those_of_the_workspaces_time_zone(
    moment: datetime, zone: str, key: int, begins_anew: date
) -> None:
    """REL-1080: the first of the month begins at midnight there."""
    month = Month.of(moment, zone)
    assert (month.key, month.begins_anew_on) == (key, begins_anew)
    assert Month.of(month.begins_anew_at, zone).begins_on == begins_anew


def test_a_new_month_begins_with_nothing(priced: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1080: by the database's clock; an answer counts in the month in which it ends."""
    limit(priced.tenant, member=MonthLimit(tokens=TOKENS))
    ask(priced)
    assert priced.ask().error_code == "spending_limit_reached"
    later = month_of_workspace(priced.tenant.workspace.pk).month.begins_anew_at
    for module in (months, endings):
        monkeypatch.setattr(module, "database_now", lambda: later)
    priced.watching.forget()
    assert ask(priced).status == TurnStatus.COMPLETED
    rows = MonthlySpending.objects.for_workspace(priced.tenant.workspace).of_workspace()
    assert [row.tokens for row in rows.order_by("month")] == [TOKENS, TOKENS]


@pytest.fixture
def shared(chat: Chat, superuser: User) -> Chat:
    """The chat's model is what the platform's owner shares."""
    share(owns(superuser), chat.tenant, base_url=chat.model.base_url)
    Bud.objects.for_workspace(chat.tenant.workspace).update(provider=row_of(chat.tenant))
    chat.bud.refresh_from_db()
    return chat


def cap(chat: Chat, superuser: User, **draft: Any) -> None:
    """As the platform's owner sets it."""
    row = row_of(chat.tenant)
    assert row.shared is not None
    change_part(
        shared=row.shared,
        workspace=chat.tenant.workspace,
        draft=PartDraft(**draft),
        actor=owns(superuser),
    )


@pytest.mark.both_engines
def test_the_platforms_owner_limits_what_a_workspace_uses_of_a_shared_provider(
    shared: Chat, superuser: User
) -> None:
    """SEC-520: beside the workspace's own limits. Whichever is reached first is named."""
    cap(shared, superuser, most_tokens_a_month=TOKENS)
    limit(shared.tenant, workspace=MonthLimit(tokens=10 * TOKENS))
    assert ask(shared).status == TurnStatus.COMPLETED
    error = shared.ask().error_message
    assert error.startswith(
        "This workspace has reached its monthly spending limit for “Shared”, which whoever runs Trellis has set."
    )
    assert error.endswith("Choose another model, or ask them to raise it.")
    root = signed_in(superuser)
    page = root.get(f"/platform/providers/{row_of(shared.tenant).shared_id}/").content.decode()
    assert "12 of 12 tokens" in page
    limit(shared.tenant, workspace=MonthLimit(tokens=1))
    assert shared.ask().error_message.startswith("This workspace has reached its monthly spending")


def test_a_workspaces_own_prices_do_not_change_what_counts_for_the_platform(
    shared: Chat, superuser: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-520: list prices do, and no workspace can enter those."""
    row = row_of(shared.tenant)
    ProviderModel.objects.create(
        workspace=shared.tenant.workspace,
        provider=row,
        model="m",
        prompt_price=0,
        completion_price=0,
    )
    listed = Prices(prompt=Decimal(1), completion=Decimal(1))
    monkeypatch.setattr("chat.providers.spending.prices_of", lambda *_, **__: listed)
    cap(shared, superuser, most_cost_a_month=COST)
    ask(shared)
    assert spent(shared.tenant).cost == 0
    assert shared.ask().error_code == "spending_limit_reached"


def test_a_shared_provider_that_is_given_again_begins_no_new_month(
    shared: Chat, superuser: User
) -> None:
    """SEC-520: what was used of it is kept beside the provider, not beside the workspace's row of it."""
    ask(shared)
    row = row_of(shared.tenant)
    found = MonthlySpending.objects.for_workspace(shared.tenant.workspace).get(shared=row.shared)
    assert (found.subject, found.tokens) == (row.shared_id, TOKENS)


@pytest.mark.django_db
def test_only_those_who_manage_members_set_limits(two_workspaces: TwoTenants) -> None:
    """SEC-521: each change is in the log with what was before."""
    a, b = two_workspaces.a, two_workspaces.b
    draft = LimitsDraft(workspace=MonthLimit(tokens=5))
    for actor in (a.actor("member"), a.actor("auditor"), b.actor("owner")):
        with pytest.raises(PermissionDenied):
            set_limits(workspace=a.workspace, draft=draft, actor=actor)
        with pytest.raises(PermissionDenied):
            set_member_limit(
                workspace=a.workspace, person=a.member, limit=MonthLimit(), actor=actor
            )
    with pytest.raises(InvalidInput) as wrong:
        set_limits(
            workspace=a.workspace,
            draft=replace(draft, time_zone="Nowhere", warn_percent=80),
            actor=a.actor("admin"),
        )
    assert set(wrong.value.fields) == {"time_zone"}
    limit(a, workspace=MonthLimit(tokens=5))
    limit(a, workspace=MonthLimit(tokens=9))
    rows = AuditEntry.objects.for_workspace(a.workspace).filter(action="config.changed")
    entry = rows.order_by("pk").last()
    assert entry is not None
    assert entry.details["before"] == {"tokens": 5}
    assert entry.details["after"] == {"tokens": 9}


@pytest.mark.django_db
def test_old_months_are_forgotten(tenant: Tenant) -> None:
    """REL-1084: after three years, and not before."""
    now = database_now()
    for month in (
        now.year * 100 + now.month,
        (now.year - KEEP_MONTHS // 12) * 100 + now.month,
        202001,
    ):
        MonthlySpending.objects.create(
            workspace=tenant.workspace, month=month, subject=tenant.workspace.pk
        )
    assert forget_old_months() == 1
    assert MonthlySpending.objects.for_workspace(tenant.workspace).count() == 2


def test_a_line_tells_how_much_is_used() -> None:
    """REL-1087: of cost and tokens the one that is nearer to its end."""
    line = LimitUse(
        whose=LimitOwner.MEMBER,
        subject=UUID(int=1),
        limit=MonthLimit(cost=Decimal(10), tokens=100),
        cost=Decimal("9.99"),
        tokens=10,
    )
    assert (line.percent, line.is_reached) == (99, False)
    assert replace(line, tokens=100).is_reached
    assert replace(line, limit=MonthLimit(cost=Decimal(0)), cost=Decimal(0)).percent == 100
