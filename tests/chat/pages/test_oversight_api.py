"""What administrators see over REST of what members share and how they rate answers."""

from __future__ import annotations

import pytest

from chat.models import SharedChat, Turn
from tests.chat.providers.test_usage import ask
from tests.chat.services.shared_chats import make_bud, make_conversation, share
from tests.factories import CANARY, TwoTenants

pytestmark = pytest.mark.django_db


def test_administrators_see_and_stop_what_is_shared(two_workspaces: TwoTenants) -> None:
    """REL-1064, SEC-477: in their workspace, and not what it says."""
    for tenant in (two_workspaces.a, two_workspaces.b):
        share(tenant, make_conversation(tenant, make_bud(tenant)))
    tenant = two_workspaces.a
    admin = tenant.client("admin")
    answer = admin.get("/api/member-shares/?audience=workspace")
    [row] = answer.json()["results"]
    assert (row["owner"], row["people"]) == (tenant.member.email, 0)
    assert CANARY not in answer.content.decode()
    path = f"/api/member-shares/{row['id']}/"
    assert tenant.client("member").delete(path).status_code == 403
    assert admin.delete(path).status_code == 204
    assert admin.get(path).status_code == 404
    assert not SharedChat.objects.for_workspace(tenant.workspace).exists()


def test_administrators_read_ratings(two_workspaces: TwoTenants) -> None:
    """REL-1064: of answers in their workspace, for those who manage buds."""
    for tenant in (two_workspaces.a, two_workspaces.b):
        ask(tenant, make_bud(tenant), tenant.member, "member")
    tenant = two_workspaces.a
    admin = tenant.client("admin")
    assert not admin.get("/api/ratings/").json()["results"]
    Turn.objects.across_workspaces().update(rating="bad", rating_reason="It is wrong.")
    [row] = admin.get("/api/ratings/?rating=bad").json()["results"]
    assert (row["rating_reason"], row["asked_by"]) == ("It is wrong.", tenant.member.email)
    assert admin.get("/api/ratings/?rating=awful").status_code == 400
    assert tenant.client("member").get("/api/ratings/").status_code == 403
