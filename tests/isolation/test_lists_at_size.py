"""Lists of the admin, the log and the REST interface with thousands of rows."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection, models
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from uuid_utils.compat import uuid7

from mcp_servers.models import ServerState
from tests.extent import IS_FULL
from tests.isolation.routes import SAMPLES, address
from tests.isolation.world import Side, make_side
from workspaces.models import Membership, User

pytestmark = pytest.mark.django_db
LARGE = ("invitation", "tool", "entry")
"""What is many in one workspace. Entries come last: what is written after them is looked for among them."""
SOME = (
    *(
        "access_request",
        "alert",
        "bud",
        "conversation",
        "join_link",
        "notice",
        "prompt",
        "resource",
        "sent_file",
        "server",
        "token",
    ),
    "view",
)
"""What a person made each of."""
PAGES = (
    *("audit:entries", "audit:overview", "audit:reports", "audit:reviews", "audit:schedules"),
    "audit:schedule-page",
    *("audit:alerts", "audit:streams", "audit:settings", "audit:activity", "audit:notices"),
    *("workspaces:members", "workspaces:requests", "workspaces:tokens", "chat:buds", "chat:usage"),
    "workspaces:all",
    *("mcp_servers:servers", "mcp_servers:connections", "mcp_servers:catalogue"),
)
FEW, MANY = 3, 10_000 if IS_FULL else 1_000
"""A statement for each row shows with a thousand as well; a run for a release takes as many as people may have."""
HUNDREDS = 150 if IS_FULL else 60


def unique_names(model: type[models.Model]) -> set[str]:
    """Fields in which no two rows are the same, alone or together."""
    found = {field.name for field in model._meta.fields if field.unique}
    for one in model._meta.constraints:
        if isinstance(one, models.UniqueConstraint):
            found |= set(one.fields)
    return found


def copies(row: Any, number: int) -> Iterator[Any]:
    """As many rows like this one."""
    names = unique_names(type(row))
    texts = [
        f
        for f in row._meta.fields
        if f.name in names and isinstance(f, models.CharField) and not f.choices
    ]
    for place in range(number):
        made = copy(row)
        made._state = copy(row._state)
        made._state.adding, made._state.fields_cache = True, {}
        made.pk = uuid7()
        if hasattr(made, "call_id"):
            made.call_id = uuid7()
        for field in texts:
            value = f"{place}-{getattr(row, field.attname)}"[: field.max_length or 100]
            setattr(made, field.attname, value)
        yield made


def add_copies(side: Side, some: int, many: int) -> None:
    """Of each kind, and people."""
    workspace, member = side.tenant.workspace, side.tenant.member
    people = User.objects.bulk_create(copies(member, many), batch_size=2_000)
    Membership.unscoped.bulk_create(
        (Membership(workspace=workspace, user=one, role="member") for one in people),
        batch_size=2_000,
    )
    for number, kinds in ((some, SOME), (many, LARGE)):
        for kind in kinds:
            row = side[kind]
            made = type(row)._base_manager.bulk_create(copies(row, number), batch_size=2_000)
            if kind == "server":
                states = [ServerState(server=one, workspace_id=one.workspace_id) for one in made]
                ServerState.objects.bulk_create(states)


def addresses(side: Side) -> dict[str, str]:
    """Every list."""
    found = {name: address(name, SAMPLES[name], side) for name in PAGES}
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
        found[name] = reverse(name)
    for name, sample in SAMPLES.items():
        is_list = name.startswith("api:") and name.endswith("-list") and sample.reads
        if is_list and name != "api:config-list":  # the whole workspace as one document
            found[name] = address(name, sample, side)
    return found


def statements(side: Side) -> dict[str, int]:
    """How many statements each list takes, for whoever may open it. None is a page of megabytes."""
    found = {}
    for role in ("owner", "auditor"):
        client = side.tenant.client(role, headers={"X-Workspace": side.slug})
        for name, url in addresses(side).items():
            if name not in found:
                with CaptureQueriesContext(connection) as asked:
                    answer = client.get(url)
                if answer.status_code == 200:
                    found[name] = len(asked)
                    assert len(answer.content) < 1_500_000, name
    return found


def test_lists_take_no_more_statements_for_ten_thousand_rows_than_for_a_few() -> None:
    """REL-735: pages of the admin and the log, lists of the Django admin, and lists over REST."""
    few, many = make_side("a", "seen"), make_side("b", "more")
    add_copies(few, FEW, FEW)
    add_copies(many, HUNDREDS, MANY)
    statements(few)  # what is asked once for each process
    asked, now_asked = statements(few), statements(many)
    assert set(asked) == set(now_asked)
    assert len(asked) > 70, sorted(asked)
    grown = {
        name: (number, now_asked[name])
        for name, number in asked.items()
        if now_asked[name] > number
    }
    assert not grown
