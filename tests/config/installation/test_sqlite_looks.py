"""What takes long to find out of SQLite's file, found beside requests."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from config import doctor
from config.doctor import FindingState
from config.installation import sqlite_looks
from config.installation.database_faults import DAMAGED
from config.installation.sqlite_looks import FileFinding, FileLook
from config.installation.tables import read_database
from tests.patience import PATIENCE
from tests.platform_api import Api


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with two tables, on the disk."""
    path = tmp_path / "a b?.sqlite3"
    with closing(sqlite3.connect(path)) as own:
        own.execute("PRAGMA journal_mode=WAL")
        own.executescript("CREATE TABLE a (text); CREATE INDEX b ON a (text); CREATE TABLE c (n);")
        own.executemany("INSERT INTO a VALUES (?)", [(f"{n}" * 50,) for n in range(2_000)])
        own.commit()
    return path


@pytest.fixture
def asked(file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The installation's database is that file, and looks go on until the event is set."""
    may_end = threading.Event()

    def ask(raw: Any) -> bool:
        assert may_end.wait(PATIENCE)
        return sqlite_looks.find_damage(raw)

    def count(raw: Any) -> dict[str, int] | None:
        assert may_end.wait(PATIENCE)
        return sqlite_looks.count_pages(raw)

    monkeypatch.setattr(sqlite_looks, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(sqlite_looks, "database_file", lambda: file)
    monkeypatch.setattr(sqlite_looks, "damage", FileLook("damage", ask))
    monkeypatch.setattr(sqlite_looks, "pages", FileLook("pages", count))
    yield may_end
    may_end.set()


def ended(look: FileLook[Any], path: Path) -> FileFinding[Any]:
    """What it found, once it has."""
    for _ in range(1000):
        if (seen := look.last(path)) is not None:
            return seen
    raise AssertionError("The look did not end.")


def test_nobody_waits_for_a_long_look(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-2094: one look at a time; what the last one found is given meanwhile, with its time."""
    monkeypatch.setattr(sqlite_looks, "PATIENCE_SECONDS", 0.01)
    may_end, begun = threading.Semaphore(0), []

    def ask(raw: Any) -> int:
        begun.append(raw)
        assert may_end.acquire(timeout=PATIENCE)
        return len(begun)

    look = FileLook("test", ask)
    assert [look.last(file) for _ in range(3)] == [None] * 3
    assert len(begun) == 1
    may_end.release()
    first = ended(look, file)
    assert first.found == 1
    assert datetime.now(UTC) - first.at < timedelta(seconds=PATIENCE)
    assert look.last(file) == first
    assert len(begun) == 1  # it is fresh
    monkeypatch.setattr(sqlite_looks, "FRESH_SECONDS", -1.0)
    assert look.last(file) == first
    assert look.last(file) == first
    assert len(begun) == 2
    may_end.release()


def test_a_look_that_fails_is_begun_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-2094: what was found before stays, and a file that came back is a new one."""
    monkeypatch.setattr(sqlite_looks, "PATIENCE_SECONDS", PATIENCE)
    faults = [RuntimeError("no"), None]

    def ask(raw: Any) -> str:
        if (fault := faults.pop()) is not None:
            raise fault
        return "well"

    look = FileLook("test", ask)
    assert ended(look, file).found == "well"
    monkeypatch.setattr(sqlite_looks, "FRESH_SECONDS", -1.0)
    kept = look.last(file)
    assert kept is not None
    assert kept.found == "well"
    assert look.last(file.with_name("other")) is None


def test_damage_is_found_and_sizes_are_counted(file: Path) -> None:
    """REL-2094: by a connection of its own that writes nothing."""
    with closing(sqlite3.connect(file)) as own:
        assert not sqlite_looks.find_damage(own)
        found = sqlite_looks.count_pages(own)
        assert found is not None
        assert found["a"] > found["c"] > 0
        assert sqlite_looks.count_pages(own, seconds=-1.0) in (None, found)
        assert own.execute("SELECT count(*) FROM a").fetchone() == (2_000,)
        own.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    content[4096 * 3 : 4096 * 6] = b"\xff" * (4096 * 3)
    file.write_bytes(bytes(content))
    with closing(sqlite3.connect(file)) as own:
        assert sqlite_looks.find_damage(own)


@pytest.mark.sqlite
@pytest.mark.django_db
def test_the_page_tells_how_old_the_look_for_damage_is(
    root: Api, asked: threading.Event, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2094: the page and REST do not wait; `manage.py doctor` looks at once."""

    def database_line() -> dict[str, str]:
        shown = root.get("state/").json()["findings"]
        page = root.client.get("/platform/state/").content.decode()
        (found,) = (one for one in shown if one["part"] == "database")
        assert found["text"][1:] in page
        return dict(found)

    assert "looks for damage in its file" in database_line()["text"]
    asked.set()
    ended(sqlite_looks.damage, file)
    ahead = FileFinding(False, datetime.now(UTC) + timedelta(minutes=1))  # a clock was set back
    monkeypatch.setattr(sqlite_looks.damage, "_last", ahead)
    assert database_line()["text"].endswith("no damage was found in its file just now")
    old = FileFinding(False, datetime.now(UTC) - timedelta(days=4))
    monkeypatch.setattr(sqlite_looks.damage, "_last", old)
    assert database_line()["text"].endswith("no damage was found in its file 4 days ago")
    monkeypatch.setattr(sqlite_looks.damage, "_last", FileFinding(True, old.at))
    assert (database_line()["text"], database_line()["state"]) == (DAMAGED.text, "failed")
    found = {one.part: one for one in doctor.examine()}
    assert found["database"].state is FindingState.OK
    assert "damage" not in found["database"].text


@pytest.mark.sqlite
@pytest.mark.django_db
def test_the_page_of_storage_tells_when_sizes_were_counted(
    root: Api, asked: threading.Event, file: Path
) -> None:
    """REL-2094: until then, it says that they are being counted."""
    found = read_database()
    assert (found.is_counted, found.is_being_counted, found.counted_at) == (False, True, None)
    assert "are being counted" in root.client.get("/platform/state/storage/").content.decode()
    assert root.get("storage/").json()["database"]["is_being_counted"] is True
    asked.set()
    seen = ended(sqlite_looks.pages, file)
    found = read_database()
    assert (found.is_counted, found.is_being_counted, found.counted_at) == (True, False, seen.at)
    assert (
        "The sizes were counted at" in root.client.get("/platform/state/storage/").content.decode()
    )
    assert root.get("storage/").json()["database"]["counted_at"] is not None


@pytest.mark.sqlite
@pytest.mark.django_db
def test_a_file_that_cannot_be_looked_through_is_no_file_that_is_well(
    root: Api, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2094: the page would ask for patience for ever."""

    def ask(_raw: Any) -> Any:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(sqlite_looks, "PATIENCE_SECONDS", PATIENCE)
    monkeypatch.setattr(sqlite_looks, "database_file", lambda: file)
    monkeypatch.setattr(sqlite_looks, "damage", FileLook("damage", ask))
    monkeypatch.setattr(sqlite_looks, "pages", FileLook("pages", ask))
    shown = root.get("state/").json()["findings"]
    (found,) = (one for one in shown if one["part"] == "database")
    assert (found["state"], found["text"]) == (
        "failed",
        "could not be looked at (OperationalError)",
    )
    sizes = read_database()
    assert (sizes.is_counted, sizes.is_being_counted) == (False, False)
