"""Buds with versions, files, sharing, a test chat and their editor."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from django.utils.translation import override
from pytest_django.fixtures import Settings

from audit.actions import Action, Outcome
from audit.models import AuditEntry, OutsideWrite
from audit.services import EntryDraft, Ref, record
from chat.models import Bud, BudVersion, Conversation, ModelProvider, Turn
from chat.pages.bud_picker import MOST_IN_PAGE
from chat.services.bud_drafts import forget_old_drafts
from chat.services.bud_quality import quality_of
from chat.services.bud_versions import duplicate_bud, restore_version
from chat.services.bud_yaml import BudFileEffect, apply_bud, write_bud
from chat.services.buds import create_bud, update_bud
from chat.services.turns import rate_turn
from chat.services.version_notes import FROM_FILE, RESTORED
from chat.values import Rating
from mcp_servers.models import ApprovalOverride, McpServer, McpTool
from tests.chat.conftest import Chat
from tests.chat.services.buds import make_bud
from tests.factories import Tenant, TwoTenants
from tests.languages import translate
from tests.mcp_servers.factories import http_server, stored_tool
from workspaces.errors import Conflict, InvalidInput, PermissionDenied

pytestmark = pytest.mark.django_db


def editor(tenant: Tenant, bud: Bud | None = None, path: str = "") -> str:
    where = f"/w/{tenant.workspace.slug}/buds/"
    return f"{where}{bud.pk}/{path}" if bud else f"{where}{path or 'new/'}"


def form_of(**more: Any) -> dict[str, Any]:
    return {
        "name": "Writer",
        "slug": "writer",
        "avatar": "🌱",
        "colour": "blue",
        "tool_protocol": "auto",
        "visibility": "workspace",
        "model": "|",
        "takes_all_tools": "on",
        "mcp_config": "{}",
        **more,
    }


def test_every_save_keeps_a_version_and_an_old_one_can_come_back(tenant: Tenant) -> None:
    """REL-445."""
    bud = make_bud(tenant, system_prompt="Write.")
    actor = tenant.actor("admin")
    bud = update_bud(bud=bud, actor=actor, values={"system_prompt": "Write well."})
    bud = update_bud(bud=bud, actor=actor, values={"system_prompt": "Write well."})
    assert bud.version == 2, "nothing changed, so nothing is kept"
    bud = restore_version(bud=bud, number=1, actor=actor, base_version=2)
    assert (bud.version, bud.system_prompt) == (3, "Write.")
    rows = BudVersion.objects.for_workspace(tenant.workspace).filter(bud=bud)
    assert [row.number for row in rows] == [3, 2, 1]
    assert {row.made_by for row in rows} == {tenant.admin.email}
    page = tenant.client("admin").get(editor(tenant, bud, "versions/"))
    assert "Write well." in page.content.decode()


def test_why_a_version_is_there_is_read_in_the_readers_language(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """REL-3124: one text is stored for all, whoever saved it. One that nobody knows any more is shown as it is."""
    texts = {FROM_FILE: "Aus einer Datei", RESTORED: "Wieder Version %(number)s"}
    actor = tenant.actor("admin")
    with override(translate(texts, settings, monkeypatch)):
        text = write_bud(make_bud(tenant)).replace("Writer", "Typist").replace("writer", "typist")
        bud, _ = apply_bud(text, workspace_id=tenant.workspace.pk, person=tenant.admin, actor=actor)
        bud = update_bud(bud=bud, actor=actor, values={"name": "Poet"}, note="By hand")
        restore_version(bud=bud, number=1, actor=actor, base_version=2)
        rows = BudVersion.objects.for_workspace(tenant.workspace).filter(bud=bud)
        assert [row.note for row in rows] == ["Version 1 restored", "By hand", "From a file"]
        page = tenant.client("admin").get(editor(tenant, bud, "versions/")).content.decode()
    for note in ("Wieder Version 1", "By hand", "Aus einer Datei"):
        assert f"<p>{note}</p>" in page


def test_a_version_comes_back_without_what_is_gone(tenant: Tenant) -> None:
    """REL-1305: its provider, servers and tools may be deleted by then; the page tells what was left out."""
    kept, gone = (
        http_server(tenant, f"https://{name}.example.org/mcp", name=name)
        for name in ("garden", "gone")
    )
    stored_tool(kept)
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="Old",
        base_url="https://old.example.org/v1",
        default_model="m",
    )
    config = {
        "servers": [str(kept.pk), str(gone.pk)],
        "disabled_tools": [f"{kept.pk}.echo"],
        "tool_choice": {"type": "function", "function": {"name": "echo"}},
    }
    actor = tenant.actor("admin")
    bud = create_bud(
        workspace_id=tenant.workspace.pk,
        actor=actor,
        values={
            "slug": "writer",
            "name": "Writer",
            "model": "old-model",
            "takes_all_tools": False,
            "system_prompt": "Write.",
            "mcp_config": config,
        },
        provider_id=provider.pk,
    )
    values = {"model": "", "system_prompt": "Write well.", "mcp_config": {}}
    bud = update_bud(bud=bud, actor=actor, values=values, provider_id=None, has_provider=True)
    provider_id = str(provider.pk)
    provider.delete()
    gone.delete()
    McpTool.objects.for_workspace(tenant.workspace).filter(server=kept).delete()
    stored_tool(kept, name="other")
    page = tenant.client("admin").post(editor(tenant, bud, "versions/1/restore/"), follow=True)
    text = page.content.decode()
    assert "a provider that was deleted" in text
    assert provider_id not in text
    for words in (
        "Version 1 is back.",
        "Its model provider was deleted",
        "Servers that are gone were left out: 1.",
        "Tools that are gone were left out: garden.echo.",
        "The tool that it has to use is gone: echo.",
    ):
        assert words in text
    bud.refresh_from_db()
    assert (bud.system_prompt, bud.model, bud.provider_id) == ("Write.", "", None)
    assert bud.mcp.servers == [kept.pk]
    assert (bud.mcp.disabled_tools, bud.mcp.tool_choice) == ([], None)


def test_a_bud_that_lost_a_server_can_be_copied(tenant: Tenant) -> None:
    """REL-1305: the copy names what is there."""
    gone = http_server(tenant, "https://gone.example.org/mcp", name="gone")
    bud = make_bud(tenant, mcp_config={"servers": [str(gone.pk)]}, takes_all_tools=False)
    gone.delete()
    copy = duplicate_bud(bud=bud, actor=tenant.actor("admin"))
    assert copy.mcp.servers == []


def test_a_version_names_what_changed_as_the_editor_does(tenant: Tenant) -> None:
    """REL-767."""
    bud = make_bud(tenant, system_prompt="Write.")
    values = {"system_prompt": "Write well.", "parameters": {"temperature": 0.5}}
    update_bud(bud=bud, actor=tenant.actor("admin"), values=values)
    page = tenant.client("admin").get(editor(tenant, bud, "versions/")).content.decode()
    assert '<summary class="link-quiet">Instructions</summary>' in page
    assert '<summary class="link-quiet">Parameters of the model</summary>' in page
    assert "system_prompt" not in page


def test_a_version_tells_tools_and_switches_as_people_know_them(tenant: Tenant) -> None:
    """REL-1272: servers by their names, as on the page of another person's change; what is gone keeps its id."""
    server, gone = (
        http_server(tenant, f"https://{name}.example.org/mcp", name=name)
        for name in ("garden", "gone")
    )
    stored_tool(server)
    bud = make_bud(tenant)
    config = {"servers": [str(server.pk)], "disabled_tools": [f"{server.pk}.echo"]}
    values = {"mcp_config": config, "takes_all_tools": False}
    update_bud(bud=bud, actor=tenant.actor("owner"), values=values)
    update_bud(
        bud=bud, actor=tenant.actor("owner"), values={"mcp_config": {"servers": [str(gone.pk)]}}
    )
    gone_id = str(gone.pk)
    gone.delete()
    client = tenant.client("admin")
    versions = client.get(editor(tenant, bud, "versions/"))
    changed = client.post(editor(tenant, bud), form_of(base_version="1")).context["changed"]
    first = versions.context["versions"][1]["changes"]
    for changes in (first, changed["fields"]):
        content = {
            one["label"]: "\n".join("".join(line) for line in one["lines"]) for one in changes
        }
        everything = content["Use every server of the workspace, also those added later"]
        assert everything.splitlines() == ["-yes", "+no"]
    assert '"garden"' in str(first)
    assert '"garden.echo"' in str(first)
    assert str(server.pk) not in versions.content.decode()
    assert gone_id in versions.content.decode()


