"""PostgreSQL itself keeps workspaces apart: statements that go past the door, and the product at work behind the wall."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from channels.db import database_sync_to_async as sync_to_async
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client, override_settings
from django.urls import reverse

from audit.models import AuditEntry
from chat.models import Conversation, Message, ModelProvider, ShareAudience, SharedProvider, Turn
from chat.providers.specs import spec_of
from chat.services.sharing import end_expired, link_of
from chat.tasks import recover_turns
from config import celery as _celery  # noqa: F401 - its signals say how far a task reaches
from config import doctor, health
from config.doctor import FindingState
from mcp_servers.models import HealthCheck
from mcp_servers.registry.tasks import check_all_servers, check_server
from tests import plain_role
from tests.chat.conftest import Chat, chat, closed_connections, counting, model
from tests.chat.services.shared_chats import (
    allow_links,
    make_bud,
    make_conversation,
    share,
    token_of,
)
from tests.chat.sockets.pages import is_turn, opened
from tests.factories import CANARY, PASSWORD, Tenant, UserFactory, make_tenant
from tests.platform_api import with_token
from workspaces.database.postgresql import policies
from workspaces.database.postgresql.policies import protected_tables, tenant_tables
from workspaces.database.row_security import (
    NOTHING,
    NoReach,
    everywhere,
    in_workspace,
    reach_of,
    reaching,
)
from workspaces.middleware import WorkspaceMiddleware
from workspaces.models import Membership, User
from workspaces.people.tokens import PLATFORM_READ, PLATFORM_WRITE

__all__ = ["chat", "closed_connections", "counting", "model"]
pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def tenant(transactional_db: None) -> Iterator[Tenant]:
    """A workspace behind the wall."""
    with plain_role.walled():
        yield make_tenant("acme")


@pytest.fixture
def other(tenant: Tenant) -> Tenant:
    """Another one, which has nothing in common with it."""
    return make_tenant(CANARY.lower(), CANARY)


def raw(statement: str, *params: Any) -> list[tuple[Any, ...]]:
    """What a statement gives that goes past the door, and past what the backend puts ahead of it."""
    connection.ensure_connection()
    with connection.connection.cursor() as cursor:
        cursor.execute(statement, params)
        return list(cursor.fetchall()) if cursor.description else []


def count(table: str = "workspaces_membership") -> int:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT count(*) FROM "{table}"')
        return int(cursor.fetchone()[0])


_RULES = """
SELECT tablename, cmd, regexp_replace(qual, '[()]', '', 'g'), regexp_replace(with_check, '[()]', '', 'g')
FROM pg_policies WHERE schemaname = 'public' AND permissive = 'PERMISSIVE' AND roles = '{public}'
"""
_PLATFORMS = {
    *("audit_outsidewrite", "chat_sharedprovider", "chat_sharedproviderlist"),
    "mcp_servers_knownclient",
}
"""What names no workspace, and is the platform's alone."""
_OWN_NOTE = "xact::text = pg_current_xact_id::text"
_OF_PERSON = (
    "'@'::text || user_id::text = ANY  SELECT string_to_arraycurrent_setting'trellis.workspace'::text, true, ','::text"
    " AS string_to_array::text[]"
)
_BESIDES = {
    ("audit_auditentry", "INSERT", None, "workspace_id IS NULL"),
    ("audit_auditbody", "INSERT", None, "workspace_id IS NULL"),
    ("audit_outsidewrite", "ALL", _OWN_NOTE, _OWN_NOTE),
    ("workspaces_membership", "SELECT", _OF_PERSON, None),
}
"""What is allowed beside the rows of one's workspaces."""


