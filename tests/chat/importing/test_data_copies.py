"""Copies of a person's data: whole, theirs alone, kept for some days, and read back by the import."""

from __future__ import annotations

import io
import json
import random
import tempfile
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from django.core.files.base import ContentFile
from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from audit.models import AuditEntry, Notice
from chat.artifacts import storage
from chat.artifacts.cleaning_up import sweep
from chat.artifacts.services import add_version, create_artifact
from chat.artifacts.storage import artifact_storage
from chat.importing import packed, streaming
from chat.importing.reading import UnreadableImport
from chat.models import (
    ArtifactVersion,
    Attachment,
    Bud,
    ChatImport,
    Conversation,
    DataCopy,
    DataCopyPart,
    Draft,
    Folder,
    Message,
    Pin,
)
from chat.services import copy_chats, copy_making
from chat.services.copy_making import make_due
from chat.services.data_copies import (
    cancel_copy,
    erase_copy,
    erase_old,
    record_download,
    request_copy,
)
from chat.services.import_reading import read_due
from chat.services.imports import start_import
from chat.services.person_jobs import FORGOTTEN_DAYS
from chat.values import ArtifactOrigin
from tests.factories import Tenant, TwoTenants, make_tenant
from tests.memory import memory_of
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.models import Membership
from workspaces.people.services import remove_member

SECRET = "sk-proj-" + "a1B2c3D4" * 6
BEGAN = datetime(2024, 3, 1, 9, 30, tzinfo=UTC)


@pytest.fixture
def acme(db: None) -> Tenant:
    return make_tenant("acme")


@pytest.fixture
def beech(db: None) -> Tenant:
    return make_tenant("beech")


def bud_of(tenant: Tenant, **values: Any) -> Bud:
    rows = Bud.objects.for_workspace(tenant.workspace)
    slug = values.setdefault("slug", "bud")
    made: Bud | None = rows.filter(slug=slug).first()
    return made or Bud.objects.create(workspace=tenant.workspace, name="Bud", **values)


def say(chat: Conversation, text: str, parent: Message | None, minute: int) -> Message:
    """A message of a branch, as if it had been said then."""
    role = "user" if parent is None or parent.role == "assistant" else "assistant"
    message = Message.objects.create(
        workspace_id=chat.workspace_id,
        conversation=chat,
        parent=parent,
        role=role,
        text=text,
        status="complete",
        order_key=minute,
    )
    at = BEGAN + timedelta(minutes=minute)
    Message.objects.for_workspace(chat.workspace_id).filter(pk=message.pk).update(created_at=at)
    return message


def a_chat(tenant: Tenant, title: str = "Radish planning", **values: Any) -> Conversation:
    """A chat with two answers to its question, of which the first is shown, and a second question below it."""
    chat = Conversation.objects.create(
        workspace=tenant.workspace,
        owner=tenant.member,
        bud=bud_of(tenant),
        title=title,
        title_source="person",
        **values,
    )
    asked = say(chat, f"When do I sow? {title}", None, 1)
    answer = say(chat, "In April.", asked, 2)
    say(chat, "In July.", asked, 3)
    leaf = say(chat, "And turnips?", answer, 4)
    Conversation.objects.for_workspace(tenant.workspace).filter(pk=chat.pk).update(
        leaf=leaf, created_at=BEGAN, last_message_at=BEGAN + timedelta(minutes=4)
    )
    chat.refresh_from_db()
    return chat


def with_file(tenant: Tenant, chat: Conversation) -> ArtifactVersion:
    """Attach the first of a file's two versions to the chat's question."""
    saved = create_artifact(
        conversation=chat,
        name="plan.md",
        content=b"# First plan",
        actor=tenant.actor("member"),
        origin=ArtifactOrigin.UPLOAD,
    )
    add_version(
        artifact=saved.artifact,
        content=b"# Second plan",
        actor=tenant.actor("member"),
        origin=ArtifactOrigin.MODEL,
    )
    question = Message.objects.for_workspace(tenant.workspace).filter(conversation=chat)[0]
    Attachment.objects.create(
        workspace=tenant.workspace,
        message=question,
        position=0,
        version=saved.version,
        title="plan.md",
        status="ready",
    )
    return saved.version


def ask(tenant: Tenant, **values: Any) -> DataCopy:
    return request_copy(
        workspace=tenant.workspace,
        owner=tenant.member,
        actor=tenant.actor("member"),
        **values,
    )