def test_a_bud_from_before_versions_keeps_what_it_was(tenant: Tenant) -> None:
    """REL-445."""
    bud = Bud.objects.create(
        workspace=tenant.workspace, slug="old", name="Old", system_prompt="Before"
    )
    update_bud(bud=bud, actor=tenant.actor("admin"), values={"system_prompt": "After"})
    rows = BudVersion.objects.for_workspace(tenant.workspace).filter(bud=bud)
    assert [row.values["system_prompt"] for row in rows] == ["After", "Before"]


def test_two_people_saving_the_same_bud_lose_nothing(tenant: Tenant) -> None:
    """REL-446: the second is shown what the first changed, and keeps what they typed."""
    bud = make_bud(tenant, system_prompt="Write.")
    update_bud(bud=bud, actor=tenant.actor("owner"), values={"system_prompt": "Owner's words"})
    client = tenant.client("admin")
    sent = form_of(base_version="1", system_prompt="Admin's words")
    answer = client.post(editor(tenant, bud), sent)
    assert answer.status_code == 409
    text = answer.content.decode()
    assert tenant.owner.email in text
    assert "Owner&#x27;s words" in text
    assert "Admin&#x27;s words" in text
    kept = Bud.objects.for_workspace(tenant.workspace).fetch(bud.pk)
    assert kept.system_prompt == "Owner's words"
    again = client.post(editor(tenant, bud), {**sent, "base_version": "2"})
    assert again.status_code == 302
    head = {"X-Workspace": tenant.workspace.slug}
    late = client.patch(
        f"/api/buds/{bud.pk}/",
        data=json.dumps({"name": "Late", "version": 1}),
        content_type="application/json",
        headers=head,
    )
    assert late.status_code == 409


