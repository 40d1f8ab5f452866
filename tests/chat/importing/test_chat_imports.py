"""Chats that people bring along: from ChatGPT, Claude and Trellis, whole or not at all, once, and removable as one."""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from audit.models import AuditEntry
from chat.artifacts.cleaning_up import sweep
from chat.artifacts.storage import artifact_storage
from chat.engine.trust import find_source
from chat.importing import reading, streaming, values
from chat.importing.chatgpt import read_chatgpt
from chat.importing.claude import read_claude
from chat.importing.reading import TextFile
from chat.models import Bud, ChatImport, Conversation, Message
from chat.services import import_reading, import_storing
from chat.services.branches import edit_message, fork_conversation
from chat.services.conversations import erase_conversation
from chat.services.exports import ExportFormat, export_conversation
from chat.services.import_reading import forget_old, read_due
from chat.services.imports import remove_import, restore_import, start_import
from chat.services.search import MOST_HITS, search
from chat.snapshots import read_snapshot
from chat.tasks import read_imports
from tests.chat.conftest import Chat
from tests.factories import Tenant, TwoTenants, make_tenant
from tests.fakes.chat_exports import chatgpt, claude, node
from tests.memory import memory_of
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput
from workspaces.models import Membership
from workspaces.people.services import remove_member


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", method) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return kept.getvalue()


@pytest.fixture
def acme(db: None) -> Tenant:
    return make_tenant("acme")


def bud_of(tenant: Tenant) -> Bud:
    rows = Bud.objects.for_workspace(tenant.workspace)
    return rows.first() or Bud.objects.create(workspace=tenant.workspace, slug="bud", name="Bud")


def begin(tenant: Tenant, content: Any, name: str = "conversations.json") -> ChatImport:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return start_import(
        workspace=tenant.workspace,
        owner=tenant.member,
        bud=bud_of(tenant),
        name=name,
        file=ContentFile(raw),
        actor=tenant.actor("member"),
    )


def bring(tenant: Tenant, content: Any) -> ChatImport:
    """Bring it along, and read it to its end."""
    row = begin(tenant, content)
    read_due()
    row.refresh_from_db()
    return row


def chats(tenant: Tenant) -> list[Conversation]:
    rows = Conversation.objects.for_workspace(tenant.workspace).select_related("bud")
    return list(rows.filter(owner=tenant.member, deleted_at=None).order_by("-last_message_at"))


def path(chat: Conversation) -> list[tuple[str, str]]:
    """What the page shows."""
    exported = json.loads(export_conversation(chat, ExportFormat.JSON).body)
    return [(one["role"], one["text"]) for one in exported["messages"]]


def test_chats_of_chatgpt_keep_texts_dates_branches_and_the_shown_path(acme: Tenant) -> None:
    """REL-1013: what was hidden, searched or drawn stays behind, and what cannot be stored is replaced."""
    row = bring(acme, [chatgpt()])
    assert (row.status, row.origin, row.imported, row.left_out) == ("done", "chatgpt", 1, 0)
    (chat,) = chats(acme)
    assert (chat.title, chat.bud.name) == ("Radish planning", "Bud")
    assert chat.created_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert chat.last_message_at == datetime.fromtimestamp(1_700_000_200, UTC)
    assert path(chat) == [("user", "When do I sow radishes?"), ("assistant", "In � April�.")]
    rows = Message.objects.for_workspace(acme.workspace).order_by("order_key")
    tree = {one.text: one.parent.text if one.parent else None for one in rows}
    assert tree == {
        "When do I sow radishes?": None,
        "In � April�.": "When do I sow radishes?",
        "When do I sow turnips?": None,
        "In July.": "When do I sow turnips?",
        "See this\n\n[File that was not imported: turnip.png]": "In July.",
    }
    assert rows[0].created_at == datetime.fromtimestamp(1_700_000_000.5, UTC)
    snapshot = read_snapshot(chat).as_json()
    assert [one["role"] for one in snapshot["messages"] if not one["is_outline"]][:2] == [
        "user",
        "assistant",
    ]