def make(tenant: Tenant, **values: Any) -> DataCopy:
    """Ask for a copy, and make it to its end."""
    row = ask(tenant, **values)
    make_due(600)
    row.refresh_from_db()
    return row


def parts_of(row: DataCopy) -> list[DataCopyPart]:
    return list(DataCopyPart.objects.for_workspace(row.workspace_id).filter(copy=row))


def opened(row: DataCopy) -> dict[str, bytes]:
    """All that is in its ZIPs."""
    found: dict[str, bytes] = {}
    for part in parts_of(row):
        with zipfile.ZipFile(io.BytesIO(storage.read(part.path))) as opened_part:
            assert opened_part.testzip() is None
            found |= {one: opened_part.read(one) for one in opened_part.namelist()}
    return found


def chats_in(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [json.loads(files[name]) for name in sorted(files) if name.endswith("/chat.json")]


def bring(tenant: Tenant, content: bytes) -> ChatImport:
    row = start_import(
        workspace=tenant.workspace,
        owner=tenant.member,
        bud=bud_of(tenant),
        name="copy.zip",
        file=ContentFile(content),
        actor=tenant.actor("member"),
    )
    read_due(600)
    row.refresh_from_db()
    return row


def same(files: Mapping[str, bytes]) -> list[Any]:
    """What is the same of chats wherever they are: all but ids."""
    found = []
    for chat in chats_in(files):
        texts = {one["id"]: one["text"] for one in chat["messages"]}
        names = {one["id"]: one["name"] for one in chat["files"]}
        found.append(
            {
                "told": [chat[key] for key in ("title", "created_at", "updated_at", "folder")],
                "flags": [chat["is_pinned"], chat["is_archived"]],
                "leaf": texts[chat["leaf"]],
                "messages": [
                    (
                        one["role"],
                        one["text"],
                        one["created_at"],
                        texts.get(one["parent"]),
                        [(names[it["file"]], it["version"]) for it in one["attachments"]],
                    )
                    for one in chat["messages"]
                ],
                "files": [
                    (one["name"], [(it["number"], it["sha256"]) for it in one["versions"]])
                    for one in chat["files"]
                ],
                "contents": sorted(
                    files[it["path"]] for one in chat["files"] for it in one["versions"]
                ),
            }
        )
    return sorted(found, key=lambda one: one["told"][0])


@pytest.mark.both_engines
def test_a_copy_comes_back_elsewhere_as_it_was(acme: Tenant, beech: Tenant) -> None:
    """REL-1070, REL-1073: chats with branches, times, folders and files, and the same once more from there."""
    folder = Folder.objects.create(
        workspace=acme.workspace, owner=acme.member, name="Garden", colour="blue"
    )
    with_file(acme, a_chat(acme, folder=folder, is_pinned=True))
    a_chat(acme, "Turnips", is_archived=True)
    first = make(acme)
    assert (first.status, first.total, first.position, first.files) == ("ready", 2, 2, 2)
    files = opened(first)
    row = bring(beech, storage.read(parts_of(first)[0].path))
    assert (row.status, row.origin, row.imported, row.files) == ("done", "trellis", 2, 2)
    assert (row.left_out, row.files_left_out) == (0, 0)
    again = make(beech)
    assert same(opened(again)) == same(files)
    # Not beside the chats that it was made of, and not twice.
    assert bring(acme, storage.read(parts_of(first)[0].path)).imported == 0
    assert bring(beech, storage.read(parts_of(first)[0].path)).imported == 0
    assert Conversation.objects.for_workspace(beech.workspace).count() == 2


def test_a_copy_holds_what_is_the_persons_and_nothing_of_others(acme: Tenant) -> None:
    """REL-1070, SEC-510: all branches as JSON, the shown path as Markdown, settings, own buds; nothing deleted."""
    chat = a_chat(acme)
    a_chat(acme, "Deleted", deleted_at=timezone.now())
    a_chat(acme, "For now", is_temporary=True)
    bud_of(acme, slug="mine", owner=acme.member, system_prompt="Own words")
    bud_of(acme, slug="theirs", owner=acme.admin, system_prompt="Hidden words", visibility="owner")
    others = Conversation.objects.create(
        workspace=acme.workspace, owner=acme.admin, bud=bud_of(acme), title="Of the admin"
    )
    say(others, "Words of the admin", None, 1)
    Draft.objects.create(
        workspace=acme.workspace,
        owner=acme.member,
        conversation=chat,
        text="An unsent draft",
        written_at=timezone.now(),
    )
    Pin.objects.create(workspace=acme.workspace, owner=acme.member, bud=bud_of(acme))
    acme.member.shortcuts = {"is_on": False}
    acme.member.save()
    files = opened(make(acme))
    text = b"\n".join(files.values()).decode()
    titles = {one["title"] for one in chats_in(files)}
    assert titles == {"Radish planning", "For now"}
    shown = next(
        text for name, text in files.items() if name.endswith(f"{chat.pk.hex[-8:]}/chat.md")
    ).decode()
    assert "In April." in shown
    assert "In July." not in shown
    (tree,) = [one for one in chats_in(files) if one["id"] == str(chat.pk)]
    assert [one["text"] for one in tree["messages"]][1:3] == ["In April.", "In July."]
    assert "Own words" in files["account/buds/mine.yaml"].decode()
    assert json.loads(files["account/drafts.json"])[0]["text"] == "An unsent draft"
    assert json.loads(files["account/pins.json"]) == [{"bud": "Bud", "model": None}]
    assert json.loads(files["account/profile.json"])["shortcuts"] == {"is_on": False}
    assert "Your data from" in files["README.md"].decode()
    for foreign in ("Hidden words", "Words of the admin", "Of the admin", acme.admin.email):
        assert foreign not in text


def test_a_copy_holds_no_secret(acme: Tenant) -> None:
    """SEC-510, SEC-539: neither what looks like one in a text, nor tokens, links and keys that are stored."""
    from chat.models import ShareAudience
    from chat.services.sharing import ShareChoice, link_of, share_conversation
    from mcp_servers.models import (
        ClientSignIn,
        ClientToken,
        KnownClient,
        KnownVia,
        McpServer,
        OAuthClient,
        OAuthGrant,
    )

    chat = a_chat(acme, f"Key {SECRET}")
    say(chat, f"My key is {SECRET}", None, 9)
    bud_of(acme, slug="mine", owner=acme.member, system_prompt=f"Use {SECRET}")
    Draft.objects.create(
        workspace=acme.workspace,
        owner=acme.member,
        conversation=chat,
        text=SECRET,
        written_at=timezone.now(),
    )
    shared = share_conversation(
        conversation=chat,
        choice=ShareChoice(audience=ShareAudience.WORKSPACE),
        actor=acme.actor("member"),
    )
    server = McpServer.objects.create(
        workspace=acme.workspace,
        name="Notes",
        transport="streamable_http",
        url="https://notes.example.org/mcp?key=geheim-in-der-adresse",
        scope="personal",
        owner=acme.member,
        is_active=False,
    )
    client = OAuthClient.objects.create(
        workspace=acme.workspace,
        server=server,
        issuer="https://a.example.org",
        client_id="c",
        metadata={},
    )
    tokens: Any = {"access_token": "geheimes-token"}
    OAuthGrant.objects.create(
        workspace=acme.workspace,
        server=server,
        user=acme.member,
        client=client,
        issuer="https://a.example.org",
        token_endpoint="https://a.example.org/t",
        endpoint=server.url,
        resource=server.url,
        tokens=tokens,
        account="me@notes.example.org",
        granted_at=timezone.now(),
    )
    sign_in = ClientSignIn.objects.create(
        workspace=acme.workspace,
        client=KnownClient.objects.create(
            client_id="rake", via=KnownVia.REGISTRATION, name="Rake", read_at=timezone.now()
        ),
        user=acme.member,
        client_name="Rake",
        redirect_host="127.0.0.1",
        scopes=["mcp:read"],
        proof="geheimer-nachweis",
        begun_at=timezone.now(),
        expires_at=timezone.now() + timedelta(days=1),
    )
    ClientToken.objects.create(
        workspace=acme.workspace,
        sign_in=sign_in,
        kind="access",
        token_hash="geheimer-hash",
        expires_at=sign_in.expires_at,
    )
    row = make(acme)
    assert row.status == "ready", row.error
    files = opened(row)
    names = "\n".join(files)
    text = b"\n".join(files.values()).decode()
    link = link_of(shared).rstrip("/").rsplit("/", 1)[-1]
    for secret in (SECRET, "geheim", link, acme.member.password):
        assert secret not in text
        assert secret not in names
    (account, own) = json.loads(files["account/connections.json"])
    assert (account["server"], account["account"]) == ("Notes", "me@notes.example.org")
    assert own["own_server"] == "Notes"
    assert json.loads(files["account/shared-chats.json"])[0]["audience"] == "workspace"
    (let_in,) = json.loads(files["account/mcp-clients.json"])
    assert (let_in["name"], let_in["scopes"]) == ("Rake", ["mcp:read"])


def test_one_copy_at_a_time_and_the_newer_takes_the_place_of_the_older(acme: Tenant) -> None:
    """REL-1071: a second one waits for the first. Cancelled and erased ones leave nothing."""
    a_chat(acme)
    first = make(acme)
    path = parts_of(first)[0].path
    second = ask(acme)
    with pytest.raises(Conflict):
        ask(acme)
    with TestCase.captureOnCommitCallbacks(execute=True):
        make_due(600)
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == ("erased", "ready")
    assert not artifact_storage().exists(path)
    third = ask(acme)
    cancel_copy(row=third, actor=acme.actor("member"))
    assert third.status == "cancelled"
    assert make_due() == 0
    with pytest.raises(Conflict):
        cancel_copy(row=third, actor=acme.actor("member"))
    kept = parts_of(second)[0].path
    with TestCase.captureOnCommitCallbacks(execute=True):
        erase_copy(row=second, actor=acme.actor("member"))
    assert not artifact_storage().exists(kept)
    assert not DataCopyPart.objects.for_workspace(acme.workspace).exists()


def test_a_process_that_dies_leaves_no_half_file(acme: Tenant) -> None:
    """REL-1072: another one goes on with the last whole ZIP, no chat is in it twice, and none is missing."""
    for number in range(5):
        a_chat(acme, f"Chat {number}")
    row = ask(acme)
    with patch.object(copy_making, "_BATCH", 2):
        make_due(0.0001)  # one chat, and the time is up
        row.refresh_from_db()
        assert (row.status, row.position, row.alive_until) == ("running", 1, None)
        (part,) = parts_of(row)
        assert len(chats_in(opened(row))) == 1
        written: list[Any] = []
        write = copy_chats.write_chat

        def dies(*args: Any, **kwargs: Any) -> Any:
            written.append(write(*args, **kwargs))
            if len(written) == 2:
                raise KeyboardInterrupt
            return written[-1]

        with patch.object(copy_making, "write_chat", dies), pytest.raises(KeyboardInterrupt):
            make_due(600)
        assert parts_of(row) == [part]
        assert len(chats_in(opened(row))) == 1
        assert make_due(600) == 0  # the dead one is taken to be alive for a while
        DataCopy.objects.for_workspace(acme.workspace).update(alive_until=database_now())
        with TestCase.captureOnCommitCallbacks(execute=True):
            assert make_due(600) == 4
    row.refresh_from_db()
    assert (row.status, row.position) == ("ready", 5)
    titles = [one["title"] for one in chats_in(opened(row))]
    assert sorted(titles) == [f"Chat {number}" for number in range(5)]
    assert not artifact_storage().exists(part.path)


def test_a_copy_that_was_cancelled_while_it_was_written_is_not_kept(acme: Tenant) -> None:
    """REL-1072: whoever writes it finds out at the end of the round, and drops what it wrote."""
    a_chat(acme)
    row = ask(acme)
    write = copy_chats.write_chat

    def cancelled(*args: Any, **kwargs: Any) -> Any:
        cancel_copy(
            row=DataCopy.objects.for_workspace(acme.workspace).get(), actor=acme.actor("member")
        )
        return write(*args, **kwargs)

    before = contents()
    with patch.object(copy_making, "write_chat", cancelled):
        make_due(600)
    row.refresh_from_db()
    assert row.status == "cancelled"
    assert parts_of(row) == []
    assert contents() == before


def contents() -> set[str]:
    """The names of all contents in the storage."""
    found: set[str] = set()
    kept = artifact_storage()
    try:
        folders = kept.listdir("")[0]
    except FileNotFoundError:
        return found
    for folder in folders:
        for inner in kept.listdir(folder)[0]:
            found |= {f"{folder}/{inner}/{one}" for one in kept.listdir(f"{folder}/{inner}")[1]}
    return found


def test_a_large_copy_comes_in_parts_that_can_be_imported(
    acme: Tenant, beech: Tenant, settings: Settings
) -> None:
    """REL-1073: each part is a whole ZIP of its own that the import takes, and together they hold everything."""
    settings.TRELLIS = settings.TRELLIS.model_copy(
        update={"import_max_bytes": 40_000, "artifact_max_bytes": 65_536}
    )
    for number in range(6):
        chat = a_chat(acme, f"Chat {number}")
        create_artifact(
            conversation=chat,
            name="noise.png",
            content=b"\x89PNG\r\n\x1a\n" + random.Random(number).randbytes(15_000),
            actor=acme.actor("member"),
            origin=ArtifactOrigin.UPLOAD,
        )
    row = make(acme)
    parts = parts_of(row)
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    assert len(parts) > 2
    assert all(part.size < 40_000 for part in parts)
    assert sum(part.chats for part in parts) == 6
    came = [bring(beech, storage.read(part.path)) for part in parts]
    assert sum(one.imported for one in came) == 6
    assert sum(one.files for one in came) == 6
    assert same(opened(make(beech))) == same(opened(row))


def test_more_files_than_a_copy_may_hold_are_told(acme: Tenant, settings: Settings) -> None:
    """REL-1071: the reason says how much there is and what to do, and a copy without files can be made."""
    with_file(acme, a_chat(acme))
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"data_copy_max_bytes": 10})
    row = make(acme)
    assert row.status == "failed"
    assert "Ask for a copy without files" in row.error
    notice = Notice.objects.for_workspace(acme.workspace).get()
    assert (notice.user, notice.text) == (acme.member, row.error)
    row = make(acme, with_files=False)
    files = opened(row)
    assert (row.status, row.files) == ("ready", 0)
    assert chats_in(files)[0]["messages"][0]["attachments"][0]["name"] == "plan.md"
    assert not [name for name in files if "/files/" in name]


