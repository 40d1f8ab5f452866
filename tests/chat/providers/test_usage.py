"""What one person's questions used, on a page and over REST."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from tests.chat.providers.usage import ask, make_bud
from tests.factories import Tenant
from workspaces.database import database_now

pytestmark = pytest.mark.django_db


def test_own_questions_are_summed_by_bud_and_model(tenant: Tenant) -> None:
    """REL-649: nobody else's, none of before, and the sum says what it leaves out."""
    notes, clock = make_bud(tenant, "Notes"), make_bud(tenant, "Clock")
    mine = (tenant, notes, tenant.member, "member")
    ask(*mine, prompt_tokens=1000, completion_tokens=10, cost=Decimal("0.5"))
    ask(*mine, prompt_tokens=2000, completion_tokens=20, cost=None)
    ask(tenant, clock, tenant.member, "member", prompt_tokens=3, cost=Decimal("0.25"))
    ask(*mine, prompt_tokens=7, created_at=database_now() - timedelta(days=8))
    ask(tenant, notes, tenant.admin, "admin", prompt_tokens=99_999)
    client = tenant.client("member", headers={"X-Workspace": tenant.workspace.slug})
    week = client.get("/api/usage/").json()
    assert [(row["bud"], row["questions"], row["prompt_tokens"]) for row in week["rows"]] == [
        ("Notes", 2, 3000),
        ("Clock", 1, 3),
    ]
    assert (week["questions"], week["completion_tokens"], week["unpriced"]) == (3, 30, 1)
    assert Decimal(week["cost"]) == Decimal("0.75")
    assert client.get("/api/usage/?days=30").json()["prompt_tokens"] == 3010
    page = client.get(f"/w/{tenant.workspace.slug}/usage/").content.decode()
    assert "3,003" in page
    assert "0.7500" in page
    assert "1 question without a known price is not in it." in page
    assert "99,999" not in page


def test_a_price_that_nobody_knows_is_said(tenant: Tenant) -> None:
    """REL-649: it is not zero; and who asked nothing reads so."""
    client = tenant.client("member", headers={"X-Workspace": tenant.workspace.slug})
    page = f"/w/{tenant.workspace.slug}/usage/"
    assert "You have asked nothing in this time." in client.get(page).content.decode()
    ask(tenant, make_bud(tenant, "Notes"), tenant.member, "member", cost=None)
    assert client.get("/api/usage/").json()["cost"] is None
    assert "unknown" in client.get(page).content.decode()


def test_a_time_that_is_not_offered_is_told(tenant: Tenant) -> None:
    """REL-649: over REST; the page shows the week."""
    client = tenant.client("member", headers={"X-Workspace": tenant.workspace.slug})
    assert client.get("/api/usage/?days=9").status_code == 422
    page = client.get(f"/w/{tenant.workspace.slug}/usage/?days=x")
    assert page.context["usage"].days == 7