def test_what_chatgpt_drew_wrote_and_found_is_in_its_answers() -> None:
    """REL-2751: sources are links, pictures are named, and a document beside the chat comes as text."""
    chat = chatgpt()
    drawn = {"content_type": "image_asset_pointer", "metadata": {"dalle": {"prompt": "a radish"}}}
    given = {"name": "Plan", "type": "document", "content": "# Beds"}
    script = {"name": "sow", "type": "code/python", "content": 'print("```")'}
    whole = {"updates": [{"pattern": ".*", "replacement": "# Rows"}]}
    part = {"updates": [{"pattern": "Rows", "replacement": "Paths"}]}
    text = (
        "\ue203Early\ue204 \ue200cite\ue202turn0search0\ue201, late \ue200cite\ue202turn0search1\ue201,"
        ' in \ue200entity\ue202["city","Ulm","…"]\ue201\ue200cite\ue202turn9\ue201 【4†source】【5†other】'
    )
    at = text.index("【4")
    mark = "\ue200cite\ue202turn0search{}\ue201".format
    page = {"title": "On [rad]ishes", "url": "https://r.example/a_(b)"}
    unsafe = {"title": "x", "url": "javascript:alert(1)"}
    references = [
        {"matched_text": " ", "alt": "never"},
        {"matched_text": mark(0), "alt": "([R](https://r.example))"},
        {"matched_text": mark(1), "alt": None, "items": [page, unsafe]},
    ]
    older = [{"start_ix": at, "end_ix": at + len("【4†source】"), "metadata": page}]
    metadata = {"content_references": references, "citations": older}
    steps = [
        node("assistant", text, "q1", at=1, metadata=metadata),
        node("tool", "For the model alone", "a", at=2),
        *[
            node("assistant", json.dumps(call), "a", at=3, recipient="canmore.create_textdoc")
            for call in (given, script, whole, part)
        ],
        node("assistant", "not JSON", "a", at=4, recipient="canmore.create_textdoc"),
    ]
    steps[1]["message"]["content"]["parts"].append(drawn)
    chat["mapping"] = {str(place): step for place, step in enumerate(steps)}
    link = "[On \\[rad\\]ishes](<https://r.example/a_(b)>)"
    assert [one.text for one in read_chatgpt(chat).messages] == [
        f"Early ([R](https://r.example)), late {link}, in Ulm {link}【5†other】",
        "[File that was not imported: picture]",
        "**Plan**\n\n# Beds",
        '**sow**\n\n````python\nprint("```")\n````',
        "```\n# Rows\n```",
        "[A change of this document was not imported.]",
    ]


def test_what_claude_wrote_beside_a_chat_is_in_its_answers() -> None:
    """REL-2751: artifacts and files come as text where they were made, and no word of the export stands for them."""
    chat = claude()
    made = {"command": "create", "type": "text/markdown", "title": "Heap", "content": "# Leaves"}
    code = {"command": "rewrite", "title": "turn", "language": "python", "content": "turn()"}
    file = {"path": "/mnt/out/heap.html", "file_text": "<p>"}
    calls = [("artifacts", made), ("artifacts", code), ("artifacts", {"command": "update"})]
    calls += [("create_file", file), ("web_search", {"query": "heap"})]
    blocks = [{"type": "tool_use", "name": name, "input": given} for name, given in calls]
    chat["chat_messages"][1]["content"] = [{"type": "text", "text": "Here."}, *blocks]
    beside = {"type": "tool_use", "name": "web_search", "input": {}}
    unsaid = "```\nThis block is not supported on your current device yet.\n```"
    chat["chat_messages"].append({"sender": "assistant", "text": unsaid, "content": [beside]})
    pasted = {"file_name": "", "file_type": "txt", "extracted_content": "A long letter"}
    chat["chat_messages"][0]["attachments"].insert(0, pasted)
    question, answer = [one.text for one in read_claude(chat).messages]
    assert question == ("Which compost?\n\nA long letter\n\n[File that was not imported: soil.pdf]")
    assert answer == (
        "Here.\n\n**Heap**\n\n# Leaves\n\n**turn**\n\n```python\nturn()\n```\n\n"
        "[A change of this document was not imported.]\n\n**heap.html**\n\n```html\n<p>\n```"
    )