def test_the_editor_tells_faults_at_the_field_and_keeps_what_was_typed(tenant: Tenant) -> None:
    """REL-447: a tool that was removed while the editor was open is named."""
    client = tenant.client("admin")
    made = client.post(editor(tenant), form_of(system_prompt="Be kind"))
    assert made.status_code == 302
    bud = Bud.objects.for_workspace(tenant.workspace).get()
    assert (bud.system_prompt, bud.colour, bud.takes_all_tools) == ("Be kind", "blue", True)
    gone = json.dumps({"available_tools": ["notes.gone"]})
    answer = client.post(
        editor(tenant, bud), form_of(base_version="1", mcp_config=gone, system_prompt="New words")
    )
    assert answer.status_code == 422
    assert "There is no tool “notes.gone”" in answer.content.decode()
    assert "New words" in answer.content.decode()
    for wrong in ({"mcp_config": "[1]"}, {"model": "x|y"}, {"temperature": "9"}, {"colour": "x"}):
        assert client.post(editor(tenant, bud), form_of(**wrong)).status_code == 422, wrong


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_tokens", "tool_protocol"])
def test_the_folded_part_is_open_where_a_fault_is_in_it(tenant: Tenant, name: str) -> None:
    """REL-1260."""
    client = tenant.client("admin")
    assert '<details class="more" >' in client.get(editor(tenant)).content.decode()
    answer = client.post(editor(tenant), form_of(**{name: "-9"}))
    assert answer.status_code == 422
    assert '<details class="more" open>' in answer.content.decode()