def test_every_table_of_tenants_has_its_policies(tenant: Tenant) -> None:
    """SEC-13: forced, for every command, under a role that owns nothing and that no policy spares."""
    forced = raw("SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity")
    named = raw(
        "SELECT table_name FROM information_schema.columns JOIN information_schema.tables"
        " USING (table_schema, table_name) WHERE table_schema = 'public'"
        " AND column_name = 'workspace_id' AND table_type = 'BASE TABLE'"
    )
    assert set(named) == {(table,) for table in tenant_tables()}
    assert set(forced) == {(table,) for table in protected_tables()}
    tables: dict[tuple[str, ...], set[str]] = {}
    for table, *rule in raw(_RULES):
        tables.setdefault(tuple(rule), set()).add(table)
    (own,) = [rule for rule, some in tables.items() if "chat_message" in some]
    (platforms,) = [rule for rule, some in tables.items() if "chat_sharedprovider" in some]
    assert {(rule[0], rule[1] == rule[2]) for rule in (own, platforms)} == {("ALL", True)}
    assert tables.pop(own) == set(tenant_tables())
    assert tables.pop(platforms) == set(protected_tables()) - set(tenant_tables()) == _PLATFORMS
    assert {(table, *rule) for rule, some in tables.items() for table in some} == _BESIDES
    role = raw(
        "SELECT rolsuper OR rolbypassrls, EXISTS (SELECT 1 FROM pg_class WHERE relowner = r.oid)"
        " FROM pg_roles r WHERE rolname = current_user"
    )
    assert role == [(False, False)]


def test_raw_statements_reach_one_workspace(tenant: Tenant, other: Tenant) -> None:
    """SEC-13, SEC-416: without a reach nothing, with one its rows, and another's can neither be added nor changed."""
    assert count() == 8
    assert raw("SELECT 1 FROM workspaces_membership") == []
    with reaching(NOTHING), pytest.raises(NoReach, match="workspaces_membership"):
        count()
    move = "UPDATE workspaces_membership SET workspace_id = %s"
    with in_workspace(tenant.workspace.pk):
        assert count() == 4
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE workspaces_membership SET role = 'member' WHERE workspace_id = %s",
                [other.workspace.pk],
            )
            assert cursor.rowcount == 0
        with pytest.raises(DatabaseError, match="row-level security"):
            Membership.unscoped.create(workspace=other.workspace, user=tenant.member)
        with (
            pytest.raises(DatabaseError, match="row-level security"),
            connection.cursor() as cursor,
        ):
            cursor.execute(move, [other.workspace.pk])
    with reaching(reach_of([], person=tenant.member.pk)):
        assert count() == 1
        with connection.cursor() as cursor:
            cursor.execute("UPDATE workspaces_membership SET role = 'owner'")
            assert cursor.rowcount == 0


def test_the_reach_ends_with_its_transaction(tenant: Tenant, other: Tenant) -> None:
    """SEC-13: also after a rollback, to a savepoint too, and whichever way it changes meanwhile."""
    setting = "SELECT coalesce(current_setting('trellis.workspace', true), '')"
    with in_workspace(tenant.workspace.pk):
        assert count() == 4
        assert raw(setting) == [("",)]
        with transaction.atomic():
            with pytest.raises(RuntimeError), transaction.atomic():
                assert count() == 4
                raise RuntimeError
            assert raw(setting) == [("",)]
            assert count() == 4
            assert raw(setting) == [(str(tenant.workspace.pk),)]
            with pytest.raises(RuntimeError), transaction.atomic(), everywhere():
                assert count() == 8
                raise RuntimeError
            assert count() == 4
            with everywhere():
                assert count() == 8
            assert count() == 4
        assert raw(setting) == [("",)]
    with transaction.atomic():
        assert count() == 8
        with reaching(NOTHING):
            assert count("django_session") == 0
            assert raw("SELECT 1 FROM workspaces_membership") == []
    assert raw(setting) == [("",)]


_WEAKER = (
    'ALTER TABLE "chat_message" DISABLE ROW LEVEL SECURITY',
    'ALTER TABLE "chat_message" NO FORCE ROW LEVEL SECURITY',
    'CREATE POLICY trellis_select_more ON "chat_message" FOR SELECT USING (true)',
    """DO $$ BEGIN EXECUTE (
        SELECT format('DROP POLICY %%I ON chat_message', policyname)
        FROM pg_policies WHERE tablename = 'chat_message'
    ); END $$""",
)