def test_chats_of_claude_come_in_both_of_its_forms(acme: Tenant) -> None:
    """REL-1013: in their order, or as a tree where the file has one."""
    newer = claude("claude-2")
    root = "00000000-0000-4000-8000-000000000000"
    for message, parent in zip(newer["chat_messages"], (root, "m1"), strict=True):
        message["parent_message_uuid"] = parent
    again = {**newer["chat_messages"][1], "uuid": "m3", "text": "Straw."}
    newer["chat_messages"].append(again)
    newer["current_leaf_message_uuid"] = "m2"
    row = bring(acme, zipped({"data/conversations.json": json.dumps([claude(), newer]).encode()}))
    assert (row.status, row.origin, row.imported) == ("done", "claude", 2)
    question = "Which compost?\n\n[File that was not imported: soil.pdf]"
    for chat in chats(acme):
        assert path(chat) == [("user", question), ("assistant", "Leaves.")]
    answers = Message.objects.for_workspace(acme.workspace).filter(text="Straw.")
    above = answers.get().parent
    assert above is not None
    assert above.text == question


def test_an_export_of_trellis_comes_back_as_it_was(acme: Tenant) -> None:
    """REL-1013: the same texts, path and times; and not beside the chat that it was made of."""
    bring(acme, [chatgpt()])
    (chat,) = chats(acme)
    exported = export_conversation(chat, ExportFormat.JSON).body
    row = bring(acme, exported.encode())
    assert (row.imported, row.reasons[0]["reason"]) == (0, "You have it already.")
    erase_conversation(conversation=chat, actor=acme.actor("member"))
    row = bring(acme, exported.encode())
    assert (row.status, row.origin, row.imported) == ("done", "trellis", 1)
    (back,) = chats(acme)
    again = json.loads(export_conversation(back, ExportFormat.JSON).body)
    assert {**again, "id": ""} == {**json.loads(exported), "id": ""}


def test_tool_calls_come_as_text_of_their_answer(acme: Tenant) -> None:
    """REL-1110: also of an answer without words, and nothing in them ends its block."""
    call = {
        "server": "mail`s",
        "tool": "send",
        "status": "outcome_unknown",
        "arguments": {"to": "ada@acme.example"},
        "result": "```\nsent",
        "result_left_out": 12,
    }
    content = {
        "id": "of-elsewhere",
        "title": "Mails",
        "bud": "Post",
        "messages": [
            {"role": "user", "text": "Write to Ada"},
            {"role": "assistant", "text": "", "tool_calls": [call, "not a call"]},
            {"role": "assistant", "text": "Done.", "tool_calls": []},
        ],
    }
    row = bring(acme, json.dumps(content).encode())
    assert (row.origin, row.imported) == ("trellis", 1)
    (chat,) = chats(acme)
    listed = [text for _role, text in path(chat)]
    assert listed[0::2] == ["Write to Ada", "Done."]
    assert listed[1] == (
        "Tool call `mail's.send`: outcome unknown\n\n"
        '```json\n{\n  "to": "ada@acme.example"\n}\n```\n\n'
        "````\n```\nsent\n````\n\n"
        "Further characters that were not in the file: 12\n\n"
        "Tool call `tool`\n\n```json\n{}\n```"
    )


def test_calls_beyond_a_messages_room_are_counted(acme: Tenant) -> None:
    """REL-1110: the chat comes, and says how many calls it lacks."""
    calls = [{"tool": "read", "status": "succeeded", "result": "x" * 400_000}] * 4
    messages = [
        {"role": "user", "text": "Read"},
        {"role": "assistant", "text": "", "tool_calls": calls},
    ]
    content = {"id": "long", "title": "Long", "bud": "Long", "messages": messages}
    assert bring(acme, json.dumps(content).encode()).imported == 1
    (chat,) = chats(acme)
    answer = path(chat)[1][1]
    assert answer.count("Tool call `read`") == 2
    assert answer.endswith("[Further tool calls: 2]")