def test_tools_that_went_while_the_editor_was_open_take_no_other_choice_with_them(
    tenant: Tenant,
) -> None:
    """REL-447: the page that tells it has what was chosen, without what has gone."""
    bud = make_bud(tenant)
    server = http_server(tenant, "https://time.example.org/mcp", name="time")
    stored_tool(server, "now")
    stored_tool(server, "gone", removed_at=timezone.now())
    sent = {"servers": [str(server.pk)], "disabled_tools": [f"{server.pk}.gone"]}
    page = tenant.client("admin").post(
        editor(tenant, bud), form_of(base_version="1", mcp_config=json.dumps(sent))
    )
    assert "There is no tool “time.gone”" in page.content.decode()
    assert page.context["picker"]["config"] == {**sent, "disabled_tools": []}


def test_only_those_who_may_edit_open_the_editor(tenant: Tenant) -> None:
    """SEC-351."""
    bud = make_bud(tenant)
    member = tenant.client("member")
    for path in ("", "versions/", "quality/", "bud.yaml"):
        assert member.get(editor(tenant, bud, path)).status_code == 403, path
    assert member.get(editor(tenant)).status_code == 403
    assert member.post(editor(tenant, None, "test/"), form_of()).status_code == 403
    with pytest.raises(PermissionDenied):
        update_bud(bud=bud, actor=tenant.actor("member"), values={"name": "Mine"})
    update_bud(bud=bud, actor=tenant.actor("admin"), values={"members_may_edit": True})
    assert member.get(editor(tenant, bud)).status_code == 200
    update_bud(bud=bud, actor=tenant.actor("member"), values={"name": "Ours"})
    with pytest.raises(PermissionDenied):
        duplicate_bud(bud=bud, actor=tenant.actor("member"))


def test_a_bud_of_ones_own_is_nobody_elses(tenant: Tenant) -> None:
    """SEC-351: neither listed, nor read, nor chatted with, not even by the owner."""
    bud = make_bud(tenant, visibility="owner")
    head = {"X-Workspace": tenant.workspace.slug}
    for role, status in (("admin", 200), ("owner", 404), ("member", 404)):
        client = tenant.client(role)
        found = client.get("/api/buds/", headers=head).json()["results"]
        assert bool(found) is (role == "admin"), role
        assert client.get(f"/api/buds/{bud.pk}/", headers=head).status_code == status
        assert client.get(editor(tenant, bud)).status_code == status
        made = client.post(
            "/api/conversations/",
            data=json.dumps({"bud_id": str(bud.pk)}),
            content_type="application/json",
            headers=head,
        )
        assert made.status_code == (201 if status == 200 else 404)


def test_a_copy_has_a_name_of_its_own(tenant: Tenant) -> None:
    """REL-448."""
    bud = make_bud(tenant, system_prompt="Write.")
    made = duplicate_bud(bud=bud, actor=tenant.actor("admin"))
    other = duplicate_bud(bud=bud, actor=tenant.actor("admin"))
    assert [made.slug, other.slug] == ["writer-2", "writer-3"]
    assert (made.name, made.system_prompt, made.version) == ("Writer (copy)", "Write.", 1)


def test_a_bud_goes_into_a_file_and_comes_back_the_same(two_workspaces: TwoTenants) -> None:
    """REL-448: names instead of ids, so it can be taken to another workspace."""
    tenant, other = two_workspaces.a, two_workspaces.b
    bud = make_bud(
        tenant,
        system_prompt="Write.\nWell.",
        starter_prompts=["Hello"],
        parameters={"temperature": 0.5},
        colour="pink",
        takes_all_tools=False,
    )
    text = write_bud(bud)
    assert str(bud.pk) not in text
    there, applied = apply_bud(
        text, workspace_id=other.workspace.pk, person=other.admin, actor=other.actor("admin")
    )
    assert applied is BudFileEffect.MADE
    assert write_bud(there) == text
    again, applied = apply_bud(
        text, workspace_id=other.workspace.pk, person=other.admin, actor=other.actor("admin")
    )
    assert (again.pk, applied, again.version) == (there.pk, BudFileEffect.NOTHING, 1)


