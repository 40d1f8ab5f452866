"""Programs that share chats, and read what is shared."""

from __future__ import annotations

from typing import Any

import pytest

from chat.models import (
    Bud,
    Conversation,
    Message,
    ShareAudience,
)
from tests.chat.services.shared_chats import (
    allow_links,
    make_bud,
    make_conversation,
    page,
    share,
    token_of,
)
from tests.factories import CANARY, Tenant, TwoTenants
from workspaces.models import Membership
from workspaces.people.suspending import suspend_member

pytestmark = pytest.mark.django_db


@pytest.fixture
def bud(tenant: Tenant) -> Bud:
    return make_bud(tenant)


@pytest.fixture
def conversation(tenant: Tenant, bud: Bud) -> Conversation:
    return make_conversation(tenant, bud)


class Api:
    """One person's requests."""

    def __init__(self, tenant: Tenant, role: str) -> None:
        self.client = tenant.client(role)
        self.headers = {"X-Workspace": tenant.workspace.slug}

    def __call__(
        self, method: str, path: str, body: dict[str, Any] | None = None, status: int = 200
    ) -> Any:
        given: dict[str, Any] = {"data": body, "content_type": "application/json"}
        call = getattr(self.client, method)
        answer = call(f"/api/{path}", headers=self.headers, **(given if body is not None else {}))
        assert answer.status_code == status, answer.content
        return answer.json() if answer.content else None


def test_what_a_share_shows_may_come_back(
    tenant: Tenant, conversation: Conversation, bud: Bud
) -> None:
    """REL-3211: with one field changed. What was said since stays with its owner, and people are taken as they are shown."""
    mine = Api(tenant, "member")
    path = f"conversations/{conversation.pk}/share/"
    chosen = {"audience": "people", "people": [str(tenant.admin.pk)]}
    first = Message.objects.for_workspace(tenant.workspace).earliest("id")
    made = mine("put", path, {**chosen, "until_message_id": str(first.pk)})
    assert (made["end_message_id"], made["is_current"]) == (str(first.pk), False)
    again = mine("put", path, {**made, "with_files": True})
    assert again == {**made, "with_files": True, "shared_at": again["shared_at"]}
    assert mine("put", path, chosen)["is_current"] is True
    mine("put", path, {**chosen, "audiance": "people"}, status=400)
    mine("put", path, {**chosen, "people": [{"name": "Anna"}]}, status=400)


def test_programs_share_read_and_copy(tenant: Tenant, conversation: Conversation, bud: Bud) -> None:
    """REL-998: as people do in the browser."""
    mine, theirs = Api(tenant, "member"), Api(tenant, "admin")
    path = f"conversations/{conversation.pk}/share/"
    mine("get", path, status=404)
    [person] = mine("get", f"shared-chats/people/?search={tenant.admin.email}")
    assert person == {
        "id": str(tenant.admin.pk),
        "name": tenant.admin.display_name,
        "email": tenant.admin.email,
    }
    made = mine("put", path, {"audience": "people", "people": [person["id"]]})
    assert made["people"] == [person]
    assert (made["is_open"], made["is_current"], made["title"]) == (True, True, "Orders")
    assert mine("get", path) == made
    assert mine("get", "shared-chats/")["results"] == [made]
    assert mine("get", f"conversations/{conversation.pk}/")["is_shared"] is True
    assert theirs("get", "shared-chats/")["results"] == []
    theirs("get", path, status=404)
    [given] = theirs("get", "shared-chats/given/")
    assert (given["title"], given["link"]) == ("Orders", made["link"])
    assert given["shared_by"]["email"] == tenant.member.email
    assert mine("get", "shared-chats/given/") == []
    assert Api(tenant, "auditor")("get", "shared-chats/given/") == []
    token = made["link"].rstrip("/").rpartition("/")[2]
    read = theirs("get", f"shared-chats/{token}/")
    assert [message["role"] for message in read["messages"]] == ["user", "assistant"]
    assert read["messages"][1]["calls"][0]["arguments"] is None
    Api(tenant, "auditor")("get", f"shared-chats/{token}/", status=404)
    copied = theirs("post", f"shared-chats/{token}/copy/", {"bud_id": str(bud.pk)}, status=201)
    assert copied["title"] == "Orders"
    mine("delete", path, status=204)
    theirs("get", f"shared-chats/{token}/", status=404)
    mine("delete", path, status=404)


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "audience"),
        ({"audience": "world"}, 400, "audience"),
        ({"audience": "people", "people": ["x"]}, 400, "people.0"),
        ({"audience": "people", "people": []}, 422, "people"),
        ({"audience": "workspace", "expires_at": "2001-01-01T00:00:00Z"}, 422, "expires_at"),
        ({"audience": "workspace", "expires_at": "tomorrow"}, 400, "expires_at"),
        ({"audience": "link"}, 422, "audience"),
    ],
)
def test_programs_are_told_what_does_not_fit(
    tenant: Tenant, conversation: Conversation, body: dict[str, Any], status: int, field: str
) -> None:
    """REL-992: at its field."""
    api = Api(tenant, "member")
    answer = api("put", f"conversations/{conversation.pk}/share/", body, status=status)
    assert answer["errors"][0]["attr"] == field


def test_a_public_link_of_another_workspace_is_read_on_its_page_alone(
    two_workspaces: TwoTenants,
) -> None:
    """SEC-470: a program works in one workspace."""
    tenant, other = two_workspaces.a, two_workspaces.b
    allow_links(tenant, True)
    shared = share(tenant, make_conversation(tenant, make_bud(tenant)), ShareAudience.LINK)
    assert page(shared, other.client()).status_code == 200
    Api(other, "member")("get", f"shared-chats/{token_of(shared)}/", status=404)


def test_only_members_are_found_to_share_with(two_workspaces: TwoTenants) -> None:
    """SEC-470: nobody of another workspace, nobody who is suspended, not oneself."""
    tenant = two_workspaces.a
    api = Api(tenant, "member")
    everybody = {person["email"] for person in api("get", "shared-chats/people/")}
    assert everybody == {tenant.owner.email, tenant.admin.email, tenant.auditor.email}
    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.auditor)
    suspend_member(membership=membership, reason="", actor=tenant.actor("owner"))
    assert api("get", f"shared-chats/people/?search={tenant.auditor.email}") == []
    assert api("get", f"shared-chats/people/?search={CANARY}") == []