def test_the_same_file_does_not_double_chats(acme: Tenant) -> None:
    """REL-1014: chats that are here stay as they are, and new ones come. The row says how many and why."""
    bring(acme, [chatgpt()])
    row = bring(acme, [chatgpt(), claude(), {"mapping": {}, "id": "x", "title": "Empty"}, 7])
    assert (row.total, row.imported, row.left_out) == (4, 1, 3)
    assert row.reasons == [
        {"title": "Radish planning", "reason": "You have it already."},
        {"title": "Empty", "reason": "Nothing is said in it that Trellis can show."},
        {"title": "Chat without a title", "reason": "It is no chat that Trellis can read."},
    ]
    assert len(chats(acme)) == 2


@pytest.mark.both_engines
def test_what_came_along_is_found_also_by_its_dates(acme: Tenant) -> None:
    """REL-1013: words, titles and times lead to it, and to what was said here."""
    bring(acme, [chatgpt(), claude()])
    for query, found in (
        ("turnips", 1),
        ("turnips before:2024-01-01", 1),
        ("turnips after:2024-01-01", 0),
        ("compost after:2025-01-01", 1),
    ):
        hits = search(workspace=acme.workspace, person=acme.member, query=query)
        assert len([hit for hit in hits if hit.message_id]) == found, query


@pytest.mark.both_engines
def test_what_came_along_stands_where_it_was_said(acme: Tenant) -> None:
    """REL-1075: a search without dates finds what was said here last year before what was said elsewhere years ago."""
    here = Conversation.objects.create(
        workspace=acme.workspace, owner=acme.member, bud=bud_of(acme), title="Here"
    )
    message = Message.objects.create(
        workspace=acme.workspace,
        conversation=here,
        role="user",
        text="Are turnips ripe?",
        status="complete",
        order_key=1,
    )
    row = bring(acme, [chatgpt(str(number)) for number in range(40)])
    assert row.imported == 40
    hits = search(workspace=acme.workspace, person=acme.member, query="turnips")
    found = [hit for hit in hits if hit.message_id]
    assert found[0].message_id == message.pk
    assert len(found) == MOST_HITS
    moments = [hit.at for hit in found]
    assert moments == sorted(moments, reverse=True)
    within = search(workspace=acme.workspace, person=acme.member, query="turnips after:2025-01-01")
    assert [hit.message_id for hit in within] == [message.pk]
    # Another person's dates are not moved by it.
    for one in (acme.admin, acme.owner):
        assert not search(workspace=acme.workspace, person=one, query="turnips")


def test_an_import_is_removed_and_brought_back_as_one(acme: Tenant, settings: Settings) -> None:
    """REL-1015: as deleted conversations are, and for good where the platform keeps none."""
    row = bring(acme, [chatgpt(str(number)) for number in range(5)])
    before = len(chats(acme))
    assert remove_import(row=row, actor=acme.actor("member")) == before == 5
    assert chats(acme) == []
    again = bring(acme, [chatgpt("1")])
    assert "Recently deleted" in again.reasons[0]["reason"]
    with pytest.raises(Conflict):
        remove_import(row=row, actor=acme.actor("member"))
    assert restore_import(row=row, actor=acme.actor("member")) == 5
    assert len(chats(acme)) == 5
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"deleted_conversation_days": 0})
    assert remove_import(row=row, actor=acme.actor("member")) == 5
    assert not Message.objects.for_workspace(acme.workspace).exists()
    ChatImport.objects.for_workspace(acme.workspace).update(
        finished_at=database_now() - timedelta(days=31)
    )
    assert forget_old() == 2