def test_importing_a_bud_says_what_it_did_and_asks_for_a_file(tenant: Tenant) -> None:
    """REL-954: a file that changes nothing is told as such, and no file is asked for."""
    url, client = editor(tenant, None, "import/"), tenant.client("admin")
    empty = client.post(url, {"text": "  "})
    assert empty.status_code == 422
    assert "Choose a file, or paste its text." in empty.content.decode()
    for text, message in (
        ("name: Poet\nslug: poet", "Poet is ready."),
        ("name: Poet\nslug: poet", "Poet is as the file says already. Nothing was changed."),
        ("name: Bard\nslug: poet", "Bard was changed by the file."),
    ):
        page = client.post(url, {"text": text}, follow=True)
        assert [str(one) for one in page.context["messages"]] == [message]


def file_of(text: str) -> SimpleUploadedFile:
    return SimpleUploadedFile("bud.yaml", text.encode(), content_type="application/yaml")


def test_neither_a_file_nor_the_text_beside_it_is_dropped_silently(tenant: Tenant) -> None:
    """REL-1482: one of the two is asked for, and the text stays. A file goes before what an earlier file left there."""
    url, client = editor(tenant, None, "import/"), tenant.client("admin")
    mine, file = "name: Mine\nslug: mine", "name: Filed\nslug: filed"
    both = client.post(url, {"text": mine, "file": file_of(file)})
    assert both.status_code == 422
    assert "Empty the field, or send the text without a file." in both.content.decode()
    assert both.context["given"].text == mine
    assert not Bud.objects.for_workspace(tenant.workspace).exists()
    faulty = client.post(url, {"text": "", "file": file_of("\nname: Filed\nslug: not a slug\n")})
    assert (faulty.status_code, faulty.context["given"].fault) == (422, "")
    shown = {
        "text": "name: Filed\r\nslug: not a slug\r\n",  # as browsers send what stood in the field
        "text_of_file": faulty.context["given"].of_file,
    }
    changed = client.post(url, {**shown, "text": f"{shown['text']}# mine", "file": file_of(file)})
    assert "Empty the field" in changed.content.decode()
    binary = SimpleUploadedFile("bud.yaml", b"\xff\xfe")
    assert "not UTF-8 text" in client.post(url, {**shown, "file": binary}).content.decode()
    assert "This file is empty." in client.post(url, {"file": file_of(" \n")}).content.decode()
    assert client.post(url, {**shown, "file": file_of(file)}).status_code == 302
    assert Bud.objects.for_workspace(tenant.workspace).get().slug == "filed"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("name: X\nslug: x\ncolor: red", "color"),
        ("name: X\nslug: x\ntools: {server: [a]}", "tools.server"),
        ("name: X\nslug: x\ntools: {servers: [nowhere]}", "tools.servers"),
        ("name: X\nslug: x\nprovider: nobody", "provider"),
        ("name: X\nslug: x\nparameters: {temperature: 9}", "parameters.temperature"),
        ("name: X\nslug: not a slug", "slug"),
        ("slug: x", "name"),
        ("- a list", "file"),
        ("a: [", "file"),
        ("a: !!python/object:os.system {}", "file"),
    ],
)
def test_a_wrong_file_changes_nothing_and_names_the_field(
    tenant: Tenant, text: str, field: str
) -> None:
    """REL-448."""
    with pytest.raises(InvalidInput) as raised:
        apply_bud(
            text,
            workspace_id=tenant.workspace.pk,
            person=tenant.admin,
            actor=tenant.actor("admin"),
        )
    assert field in raised.value.fields
    assert not Bud.objects.for_workspace(tenant.workspace).exists()
    page = tenant.client("admin").post(editor(tenant, None, "import/"), {"text": text})
    assert page.status_code == 422
    assert field in page.content.decode()


