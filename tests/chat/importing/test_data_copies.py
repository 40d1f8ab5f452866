"""Copies of a person's data: whole, theirs alone, kept for some days, and read back by the import."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from audit.models import Notice
from chat.artifacts import storage
from chat.artifacts.services import add_version, create_artifact
from chat.artifacts.storage import artifact_storage
from chat.models import (
    ArtifactVersion,
    Attachment,
    Conversation,
    DataCopy,
    DataCopyPart,
    Draft,
    Folder,
    Message,
    Pin,
    Turn,
)
from chat.services import copy_chats, copy_making
from chat.services.copy_making import make_due
from chat.services.data_copies import (
    cancel_copy,
    erase_copy,
)
from chat.values import ArtifactOrigin
from tests.chat.importing.copies import a_chat, ask, bring, bud_of, make, opened, parts_of, say
from tests.factories import Tenant, make_tenant
from workspaces.database import database_now
from workspaces.errors import Conflict

SECRET = "sk-proj-" + "a1B2c3D4" * 6


@pytest.fixture
def beech(db: None) -> Tenant:
    return make_tenant("beech")


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


def chats_in(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [json.loads(files[name]) for name in sorted(files) if name.endswith("/chat.json")]


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
    """REL-1070, REL-2404, SEC-510: all branches as JSON, the shown path as Markdown, settings, own buds and ratings."""
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
    for one, reason in ((chat, "Too early"), (others, "Words of the admin")):
        Turn.objects.create(
            workspace=acme.workspace,
            conversation=one,
            user_message=Message.objects.for_workspace(acme.workspace).filter(conversation=one)[0],
            asked_by=one.owner,
            source="web",
            status="completed",
            rating="bad",
            rating_reason=reason,
            rated_at=timezone.now(),
        )
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
    assert [one["reason"] for one in json.loads(files["account/ratings.json"])] == ["Too early"]
    readme = files["README.md"].decode()
    assert "Your data from" in readme
    assert "My activity" in readme
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