def test_it_goes_on_where_another_process_stopped(acme: Tenant) -> None:
    """REL-1014: nothing is half made, nothing comes twice, and two do not read one file."""
    row = begin(acme, [chatgpt(str(number)) for number in range(4)])
    stored = import_storing.store_chat
    seen: list[str] = []

    def dies(row: ChatImport, raw: Any, chat: values.ImportedChat, contents: Any) -> None:
        seen.append(chat.key)
        stored(row, raw, chat, contents)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with patch.object(import_reading, "store_chat", dies), pytest.raises(KeyboardInterrupt):
        read_due()
    assert len(chats(acme)) == 2
    assert read_due() == 0
    ChatImport.objects.for_workspace(acme.workspace).update(alive_until=database_now())
    assert read_imports() == 2
    row.refresh_from_db()
    assert (row.status, row.imported, row.messages) == ("done", 4, 20)
    assert row.path == ""


def test_a_file_that_cannot_be_read_brings_nothing(acme: Tenant) -> None:
    """REL-1014: damaged at its end, of another kind, or a ZIP that holds something else; the row says why."""
    whole = json.dumps([chatgpt(), claude()]).encode()
    for content, why in (
        (whole[:-40], "damaged"),
        (b"[" * 100_000, "damaged"),
        (b'[{"a": 1}]', "no chats"),
        (b"[]", "no chats"),
        (b"{\xff\xfe}", "no JSON"),
        (whole + b"[]", "damaged"),
        (b'["a", 1e5, 1' + b"0" * 5_000 + b"]", "damaged"),
        (b"PK\x03\x04 no", "damaged, or has a password"),
        (zipped({"users.json": b"[]", "a.txt": b""}), "no chats"),
        (zipped({"a.txt": b""}), "no conversations.json"),
    ):
        row = bring(acme, content)
        assert row.status == "failed", content[:20]
        assert why in row.error
    assert chats(acme) == []
    with pytest.raises(InvalidInput) as refused:
        begin(acme, b"Dear diary")
    assert list(refused.value.fields) == ["file"]