def test_names_of_another_workspaces_servers_mean_nothing(two_workspaces: TwoTenants) -> None:
    """SEC-352."""
    from mcp_servers.models import McpServer

    tenant, other = two_workspaces.a, two_workspaces.b
    row = McpServer.objects.create(
        workspace=other.workspace, name="theirs", transport="streamable_http"
    )
    for named in ("theirs", str(row.pk)):
        with pytest.raises(InvalidInput):
            apply_bud(
                f"name: X\nslug: x\ntools: {{servers: ['{named}']}}",
                workspace_id=tenant.workspace.pk,
                person=tenant.admin,
                actor=tenant.actor("admin"),
            )


def test_versions_of_one_number_are_refused(tenant: Tenant) -> None:
    """REL-446."""
    bud = make_bud(tenant)
    update_bud(bud=bud, actor=tenant.actor("admin"), values={"name": "A"}, base_version=1)
    with pytest.raises(Conflict):
        update_bud(bud=bud, actor=tenant.actor("admin"), values={"name": "B"}, base_version=1)


@pytest.mark.both_engines
def test_a_test_chat_uses_the_unsaved_draft_and_litters_nothing(chat: Chat) -> None:
    """REL-449: through the same engine and gate; it is in no list, and goes with the next one."""
    tenant = chat.tenant
    client = tenant.client("admin")
    config = json.dumps({"servers": [str(chat.row.pk)]})
    sent = form_of(
        bud=str(chat.bud.pk),
        slug="bud",
        model=f"{chat.bud.provider_id}|",
        mcp_config=config,
        system_prompt="You are a draft",
        start="1",
    )
    where = editor(tenant, None, "test/")
    url = client.post(where, sent).json()["url"]
    draft = Bud.objects.for_workspace(tenant.workspace).get(is_draft=True)
    talk = Conversation.objects.for_workspace(tenant.workspace).get(bud=draft)
    assert str(talk.pk) in url
    frame = client.get(url)
    assert frame.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in frame.headers["Content-Security-Policy"]
    actor = tenant.actor("admin")
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("Tested")
    tried = Chat(tenant, draft, talk, actor, chat.model, chat.server, chat.row)
    tried.ask("Try")
    assert chat.model.requests[0]["messages"][0]["content"] == "You are a draft"
    assert chat.server.calls == [("echo", {"text": "hi"})]
    logged = AuditEntry.objects.for_workspace(tenant.workspace)
    assert logged.filter(action=Action.TOOL_CALL_FINISHED.value, bud_id=draft.pk).exists()
    kept = Bud.objects.for_workspace(tenant.workspace).fetch(chat.bud.pk)
    assert (kept.system_prompt, kept.version) == ("", 1)
    head = {"X-Workspace": tenant.workspace.slug}
    assert client.get("/api/conversations/", headers=head).json()["results"] == []
    assert client.get("/api/search/?q=Tested", headers=head).json() == []
    assert [one["id"] for one in client.get("/api/buds/", headers=head).json()["results"]] == [
        str(chat.bud.pk)
    ]
    assert tenant.client("owner").get(f"/api/buds/{draft.pk}/", headers=head).status_code == 404
    client.post(where, sent)
    talks = Conversation.objects.for_workspace(tenant.workspace).filter(bud=draft)
    assert [one.pk for one in talks] != [talk.pk]
    assert talks.count() == 1
    tried.watching.close()


@pytest.mark.both_engines
def test_drafts_are_forgotten_after_a_day(chat: Chat) -> None:
    """REL-449."""
    from datetime import timedelta

    from django.utils import timezone

    tenant = chat.tenant
    sent = form_of(bud=str(chat.bud.pk), model=f"{chat.bud.provider_id}|", start="1")
    OutsideWrite.objects.all().delete()
    tenant.client("admin").post(editor(tenant, None, "test/"), sent)
    assert forget_old_drafts() == 0
    assert not OutsideWrite.objects.exists(), "the log knows each draft"
    long_ago = timezone.now() - timedelta(days=2)
    draft = Bud.objects.for_workspace(tenant.workspace).get(is_draft=True)
    Bud.objects.for_workspace(tenant.workspace).filter(pk=draft.pk).update(updated_at=long_ago)
    rows = Conversation.objects.for_workspace(tenant.workspace).filter(bud_id=draft.pk)
    rows.update(last_message_at=long_ago)
    OutsideWrite.objects.all().delete()
    assert forget_old_drafts() == 1
    assert not OutsideWrite.objects.exists(), "the log knows each draft"
    assert not Bud.objects.for_workspace(tenant.workspace).filter(is_draft=True).exists()


