"""Copies as ZIP files that come from anywhere: read within bounds, whatever they say of themselves."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from functools import partial

import pytest
from pytest_django.fixtures import Settings

from chat.importing import streaming, trellis_zip
from chat.importing.reading import UnreadableImport
from chat.models import ArtifactVersion
from tests.chat.importing.copies import a_chat, bring, make, opened
from tests.factories import Tenant
from tests.memory import memory_of
from workspaces.errors import InvalidInput


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
    manifest = json.dumps({"format": trellis_zip.FORMAT}).encode()
    spaces = b" " * 50_000_000
    bomb = zipped({trellis_zip.MANIFEST: manifest + spaces}, method=method)
    assert len(bomb) < 20_000
    assert memory_of(partial(trellis_zip.is_copy, io.BytesIO(bomb)))[0] < 5_000_000
    mixed = io.BytesIO(zipped({trellis_zip.MANIFEST: manifest}))
    with zipfile.ZipFile(mixed, "a", method) as grown:
        grown.writestr("chats/a/chat.json", b"{}" + spaces)
    copy = trellis_zip.PackedCopy(mixed)
    entry = copy._entries["chats/a/chat.json"]
    entry.file_size = 100
    assert memory_of(partial(list, copy.chats()))[0] < 5_000_000
    assert [one.fault for one in copy.chats()] == ["It is damaged in the ZIP."]
    assert copy.content_of("chats/a/chat.json", 1000) is None


def test_a_chat_of_a_copy_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-645: what is more than that is left out, and keeps no other."""
    monkeypatch.setattr(streaming, "MOST_CHAT_MEMORY", 1_000_000)
    manifest = json.dumps({"format": trellis_zip.FORMAT}).encode()
    swollen = b'{"title": "Swollen", "bud": "a", "messages": [' + b"[]," * 1_000_000 + b"[]]}"
    few = b'{"bud": "a", "messages": []}'
    content = zipped(
        {trellis_zip.MANIFEST: manifest, "chats/a/chat.json": swollen, "chats/b/chat.json": few}
    )
    copy = trellis_zip.PackedCopy(io.BytesIO(content))
    peak, found = memory_of(lambda: [list(copy.skim()), list(copy.chats())])
    assert peak < 30_000_000
    assert [one.fault for one in found[0]] == ["", ""]
    assert [(one.title, one.fault) for one in found[1]] == [
        ("Swollen", "It takes more than 200 MB of memory."),
        ("", ""),
    ]


def test_a_copy_whose_places_lie_before_its_beginning_is_none() -> None:
    """SEC-514: on a disk nobody can go there."""
    content = bytearray(zipped({trellis_zip.MANIFEST: b"{}"}))
    end = content.rfind(b"PK\x05\x06")
    offset = int.from_bytes(content[end + 16 : end + 20], "little")
    content[end + 16 : end + 20] = (offset + 100).to_bytes(4, "little")
    with tempfile.TemporaryFile() as file:
        file.write(content)
        assert not trellis_zip.is_copy(file)


def test_a_copy_that_lists_too_many_files_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-620: they are counted before Python makes an object of each."""
    monkeypatch.setattr(trellis_zip, "MOST_ENTRIES", 10)
    file = io.BytesIO(zipped({f"{number}.txt": b"" for number in range(11)}))
    with pytest.raises(UnreadableImport, match="too many files"):
        trellis_zip.PackedCopy(file)
    few = io.BytesIO(zipped({f"{number}.txt": b"" for number in range(10)}))
    assert not list(trellis_zip.PackedCopy(few).chats())


def zipped(
    files: Mapping[str, bytes], *, pack: bool = True, method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    kept = io.BytesIO()
    method = method if pack else zipfile.ZIP_STORED
    with zipfile.ZipFile(kept, "w", method) as written:
        for name, content in files.items():
            written.writestr(name, content)
    return kept.getvalue()