def test_the_doctor_says_for_whom_it_holds(tenant: Tenant) -> None:
    """REL-710: the plain role is well; a role that policies spare, and tables without policies, are named."""

    def found() -> doctor.DoctorFinding:
        return doctor.examine_part("row-level security")

    assert found().state is FindingState.OK
    off = settings.TRELLIS.model_copy(update={"row_security": False})
    with override_settings(TRELLIS=off):
        assert "still hides rows" in found().text
        health.policies_fit.forget()
        answer = Client().get("/readyz")
        assert (answer.status_code, answer.json()["checks"]["row_security"]) == (503, "failed")
    assert Client().get("/readyz").json()["checks"]["row_security"] == "ok"
    plain_role.leave()
    assert "SUPERUSER" in found().text
    try:
        for weaker in _WEAKER:
            raw(weaker)
            assert "lack" in found().text, weaker
            policies.install()
            assert "lack" not in found().text, weaker
        with override_settings(TRELLIS=off):
            policies.install()
            assert raw("SELECT 1 FROM pg_class WHERE relrowsecurity OR relforcerowsecurity") == []
    finally:
        policies.install()
        plain_role.take()


def test_a_role_that_owns_nothing_may_find_nothing_to_migrate(tenant: Tenant) -> None:
    """REL-2322: units, the compose file and the chart migrate before they start, with the address of this role."""
    call_command("migrate", verbosity=0)


PAGES = (
    *("chat:home", "chat:buds", "chat:usage", "chat:waiting", "mcp_servers:servers"),
    *("mcp_servers:connections", "audit:entries", "audit:reports", "audit:overview"),
    *("audit:activity", "workspaces:members", "workspaces:requests"),
)