def test_quality_counts_a_buds_turns_and_faulty_tools(chat: Chat) -> None:
    """REL-450."""
    chat.model.call(("counting__fail", {"text": "no"}))
    chat.model.say("It failed")
    rate_turn(turn=chat.ask(), rating=Rating.BAD, actor=chat.actor)
    tenant = chat.tenant
    page = tenant.client("admin").get(editor(tenant, chat.bud, "quality/"))
    found = page.context["found"]
    assert (found.turns, found.people, found.failed) == (1, 1, 0)
    assert (found.liked, found.disliked) == (0, 1)
    assert [(one.tool, one.failed) for one in found.tools] == [("fail", 1)]
    head = {"X-Workspace": tenant.workspace.slug}
    body = tenant.client("admin").get(f"/api/buds/{chat.bud.pk}/quality/", headers=head).json()
    assert body["tools"][0]["tool"] == "fail"


def test_quality_keeps_what_failed_under_an_earlier_name(chat: Chat) -> None:
    """REL-1268: the page counts the same calls as the log that it leads to."""
    chat.model.call(("counting__fail", {"text": "no"}))
    chat.model.say("It failed")
    chat.ask()
    update_bud(bud=chat.bud, actor=chat.tenant.actor("admin"), values={"name": "Renamed"})
    page = chat.tenant.client("admin").get(editor(chat.tenant, chat.bud, "quality/"))
    assert [(one.tool, one.failed) for one in page.context["found"].tools] == [("fail", 1)]


def test_quality_counts_no_call_that_was_stopped_as_failed(tenant: Tenant) -> None:
    """REL-2521: as the log that the page leads to."""
    bud, actor = make_bud(tenant), tenant.actor("admin")
    for outcome in Outcome:
        record(
            EntryDraft(
                action=Action.TOOL_CALL_FINISHED,
                actor=actor,
                workspace_id=tenant.workspace.pk,
                outcome=outcome,
                bud=Ref(id=bud.pk, name=bud.name),
                tool=Ref(id=None, name="echo"),
            )
        )
    (echo,) = quality_of(bud=bud, actor=actor).tools
    assert (echo.calls, echo.failed) == (len(Outcome), len(Outcome) - 2)


def test_quality_tells_the_cost_as_other_pages_do(chat: Chat) -> None:
    """REL-1268: in the person's way of writing numbers, and what it leaves out."""
    turns = [chat.ask(), chat.ask(), chat.ask()]
    client = chat.tenant.client("admin")

    def page() -> str:
        return str(client.get(editor(chat.tenant, chat.bud, "quality/")).content.decode())

    rows = Turn.objects.for_workspace(chat.tenant.workspace)
    rows.update(cost=None, prompt_tokens=5)
    assert "<dt>Cost</dt><dd>unknown</dd>" in page()
    rows.filter(pk=turns[0].pk).update(cost=Decimal("1234.5"))
    assert "<dt>Cost</dt><dd>1,234.5000</dd>" in page()
    assert "The cost leaves out 2 questions whose models have no known price." in page()
    rows.update(cost=Decimal("0.25"))
    assert "<dt>Cost</dt><dd>0.7500</dd>" in page()
    assert "The cost leaves out" not in page()