def test_a_small_file_cannot_grow_without_end(
    acme: Tenant, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-481: bounds of the file, of what a ZIP unpacks to, of chats, messages and texts."""
    monkeypatch.setattr(reading, "MOST_UNPACKED_BYTES", 100_000)
    bomb = zipped({"conversations.json": b" " * 1_000_000 + b"[]"})
    assert len(bomb) < 5_000
    assert "unpacks to more" in bring(acme, bomb).error
    monkeypatch.setattr(import_reading, "MOST_CHATS", 1)
    assert "more than 1 chats" in bring(acme, [chatgpt("1"), chatgpt("2")]).error
    monkeypatch.setattr(values, "MOST_MESSAGES", 2)
    assert "more than 2 messages" in bring(acme, [chatgpt()]).reasons[0]["reason"]
    monkeypatch.setattr(values, "LONGEST_TEXT", 300)
    long = claude()
    long["chat_messages"][1]["text"] = "x" * 301
    assert "longer than 300" in bring(acme, [long]).reasons[0]["reason"]
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"artifact_max_bytes": 65_536})
    with pytest.raises(InvalidInput):
        begin(acme, b"[" + b" " * 70_000 + b"]")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_is_not_unpacked_without_a_limit(acme: Tenant, method: int) -> None:
    """SEC-620: in these ways Python unpacks everything, however few bytes it is asked for."""
    chats = json.dumps([claude()]).encode()
    assert bring(acme, zipped({"conversations.json": chats})).imported == 1
    assert "damaged" in bring(acme, zipped({"conversations.json": chats}, method)).error


def test_a_zip_that_lists_too_many_files_is_not_opened(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-620: they are counted before Python makes an object of each."""
    monkeypatch.setattr(reading, "_MOST_ENTRIES", 2)
    files = {f"{number}/conversations.json": b"[]" for number in range(3)}
    assert "too many files" in bring(acme, zipped(files)).error


def test_few_bytes_of_a_chat_do_not_become_a_text_without_end(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-621: names of tool calls and of files are far longer in a message than in a file."""

    def own(key: str, **fields: Any) -> dict[str, Any]:
        message = {"role": "user", "text": "Hello", **fields}
        return {"id": key, "bud": "Bud", "title": key, "messages": [message] * 3}

    assert bring(acme, [own("fits", tool_calls=[{}] * 20)]).imported == 1
    monkeypatch.setattr(values, "MOST_FILES", 20)
    row = bring(acme, [own("named", attachments=[{}] * 20), own("more", attachments=[{}] * 21)])
    assert row.imported == 1
    assert "more than 20 files" in row.reasons[0]["reason"]
    monkeypatch.setattr("chat.importing.trellis_json.LONGEST_CHAT", 1_000)
    assert "together" in bring(acme, [own("long", tool_calls=[{}] * 20)]).reasons[0]["reason"]


def test_a_file_takes_little_memory_whatever_it_holds(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-645: two bytes of JSON become sixty in memory, and a text is in memory before anybody knows its length."""
    monkeypatch.setattr(streaming, "MOST_CHAT_MEMORY", 1_000_000)
    monkeypatch.setattr(streaming, "LONGEST_VALUE", 1_000_000)
    swollen = json.dumps({**chatgpt("swollen"), "rest": ["rest"]}).encode()
    swollen = swollen.replace(b'"rest"]', b"[]," * 1_000_000 + b"[]]")
    whole = json.dumps([chatgpt(str(number)) for number in range(500)]).encode()
    content = whole[:-1] + b", " + swollen + b", " + json.dumps(claude()).encode() + b"]"
    peak, (file, _) = memory_of(partial(read_through, io.BytesIO(content)))
    assert peak < 30_000_000
    assert [one.fault for one in file.chats(500)] == ["It takes more than 200 MB of memory.", ""]
    row = bring(acme, b"\xef\xbb\xbf[" + swollen + b", " + json.dumps(claude()).encode() + b"]")
    assert (row.imported, row.left_out) == (1, 1)
    assert row.reasons[0]["title"] == "Radish planning"
    long = json.dumps([{**chatgpt(), "rest": "x" * 40_000_000}, claude()]).encode()
    peak, _ = memory_of(partial(bring, acme, zipped({"conversations.json": long})))
    assert peak < 30_000_000
    assert "a text of more than" in ChatImport.objects.for_workspace(acme.workspace)[0].error


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 13, 64 * 1024])
def test_a_file_is_read_in_pieces_of_any_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1013: also where a piece ends within a character, and with halves of characters that a program left."""
    text = (
        r'{"a\u0041\\\udc00": ["\ud83c\udf31\uDF31", "\ud83c", "x\ud83cy\\ud83c", "\\\\\ud83d\ude00\\"],'
        r' "deep": {"b": [{}]}, "n": [1, 1.5, true, null, 1000000000000000000000000000000]}'
    )

    class Slow(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            return super().read(size)

    (whole,) = streaming.values_in(io.BytesIO(text.encode()))
    assert whole.value["n"][-1] == 10**30
    monkeypatch.setattr(streaming, "MOST_AT_ONCE", 0)
    (found,) = streaming.values_in(Slow(text.encode()))
    assert found.value == _whole(json.loads(text))


@pytest.mark.parametrize("size", [1, 7, 4_001, 64 * 1024])
def test_numbers_of_a_large_file_may_be_long(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1508: as in a small one. One that is longer than Python reads ends the file, and digits in a text do not."""

    class Slow(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            return super().read(size)

    monkeypatch.setattr(streaming, "MOST_AT_ONCE", 0)
    good = (2**63, -(2**64) - 1, 10**30, 10**3_900, 1.5, 1e300, 1e-7, 0, -1)
    text = json.dumps([{"n": list(good), "t": '\\"' + "7" * 9_000 + "\\", "u": "8" * 5_000}, good])
    (first, second) = streaming.values_in(Slow(text.encode()))
    assert [first.value, second.value] == json.loads(text)
    for number in ("1e999", "-1E+9999"):
        (found,) = streaming.values_in(Slow(f"[{number}]".encode()))
        assert math.isinf(found.value)
    for number in ("9" * 4_400, "-" + "9" * 300_000, "1e" + "9" * 30):
        for around in ('[1, {"a": %s}, "b"]', '["7\\\\", %s]', "%s", "[%s, 1]"):
            with pytest.raises(ValueError, match=r"^$"):
                list(streaming.values_in(Slow((around % number).encode())))


def _whole(value: Any) -> Any:
    """As Python reads it, with a mark in the place of each half of a character."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {_whole(name): _whole(one) for name, one in value.items()}
    return value


def test_many_escapes_take_no_time_and_no_memory() -> None:
    """SEC-645: a text of nothing but them ends where any text is too long."""
    for text in (b'["' + b"\\" * 12_000_000, b'["' + rb"\ud800" * 2_000_000):
        with pytest.raises(streaming.ValueTooLong):
            list(streaming.values_in(io.BytesIO(text)))


def read_through(file: io.BytesIO) -> tuple[TextFile, int]:
    """Count its chats, and read each."""
    read = TextFile(file)
    assert sum(1 for _one in read.skim()) == 502
    return read, sum(len(one.read().messages) for one in read.chats() if one.source)


def test_trees_that_bite_their_tails_are_left_out(acme: Tenant) -> None:
    """SEC-481: a circle of messages, of empty places, and ids that are none."""
    circle, empty, odd = chatgpt("1"), chatgpt("2"), chatgpt("3")
    circle["mapping"]["q1"]["parent"] = "a1"
    empty["mapping"]["root"]["parent"] = "system"
    odd["conversation_id"] = {"a": 1}
    row = bring(acme, [circle, empty, odd, chatgpt("\ud800\x00")])
    assert row.imported == 2
    assert "circle" in row.reasons[0]["reason"]
    assert "no id" in row.reasons[1]["reason"]


def test_chats_that_are_not_kept_so_long_stay_away(acme: Tenant, settings: Settings) -> None:
    """REL-1014: they would be deleted within the hour, so the row says so instead."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"idle_conversation_days": 90})
    assert "90 days" in bring(acme, [claude()]).reasons[0]["reason"]


def test_the_log_has_one_entry_with_counts(acme: Tenant) -> None:
    """SEC-482: who imported how much from where; no title and no text of it."""
    bring(acme, [chatgpt(), claude(), 7])
    (entry,) = AuditEntry.objects.for_workspace(acme.workspace).filter(action="chats.imported")
    assert entry.actor_label == acme.member.email
    content = {key: entry.details[key] for key in ("from", "imported", "left_out", "messages")}
    assert content == {"from": "chatgpt", "imported": 2, "left_out": 1, "messages": 7}
    assert "adish" not in json.dumps(entry.details)


def test_nobody_else_sees_or_changes_it(two_workspaces: TwoTenants) -> None:
    """SEC-482: over REST and on the page; the caller's own import is there, with what was left out."""
    mine, other = two_workspaces.a, two_workspaces.b
    bud = bud_of(mine)
    header = {"X-Workspace": mine.workspace.slug}
    file = SimpleUploadedFile("conversations.json", json.dumps([chatgpt(), 7]).encode())
    client = mine.client("member")
    made = client.post("/api/chat-imports/", {"file": file, "bud_id": str(bud.pk)}, headers=header)
    assert made.status_code == 201
    assert made.json()["status"] == "queued"
    file.seek(0)
    busy = client.post("/api/chat-imports/", {"file": file, "bud_id": str(bud.pk)}, headers=header)
    assert busy.status_code == 409
    read_due()
    address = f"/api/chat-imports/{made.json()['id']}/"
    body = client.get(address, headers=header).json()
    assert (body["status"], body["imported"], body["reasons"][0]["title"]) == (
        "done",
        1,
        "Chat without a title",
    )
    for stranger, role in ((mine, "owner"), (other, "member")):
        theirs = {"X-Workspace": stranger.workspace.slug}
        assert stranger.client(role).get(address, headers=theirs).status_code == 404
        assert stranger.client(role).post(f"{address}remove/", headers=theirs).status_code == 404
        page = stranger.client(role).get(f"/w/{stranger.workspace.slug}/chat-imports/")
        assert "conversations.json<" not in page.content.decode()
    shown = client.get(f"/w/{mine.workspace.slug}/chat-imports/").content.decode()
    assert "Remove this 1 chat" in shown
    assert client.post(f"{address}remove/", headers=header).json()["status"] == "removed"
    assert client.post(f"{address}restore/", headers=header).json()["status"] == "done"
    assert client.post(f"{address}restore/", headers=header).status_code == 409


def test_the_page_takes_a_file_and_says_what_is_wrong_with_it(acme: Tenant) -> None:
    """REL-1013: limits stand beside the field, and a fault at the form."""
    client, url = acme.client("member"), "/w/acme/chat-imports/"
    bud = bud_of(acme)
    assert "10,000 chats of 5,000 messages" in client.get(url).content.decode()
    wrong = client.post(url, {"bud_id": str(bud.pk), "file": SimpleUploadedFile("a.txt", b"no")})
    assert wrong.status_code == 422
    assert "<li>Choose a JSON file" in wrong.content.decode(), "without a name of code"
    assert client.post(url, {}).status_code == 422
    right = SimpleUploadedFile("chats.json", json.dumps([chatgpt()]).encode())
    assert client.post(url, {"bud_id": str(bud.pk), "file": right}).status_code == 302
    read_due()
    row = ChatImport.objects.for_workspace(acme.workspace).get()
    gone = client.post(f"{url}{row.pk}/remove/", follow=True).content.decode()
    assert "1 chat was removed." in gone
    assert "1 chat is back." in client.post(f"{url}{row.pk}/restore/", follow=True).content.decode()
    assert client.post(f"{url}{row.pk}/explode/").status_code == 404


def test_who_leaves_brings_nothing_more(acme: Tenant) -> None:
    """SEC-482: a file that waits is not read, and its contents go."""
    row = begin(acme, [chatgpt()])
    membership = Membership.objects.for_workspace(acme.workspace).get(user=acme.member)
    remove_member(membership=membership, actor=acme.actor("owner"))
    assert read_due() == 0
    row.refresh_from_db()
    assert (row.status, row.path) == ("failed", "")
    assert chats(acme) == []


def test_a_file_is_kept_until_it_is_read(acme: Tenant) -> None:
    """REL-1014: the sweep of contents that no row names leaves it."""
    row = begin(acme, [chatgpt()])
    with patch("chat.artifacts.cleaning_up.ORPHAN_HOURS", -1):
        sweep()
        assert artifact_storage().exists(row.path)


def test_a_model_goes_on_and_reads_it_as_words_from_outside(chat: Chat) -> None:
    """SEC-483: the history is sent, tools that send data ask first, and forks and edits work."""
    tenant = chat.tenant
    bring(tenant, [chatgpt()])
    imported = Conversation.objects.for_workspace(tenant.workspace).get(chat_import__isnull=False)
    chat.conversation = imported
    chat.watching.close()
    chat.__post_init__()
    chat.model.say("Until May.")
    chat.ask("And how long?")
    sent = [one["content"] for one in chat.model.requests[-1]["messages"]]
    assert sent[-3:] == ["When do I sow radishes?", "In � April�.", "And how long?"]
    assert chat.reload_conversation().title == "Radish planning"
    rows = Message.objects.for_workspace(tenant.workspace).filter(conversation=imported)
    answer = rows.get(text="In � April�.")
    assert find_source([answer], {}, {}).text == "this chat was imported from a file"
    fork = fork_conversation(
        message=answer, client_id=str(uuid7()), owner=tenant.member, actor=chat.actor
    )
    assert len(path(fork)) == 2
    question = rows.get(text="When do I sow radishes?")
    chat.model.say("In March.")
    edit_message(message=question, client_id="e1", text="Where do I sow?", actor=chat.actor)
    chat.watching.until(
        lambda event: event["type"] == "message.saved" and event["message"]["text"] == "In March."
    )