def test_a_fault_at_the_very_end_is_told_and_lets_the_copy_go(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1071: the person reads that it failed and can ask again; nothing is tried for ever."""
    a_chat(acme)
    finish = copy_making._finish

    def broken(row: DataCopy) -> None:
        finish(row)
        raise RuntimeError("the last line")

    with monkeypatch.context() as patched:
        patched.setattr(copy_making, "_finish", broken)
        row = make(acme)
    assert (row.status, row.alive_until) == ("failed", None)
    assert "Try again" in row.error
    assert [one.text for one in Notice.objects.for_workspace(acme.workspace)] == [row.error]
    assert make(acme).status == "ready"


def test_a_file_that_is_gone_is_named_and_keeps_nothing_else(acme: Tenant) -> None:
    """REL-1071: the copy is made without it."""
    version = with_file(acme, a_chat(acme))
    storage.drop([version.path])
    row = make(acme)
    assert (row.status, row.files) == ("ready", 1)
    assert row.missing == [{"chat": "Radish planning", "file": "plan.md"}]


def test_a_ready_copy_is_told_kept_for_days_and_erased(acme: Tenant, settings: Settings) -> None:
    """REL-1071: a line in the bell, the sweep that erases it, and no content that nobody names."""
    a_chat(acme)
    row = make(acme)
    notice = Notice.objects.for_workspace(acme.workspace).get()
    assert (notice.title, notice.url) == (
        "Your copy of your data is ready",
        "/w/acme/your-data/",
    )
    days = settings.TRELLIS.data_copy_days
    assert row.finished_at is not None
    assert row.expires_at == row.finished_at + timedelta(days=days)
    assert erase_old() == 0
    path = parts_of(row)[0].path
    DataCopy.objects.for_workspace(acme.workspace).update(expires_at=database_now())
    with TestCase.captureOnCommitCallbacks(execute=True):
        assert erase_old() == 1
    row = DataCopy.objects.for_workspace(acme.workspace).get()
    assert (row.status, row.expires_at) == ("erased", None)
    assert not artifact_storage().exists(path)
    DataCopy.objects.for_workspace(acme.workspace).update(
        updated_at=database_now() - timedelta(days=FORGOTTEN_DAYS + 1)
    )
    erase_old()
    assert not DataCopy.objects.for_workspace(acme.workspace).exists()


def test_contents_of_copies_are_no_orphans(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1071: the sweep of contents leaves a copy alone as long as its row is there."""
    a_chat(acme)
    row = make(acme)
    monkeypatch.setattr("chat.artifacts.cleaning_up.ORPHAN_HOURS", -1)
    path = parts_of(row)[0].path
    sweep()
    assert artifact_storage().exists(path)
    DataCopy.objects.for_workspace(acme.workspace).delete()
    sweep()
    assert not artifact_storage().exists(path)


def test_each_step_is_in_the_log_without_words(acme: Tenant) -> None:
    """SEC-512: who asked, that it was made, downloaded and erased, with counts."""
    a_chat(acme)
    row = make(acme)
    client = acme.client("member")
    client.get(f"/w/acme/your-data/{row.pk}/1/")
    erase_copy(row=row, actor=acme.actor("member"))
    entries = AuditEntry.objects.for_workspace(acme.workspace).filter(
        action__startswith="data_copy."
    )
    assert [one.action for one in entries.order_by("created_at")] == [
        "data_copy.requested",
        "data_copy.finished",
        "data_copy.downloaded",
        "data_copy.erased",
    ]
    for one in entries:
        assert one.actor_label == acme.member.email
        assert "Radish" not in str(one.details)


def test_only_the_person_can_download_a_copy(two_workspaces: TwoTenants) -> None:
    """SEC-511: no administrator, owner, superuser or other tenant, by page or REST, and not its parts by number."""
    mine, other = two_workspaces.a, two_workspaces.b
    a_chat(mine)
    row = make(mine)
    page = f"/w/{mine.workspace.slug}/your-data/"
    part = f"{page}{row.pk}/1/"
    for role in ("admin", "owner", "auditor"):
        client = mine.client(role)
        assert client.get(part).status_code == 404
        assert client.post(f"{page}{row.pk}/erase/").status_code == 404
        assert str(row.pk) not in client.get(page).content.decode()
    assert other.client("member").get(part).status_code in (403, 404)
    mine.admin.is_superuser = True
    mine.admin.save()
    assert mine.client("admin").get(part).status_code == 404
    with pytest.raises(PermissionDenied):
        record_download(part=parts_of(row)[0], actor=mine.actor("admin"))
    with pytest.raises(PermissionDenied):
        erase_copy(row=row, actor=mine.actor("owner"))
    with pytest.raises(PermissionDenied):
        request_copy(workspace=mine.workspace, owner=mine.member, actor=mine.actor("admin"))
    given = mine.client("member").get(part)
    assert given.status_code == 200
    assert "no-store" in given["Cache-Control"]
    assert mine.client("member").get(f"{page}{row.pk}/2/").status_code == 404


def test_a_download_goes_on_where_it_stopped(acme: Tenant) -> None:
    """REL-1074: by ranges, which give the same bytes."""
    a_chat(acme)
    row = make(acme)
    (part,) = parts_of(row)
    url = f"/w/acme/your-data/{row.pk}/1/"
    client = acme.client("member")
    whole = b"".join(client.get(url))
    assert whole == storage.read(part.path)
    assert client.head(url)["Content-Length"] == str(part.size)
    rest = client.get(url, headers={"range": "bytes=100-"})
    assert rest.status_code == 206
    assert rest["Content-Range"] == f"bytes 100-{part.size - 1}/{part.size}"
    assert b"".join(rest) == whole[100:]
    assert client.get(url, headers={"range": f"bytes={part.size}-"}).status_code == 416


def test_leaving_and_suspension_erase_copies(acme: Tenant) -> None:
    """SEC-513: what is ready is erased, and what is being made is not made."""
    from workspaces.people.suspending import suspend_member

    a_chat(acme)
    for end in (suspend_member, remove_member):
        row = make(acme)
        path = parts_of(row)[0].path
        later = ask(acme)
        membership = Membership.objects.for_workspace(acme.workspace).get(user=acme.member)
        with TestCase.captureOnCommitCallbacks(execute=True):
            end(membership=membership, actor=acme.actor("owner"))
        row.refresh_from_db()
        later.refresh_from_db()
        assert (row.status, later.status) == ("erased", "cancelled")
        assert not artifact_storage().exists(path)
        assert make_due() == 0
        Membership.objects.also_suspended(acme.workspace.pk).filter(user=acme.member).update(
            suspended_at=None
        )


def test_deleting_the_person_erases_their_copies(acme: Tenant) -> None:
    """SEC-513: the rows go with the person, and the sweep removes what no row names."""
    a_chat(acme)
    kept = parts_of(make(acme))[0].path
    acme.member.delete()
    with patch("chat.artifacts.cleaning_up.ORPHAN_HOURS", -1):
        sweep()
    assert not artifact_storage().exists(kept)


def test_a_long_chat_is_read_some_messages_at_a_time(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1074: it is written as a short one is, with all its branches and its shown path."""
    with_file(acme, a_chat(acme))
    whole = opened(make(acme))
    monkeypatch.setattr(copy_chats, "_BATCH", 2)
    assert (
        opened(make(acme)).items()
        >= {name: text for name, text in whole.items() if name.startswith("chats/")}.items()
    )


def test_each_chat_takes_a_few_statements(acme: Tenant) -> None:
    """REL-1074: messages, calls, other buds and attachments; as many for each of many chats."""
    counts = []
    for number in (2, 10):
        for one in range(number):
            a_chat(acme, f"Chat {number} {one}")
        ask(acme)
        with CaptureQueriesContext(connection) as asked:
            make_due(600)
        counts.append(len(asked))
    assert counts[1] - counts[0] <= 10 * 4 + 8  # and what erases the earlier copy


def test_only_imports_may_be_as_large_as_copies(settings: Settings) -> None:
    """SEC-514: any other request is refused at the door as before."""
    from config.asgi import most_bytes_of

    settings.TRELLIS = settings.TRELLIS.model_copy(
        update={"artifact_max_bytes": 10_000_000, "import_max_bytes": 90_000_000}
    )
    for path in ("/w/demo/chat-imports/", "/api/chat-imports/"):
        assert most_bytes_of(path) > 90_000_000
    for path in ("/", "/w/demo/", "/api/chat-imports/1/remove/", "/x/w/demo/chat-imports/"):
        assert most_bytes_of(path) < 11_000_000


def test_the_page_and_rest_tell_how_far_it_is(acme: Tenant) -> None:
    """REL-1074: nothing yet, being made, ready with its parts; and what is wrong."""
    client, page = acme.client("member"), "/w/acme/your-data/"
    assert "You have not asked for a copy yet." in client.get(page).content.decode()
    a_chat(acme)
    assert client.post(page).status_code == 302
    shown = client.get(page).content.decode()
    assert "Waiting to be made." in shown
    assert "A copy of your data is being made" in client.post(page, follow=True).content.decode()
    row = DataCopy.objects.for_workspace(acme.workspace).get()
    header = {"x-workspace": "acme"}
    told = client.get("/api/data-copies/", headers=header).json()["results"][0]
    assert (told["status"], told["parts"]) == ("queued", [])
    make_due(600)
    told = client.get(f"/api/data-copies/{row.pk}/", headers=header).json()
    assert (told["status"], told["position"], told["parts"][0]["number"]) == ("ready", 1, 1)
    given = client.get(f"/api/data-copies/{row.pk}/parts/1/", headers=header)
    assert given.status_code == 200, given.content
    assert b"".join(given)[:2] == b"PK"
    assert "Download (" in client.get(page).content.decode()
    assert client.post(f"/api/data-copies/{row.pk}/erase/", headers=header).status_code == 200
    assert client.post(f"/api/data-copies/{row.pk}/cancel/", headers=header).status_code == 409


def test_a_hostile_copy_is_read_within_bounds(acme: Tenant, settings: Settings) -> None:
    """SEC-514: what a ZIP says of itself is not believed, and one faulty chat keeps no other."""
    a_chat(acme)
    row = make(acme)
    good = opened(row)
    name = next(one for one in good if one.endswith("/chat.json"))
    chat = json.loads(good[name])
    chat["id"] = "elsewhere"
    files = {
        "trellis.json": good["trellis.json"],
        "chats/a/chat.json": json.dumps(chat).encode(),
        "chats/b/chat.json": b"{",
        "chats/c/chat.json": b"[" * 100_000,
        "chats/d/chat.json": json.dumps({**chat, "id": "d", "messages": 7}).encode(),
        "chats/e/chat.json": json.dumps(
            {
                **chat,
                "id": "e",
                "folder": {"name": ["x"], "colour": 7},
                "files": [
                    {
                        "id": "f",
                        "name": "../../x",
                        "versions": [{"number": True, "path": "trellis.json"}],
                    },
                    {
                        "id": "g",
                        "name": "../../y",
                        "versions": [{"number": 1, "path": "trellis.json"}],
                    },
                    {
                        "id": "h",
                        "name": "z",
                        "versions": [{"number": 10**9, "path": "trellis.json"}],
                    },
                ],
            }
        ).encode(),
    }
    row_of_import = bring(acme, zipped(files))
    assert (row_of_import.status, row_of_import.imported, row_of_import.left_out) == ("done", 2, 3)
    made = ArtifactVersion.objects.for_workspace(acme.workspace).get()
    assert made.artifact.name == "y"
    settings.TRELLIS = settings.TRELLIS.model_copy(
        update={"artifact_max_bytes": 65_536, "import_max_bytes": 1_048_576}
    )
    noise = {"noise.bin": bytes(range(256)) * 400}
    with pytest.raises(InvalidInput) as refused:
        bring(acme, zipped({**noise, "conversations.json": b"[]"}, pack=False))
    assert "Only a copy of your data" in str(refused.value.fields)
    assert bring(acme, zipped({**noise, **files}, pack=False)).imported == 0
    with pytest.raises(InvalidInput):
        bring(acme, b"PK" + b"x" * 1_100_000)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_copy_is_not_unpacked_without_a_limit(acme: Tenant, method: int) -> None:
    """SEC-620: neither its manifest nor a chat in it."""
    manifest = json.dumps({"format": packed.FORMAT}).encode()
    spaces = b" " * 50_000_000
    bomb = zipped({packed.MANIFEST: manifest + spaces}, method=method)
    assert len(bomb) < 20_000
    assert memory_of(partial(packed.is_copy, io.BytesIO(bomb)))[0] < 5_000_000
    mixed = io.BytesIO(zipped({packed.MANIFEST: manifest}))
    with zipfile.ZipFile(mixed, "a", method) as grown:
        grown.writestr("chats/a/chat.json", b"{}" + spaces)
    copy = packed.PackedCopy(mixed)
    entry = copy._entries["chats/a/chat.json"]
    entry.file_size = 100
    assert memory_of(partial(list, copy.chats()))[0] < 5_000_000
    assert [one.fault for one in copy.chats()] == ["It is damaged in the ZIP."]
    assert copy.content_of("chats/a/chat.json", 1000) is None


def test_a_chat_of_a_copy_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-645: what is more than that is left out, and keeps no other."""
    monkeypatch.setattr(streaming, "MOST_CHAT_MEMORY", 1_000_000)
    manifest = json.dumps({"format": packed.FORMAT}).encode()
    swollen = b'{"title": "Swollen", "bud": "a", "messages": [' + b"[]," * 1_000_000 + b"[]]}"
    few = b'{"bud": "a", "messages": []}'
    content = zipped(
        {packed.MANIFEST: manifest, "chats/a/chat.json": swollen, "chats/b/chat.json": few}
    )
    copy = packed.PackedCopy(io.BytesIO(content))
    peak, found = memory_of(lambda: [list(copy.skim()), list(copy.chats())])
    assert peak < 30_000_000
    assert [one.fault for one in found[0]] == ["", ""]
    assert [(one.title, one.fault) for one in found[1]] == [
        ("Swollen", "It takes more than 200 MB of memory."),
        ("", ""),
    ]


def test_a_copy_whose_places_lie_before_its_beginning_is_none() -> None:
    """SEC-514: on a disk nobody can go there."""
    content = bytearray(zipped({packed.MANIFEST: b"{}"}))
    end = content.rfind(b"PK\x05\x06")
    told = int.from_bytes(content[end + 16 : end + 20], "little")
    content[end + 16 : end + 20] = (told + 100).to_bytes(4, "little")
    with tempfile.TemporaryFile() as file:
        file.write(content)
        assert not packed.is_copy(file)


def test_a_copy_that_lists_too_many_files_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-620: they are counted before Python makes an object of each."""
    monkeypatch.setattr(packed, "MOST_ENTRIES", 10)
    file = io.BytesIO(zipped({f"{number}.txt": b"" for number in range(11)}))
    with pytest.raises(UnreadableImport, match="too many files"):
        packed.PackedCopy(file)
    few = io.BytesIO(zipped({f"{number}.txt": b"" for number in range(10)}))
    assert not list(packed.PackedCopy(few).chats())


def zipped(
    files: Mapping[str, bytes], *, pack: bool = True, method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    kept = io.BytesIO()
    method = method if pack else zipfile.ZIP_STORED
    with zipfile.ZipFile(kept, "w", method) as written:
        for name, content in files.items():
            written.writestr(name, content)
    return kept.getvalue()