def test_programs_do_what_the_editor_does(tenant: Tenant) -> None:
    """REL-447, REL-448."""
    client, head = tenant.client("admin"), {"X-Workspace": tenant.workspace.slug}

    def post(path: str, body: Any) -> Any:
        return client.post(
            f"/api/buds/{path}",
            data=json.dumps(body),
            content_type="application/json",
            headers=head,
        )

    bud = make_bud(tenant)
    text = client.get(f"/api/buds/{bud.pk}/export/", headers=head).json()["yaml"]
    changed = post("import/", {"yaml": text.replace("name: Writer", "name: Author")})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert post("import/", {"yaml": "slug: x"}).status_code == 422
    assert post(f"{bud.pk}/restore/", {"number": 1}).json()["name"] == "Writer"
    assert post(f"{bud.pk}/restore/", {"number": 1, "version": 1}).status_code == 409
    assert post(f"{bud.pk}/restore/", {"number": 99}).status_code == 404
    assert post(f"{bud.pk}/duplicate/", {}).status_code == 201
    versions = client.get(f"/api/buds/{bud.pk}/versions/", headers=head).json()
    assert [one["number"] for one in versions["results"]] == [3, 2, 1]
    assert versions["next"] is None


def test_tools_that_no_bud_gets_are_named_with_the_reason(tenant: Tenant) -> None:
    """REL-2723: switched off, blocked, not accepted yet or unusable, or of a server that is off."""
    server, off = (
        http_server(tenant, f"https://{name}.example.org/mcp", name=name) for name in ("a", "b")
    )
    McpServer.unscoped.filter(pk=off.pk).update(is_active=False)
    stored_tool(off, "there")
    stored_tool(server, "good")
    stored_tool(server, "gone", removed_at=timezone.now())
    stored_tool(server, "off", is_enabled=False)
    stored_tool(server, "blocked", approval_override=ApprovalOverride.DENY)
    stored_tool(server, "new", approved_hash="")
    stored_tool(server, "odd", problem="Its schema is no object.")
    picker = tenant.client("admin").get(editor(tenant, make_bud(tenant))).context["picker"]
    left_out = {one["name"]: one["left_out"] for one in picker["servers"]}
    assert left_out == {
        "a": {
            "blocked": "An administrator has blocked this tool.",
            "new": "This tool is new or has changed. An administrator has to accept it first.",
            "odd": "This tool cannot be used: Its schema is no object.",
            "off": "This tool is switched off.",
        },
        "b": {"there": "The server of this tool is switched off."},
    }


def test_thousands_of_tools_come_when_somebody_turns_to_them(tenant: Tenant) -> None:
    """REL-569: the page has the servers with numbers of tools, and reads these from an address."""
    bud = make_bud(tenant)
    servers = [
        http_server(tenant, f"https://{name}.example.org/mcp", name=name) for name in ("a", "b")
    ]
    stored_tool(servers[0], "gone", removed_at=timezone.now())
    for server in servers:
        stored_tool(server, "first", description="x" * 1_000)
    client = tenant.client("admin")
    few = client.get(editor(tenant, bud)).context["picker"]
    assert few["tools_url"] == ""
    assert [(one["name"], one["count"]) for one in few["servers"]] == [("a", 1), ("b", 1)]
    assert few["servers"][0]["tools"] == [{"name": "first", "title": "", "description": "x" * 300}]
    for number in range(MOST_IN_PAGE):
        stored_tool(servers[1], f"tool_{number}")
    many = client.get(editor(tenant, bud)).context["picker"]
    assert [(one["count"], one["tools"]) for one in many["servers"]] == [
        (1, []),
        (MOST_IN_PAGE + 1, []),
    ]
    answer = client.get(many["tools_url"]).json()["tools"]
    assert len(answer[str(servers[1].pk)]) == MOST_IN_PAGE + 1
    assert answer[str(servers[0].pk)] == few["servers"][0]["tools"]
    new = client.get(editor(tenant)).context["picker"]["tools_url"]
    assert client.get(new).status_code == 200
    member = tenant.client("member")
    assert member.get(many["tools_url"]).status_code == 403
    assert member.get(new).status_code == 403
    assert client.get(f"{new}?bud=nonsense").status_code == 422