async def test_the_product_works_behind_the_wall(
    chat: Chat, other: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-711: sign-in, pages, REST, a turn with a call, the admin, a check and a sweep; SEC-417: each within its reach."""
    chat.model.call(("counting__echo", {"text": "hello"}))
    chat.model.say("It said hello.")
    async with opened(chat.tenant) as socket:
        await socket.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        await socket.answer(
            type="send", conversation_id=str(chat.conversation.pk), client_id="c", text="add"
        )
        ended = await socket.until(is_turn("completed", "failed", "waiting_for_approval"))
    assert ended["turn"]["status"] == "completed"
    await sync_to_async(_look_around)(chat, other, monkeypatch)


_WHO_SEES = """
SELECT current_user, strpos(current_setting('trellis.workspace', true), %s) > 0,
    count(*) FILTER (WHERE workspace_id = %s) FROM workspaces_membership
"""
"""Who asks, whether their reach has this workspace in it, and how many rows of the other one they see."""


def _look_around(chat: Chat, other: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool, int]] = []
    plain = WorkspaceMiddleware.process_view

    def process_view(self: WorkspaceMiddleware, request: Any, *rest: Any) -> Any:
        if request.actor.workspace_id is not None:
            with connection.cursor() as cursor:
                cursor.execute(_WHO_SEES, [str(request.actor.workspace_id), other.workspace.pk])
                seen.append(cursor.fetchone())
        return plain(self, request, *rest)

    monkeypatch.setattr(WorkspaceMiddleware, "process_view", process_view)
    tenant, slug = chat.tenant, {"workspace_slug": chat.tenant.workspace.slug}
    browser = tenant.client()
    browser.logout()
    signed_in = browser.post(
        reverse("account_login"), {"login": tenant.owner.email, "password": PASSWORD}
    )
    assert signed_in.status_code == 302
    for page in PAGES:
        assert browser.get(reverse(page, kwargs=slug), follow=True).status_code == 200, page
    assert chat.row.name in browser.get(reverse("mcp_servers:servers", kwargs=slug)).text
    members = browser.get("/api/members/", headers={"x-workspace": slug["workspace_slug"]}).json()
    assert len(members["results"]) == 4
    changelist = browser.get("/admin/mcp_servers/mcpserver/")
    assert changelist.status_code == 200
    assert chat.row.name in changelist.text
    assert CANARY not in changelist.text
    assert seen
    assert set(seen) == {(plain_role.NAME, True, 0)}
    auditor = tenant.client("auditor")
    exported = auditor.get(reverse("audit:export", kwargs={**slug, "extension": "jsonl"}))
    entries = b"".join(exported.streaming_content).decode()  # type: ignore[attr-defined]
    assert '"tool_call.finished"' in entries
    check_all_servers.apply()
    HealthCheck.objects.for_workspace(tenant.workspace).delete()
    check_server.apply((str(tenant.workspace.pk), str(chat.row.pk)))
    assert recover_turns.apply().get() == 0
    assert HealthCheck.objects.for_workspace(tenant.workspace).exists()
    rows = Turn.objects.for_workspace(tenant.workspace)
    assert rows.count() == 1
    with in_workspace(other.workspace.pk):
        for model in (Conversation, Message, Turn, AuditEntry):
            assert not model.unscoped.filter(workspace_id=tenant.workspace.pk).exists()


def test_what_the_platform_shares_is_hidden_from_workspaces_and_works_for_them(
    tenant: Tenant, other: Tenant
) -> None:
    """SEC-459: no transaction of a workspace reads address and key; admins change their own part, and buds are served."""
    shared = SharedProvider.objects.create(
        name="Shared", base_url="https://shared.example.org/v1", api_key="sk-0", default_model="m"
    )
    rows = ModelProvider.objects
    row = rows.create(
        workspace=tenant.workspace, name="Shared", shared=shared, base_url="", default_model="m"
    )
    assert raw("SELECT 1 FROM chat_sharedprovider") == []
    with in_workspace(tenant.workspace.pk):
        assert count("chat_modelprovider") == 1
        assert count("chat_sharedprovider") == 0
        spec = spec_of(row)
    assert (spec.base_url, spec.api_key is not None) == ("https://shared.example.org/v1", True)
    client = tenant.client("admin", headers={"X-Workspace": tenant.workspace.slug})
    answer = client.patch(
        f"/api/providers/{row.pk}/", {"is_active": False}, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["is_active"]) == (200, False)
    page = reverse("admin:chat_modelprovider_change", args=[row.pk])
    assert client.get(page).status_code == 200
    with in_workspace(other.workspace.pk):
        assert count("chat_modelprovider") == 0


def test_shared_chats_are_read_behind_the_wall(tenant: Tenant, other: Tenant) -> None:
    """SEC-470, SEC-13: by a stranger, by a member of another workspace and by one's own; with files, copied, stopped."""
    with in_workspace(tenant.workspace.pk):
        allow_links(tenant, True)
        conversation = make_conversation(tenant, make_bud(tenant))
        shared = share(tenant, conversation, ShareAudience.LINK, with_files=True)
        url, token = link_of(shared), token_of(shared)
        file = shared.text.value.messages[0].files[0]
        bud = conversation.bud_id
    for client in (Client(), other.client(), tenant.client()):
        assert client.get(f"/shared/{token}/").status_code == 200
        content = client.get(f"/shared/{token}/files/{file.artifact_id}/{file.number}/")
        assert content.content == b"FILE-CONTENT"
    reader = tenant.client()
    answer = reader.post(f"/shared/{token}/copy/", {"bud": str(bud)})
    assert reader.get(answer["Location"]).status_code == 200
    mine = tenant.client("member")
    page = f"/w/{tenant.workspace.slug}/shared-chats/"
    assert url in mine.get(page).content.decode()
    headers = {"X-Workspace": tenant.workspace.slug}
    assert reader.get(f"/api/shared-chats/{token}/", headers=headers).status_code == 200
    mine.post(page, {"shared": str(shared.pk)})
    assert Client().get(f"/shared/{token}/").status_code == 404
    with everywhere():
        assert end_expired() == 0


def test_the_owner_reaches_every_workspace_over_rest(tenant: Tenant, other: Tenant) -> None:
    """SEC-459, REL-1060: with a token that is of one workspace, too; whoever is no owner any more reaches nothing."""
    root = UserFactory.create(is_superuser=True)
    api = with_token(root, tenant.workspace, PLATFORM_READ, PLATFORM_WRITE)
    assert len(api.get("audit-workspaces/").json()["results"]) == 2
    made = api.post("workspaces/", {"name": "x", "slug": "x"}, **{"Idempotency-Key": "x"})
    again = api.post("workspaces/", {"name": "x", "slug": "x"}, **{"Idempotency-Key": "x"})
    assert (made.status_code, again.json()) == (201, made.json())
    for one in (tenant, other):
        assert api.get(f"workspaces/{one.workspace.pk}/").status_code == 200
    User.objects.filter(pk=root.pk).update(is_superuser=False)
    assert api.get("audit-workspaces/").status_code == 404
