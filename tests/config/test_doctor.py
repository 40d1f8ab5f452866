"""The doctor names what is wrong and what to do, and finds nothing where nothing is."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import socketserver
import tempfile
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.core.files.storage import InMemoryStorage, storages
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django_vite.core.asset_loader import DjangoViteAssetLoader
from psycopg_pool import PoolTimeout
from pytest_django.fixtures import Settings

from audit import trigger_check
from audit.actions import Action
from audit.errors import AuditUnavailable
from audit.models import AuditEntry, AuditStream, StreamState
from audit.services import EntryDraft, record
from chat.artifacts.services import create_artifact
from chat.models import Bud, ModelProvider, PushDevice
from chat.services.conversations import create_conversation
from chat.values import ArtifactOrigin
from config import doctor
from config.backups import BackupError, make_backup
from config.doctor import FindingState, findings, log, machine
from config.installation.database_faults import REFUSED, find_fault
from config.installation.jobs import read_jobs
from config.management.commands.up import Command
from tests.factories import Tenant, signed_in
from workspaces.database import database_now
from workspaces.delivery.web_push import vapid_keys
from workspaces.jobs.backup_notes import last_backup, note_backup
from workspaces.jobs.installation import InstalledVersion
from workspaces.models import Installation, User

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


def states() -> dict[str, FindingState]:
    return {one.part: one.state for one in doctor.examine()}


def advice(part: str) -> str:
    return next(one.advice for one in doctor.examine() if one.part == part)


def test_a_web_app_that_is_not_built_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-393: as where setting up was broken off; the rest is looked at all the same."""
    manifest = DjangoViteAssetLoader.instance()._apps["default"].manifest
    monkeypatch.setattr(manifest, "manifest_path", tmp_path / "manifest.json")
    found = {one.part: one for one in doctor.examine()}
    assert found["settings"].state is FindingState.FAILED
    assert found["settings"].text == "the web app is not built, so the chat has no page"
    command = "up" if connection.vendor == "sqlite" else "collectstatic"
    assert f"manage.py {command}" in found["settings"].advice
    assert found["database"].state is FindingState.OK


def test_a_well_installation_has_nothing_to_do(
    tenant: Tenant, capsys: pytest.CaptureFixture[str]
) -> None:
    """REL-393: one line for each part, no advice, and exit status 0."""
    found = doctor.examine()
    assert not [one for one in found if one.state is FindingState.FAILED]
    assert all(one.advice for one in found if one.state is not FindingState.OK)
    call_command("doctor")
    assert len(capsys.readouterr().out.splitlines()) >= len(found)
    call_command("doctor", "--json")
    assert [one["part"] for one in json.loads(capsys.readouterr().out)] == [
        one.part for one in found
    ]


def test_a_missing_trigger_is_found_and_told(tenant: Tenant) -> None:
    """REL-393: and the command says so with its exit status."""
    on = " ON audit_auditentry" if connection.vendor == "postgresql" else ""
    name = "audit_guard" if connection.vendor == "postgresql" else "audit_no_delete"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {name}{on}")
    try:
        assert states()["triggers"] is FindingState.FAILED
        with pytest.raises(CommandError, match="triggers"):
            call_command("doctor")
    finally:
        call_command("verify_audit", "--restore-triggers")
    assert states()["triggers"] is FindingState.OK


def test_secrets_that_do_not_open_are_found(tenant: Tenant) -> None:
    """REL-393: whatever the key is called."""
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace, name="p", base_url="https://m.example.org", api_key="sk-doctor"
    )
    assert states()["keys"] is FindingState.OK
    ModelProvider.objects.create(
        workspace=tenant.workspace, name="q", base_url="https://m.example.org"
    )
    # Sealed for another row, as with other keys.
    table = ModelProvider._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} SET api_key = (SELECT api_key FROM {table} WHERE name = 'p') WHERE name = 'q'"
        )
    ModelProvider.unscoped.filter(pk=provider.pk).delete()
    assert states()["keys"] is FindingState.FAILED
    assert "TRELLIS_ENCRYPTION_KEYS" in advice("keys")


class AwayStorage(InMemoryStorage):
    """A storage elsewhere that nobody reaches."""

    def _save(self, name: str, content: Any) -> str:
        raise ConnectionError("secret-bucket.example.org")


@pytest.mark.parametrize("name", ["artifacts", "audit_reports"])
def test_a_storage_elsewhere_is_tried(settings: Settings, name: str) -> None:
    """REL-2683: files of chats can lie in a bucket that refuses them, and nobody would know before the first upload."""
    assert doctor.examine_part("files").text == "in folders of this machine"
    memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    settings.STORAGES = {**settings.STORAGES, name: memory}
    assert doctor.examine_part("files").text == "in InMemoryStorage"
    assert storages[name].listdir("") == ([], []), "nothing of it stays"
    settings.STORAGES = {**settings.STORAGES, name: {"BACKEND": f"{__name__}.AwayStorage"}}
    found = doctor.examine_part("files")
    assert found.state is FindingState.FAILED
    assert "ConnectionError" in found.text
    assert "secret-bucket" not in found.text
    in_pages = {one.part: one.state for one in doctor.examine(is_patient=False)}
    assert in_pages["files"] is FindingState.OK


def test_files_that_the_storage_lacks_are_told(tenant: Tenant, settings: Settings) -> None:
    """REL-3183: a database that was restored beside another storage looked well, and no file of a chat could be opened."""
    bud = Bud.objects.create(workspace=tenant.workspace, slug="bud", name="Bud")
    conversation = create_conversation(bud=bud, owner=tenant.member, actor=tenant.actor("member"))
    create_artifact(
        conversation=conversation,
        name="a.md",
        content=b"a",
        origin=ArtifactOrigin.UPLOAD,
        actor=tenant.actor("member"),
    )
    assert doctor.examine_part("files").state is FindingState.OK
    memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    settings.STORAGES = {**settings.STORAGES, "artifacts": memory}
    found = doctor.examine_part("files")
    assert found.state is FindingState.LOOK
    assert "lacks 1 of the newest" in found.text
    in_pages = {one.part: one.state for one in doctor.examine(is_patient=False)}
    assert in_pages["files"] is FindingState.OK


def test_a_disk_that_is_nearly_full_is_told_before_it_is_full(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-393: the limit is moved instead of the disk being filled."""
    monkeypatch.setattr(machine, "ROOM_BYTES", 2**62)
    assert states()["disk"] is FindingState.LOOK
    monkeypatch.setattr(machine, "LEAST_ROOM_BYTES", 2**62)
    assert states()["disk"] is FindingState.FAILED


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (timedelta(hours=2), "2 hours ahead of"),
        (timedelta(hours=-2), "2 hours behind"),
        (timedelta(days=400), "400 days ahead of"),
    ],
)
def test_a_wrong_clock_is_told(
    ahead: timedelta, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2098: which of the two is ahead, and by how much; `up` says it, too."""
    line = f"this machine's clock is {words} the database's"
    errors = io.StringIO()
    command = Command(stdout=io.StringIO(), stderr=errors)
    with patch("config.management.commands.up.call_command"):
        command._prepare("127.0.0.1", wants_demo=False)
        assert errors.getvalue() == ""
        monkeypatch.setattr(machine, "database_now", lambda: database_now() - ahead)
        assert doctor.examine_part("clocks").text == line
        command._prepare("127.0.0.1", wants_demo=False)
    assert f"Warning: {line}. Synchronise both" in errors.getvalue()


@pytest.mark.parametrize(
    ("origins", "address", "has_proxy"),
    [
        (("http://localhost:8413", "http://127.0.0.1:8413"), "http://localhost:8413/", False),
        (("https://chat.example.org",), "https://chat.example.org/", True),
    ],
)
def test_up_gives_an_address_that_is_answered(
    origins: tuple[str, ...], address: str, has_proxy: bool, settings: Settings
) -> None:
    """REL-2257: Where `TRELLIS_PUBLIC_ORIGINS` is set, `up` prints links under it, and the address for the proxy."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"public_origins": origins})
    shown = io.StringIO()
    Command(stdout=shown, stderr=io.StringIO())._greet("127.0.0.1", 8413)
    text = shown.getvalue()
    assert f"Trellis runs at {address} " in text
    assert f"  {address}setup/" in text
    assert ("Your proxy reaches it at http://localhost:8413/" in text) is has_proxy


def test_a_restored_database_is_told(tenant: Tenant) -> None:
    Installation.objects.update_or_create(defaults={"restored_at": database_now()})
    assert states()["restores"] is FindingState.LOOK
    assert "confirm_restore" in advice("restores")


def test_devices_that_cannot_be_notified_are_told(tenant: Tenant) -> None:
    """REL-617: those whose key is gone, and those that the last notification did not reach."""
    device = PushDevice.objects.create(
        workspace=tenant.workspace,
        owner=tenant.member,
        name="Phone",
        endpoint="https://push.example.org/a",
        endpoint_digest="a",
        p256dh="p",
        auth="a",
        key_id=vapid_keys()[0].id,
        told_until=database_now(),
    )
    rows = PushDevice.objects.for_workspace(tenant.workspace).filter(pk=device.pk)
    assert states()["notifications"] is FindingState.OK
    rows.update(last_error="It could not be reached.")
    assert states()["notifications"] is FindingState.LOOK
    rows.update(key_id="gone")
    assert "TRELLIS_PUSH_KEYS" in advice("notifications")


def test_one_thing_is_told_as_one(tenant: Tenant) -> None:
    """REL-957: "1 audit stream cannot deliver", and two of them as several."""
    for number, line in ((1, "1 audit stream cannot"), (2, "2 audit streams cannot")):
        stream = AuditStream.objects.create(
            workspace=tenant.workspace, name=f"sink {number}", target="https://sink.example.org/"
        )
        StreamState.objects.create(stream=stream, failures=1)
        found = {one.part: one for one in doctor.examine()}
        assert found["queues"].text.startswith(line)
    since = database_now() - timedelta(hours=5)
    StreamState.objects.filter(stream=stream).update(failing_since=since)
    found = {one.part: one for one in doctor.examine()}
    assert found["queues"].text == "2 audit streams cannot deliver, one of them for 5 hours"


def test_what_cannot_be_looked_at_is_one_line_and_the_others_follow(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-393: texts of exceptions may quote addresses, so only the kind is told."""

    def fail() -> None:
        raise RuntimeError("postgres://user:password@db")

    monkeypatch.setattr(trigger_check, "find_faults", fail)
    found = {one.part: one for one in doctor.examine()}
    assert found["triggers"].state is FindingState.FAILED
    assert "password" not in found["triggers"].text
    assert found["disk"].state is FindingState.OK


def test_entries_that_wait_long_for_their_seal_are_told(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(EntryDraft(action=Action.RESTORE_CONFIRMED, actor=tenant.actor(), workspace_id=None))
    assert states()["seals"] is FindingState.OK
    monkeypatch.setattr(log, "SEALING_SECONDS", -1)
    assert states()["seals"] is FindingState.LOOK


@pytest.mark.postgresql
def test_missing_timeouts_are_found(tenant: Tenant) -> None:
    """REL-700: a pooler refuses what a session sets, so the database's role has to have them."""
    assert states()["database"] is FindingState.OK
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0")
    try:
        assert states()["database"] is FindingState.LOOK
        assert "ALTER ROLE … SET lock_timeout = '20s';" in advice("database")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")  # the pool gives the connection to the next test
        connection.close()


def test_the_owner_reads_the_state_on_a_page_and_nobody_else_does(
    tenant: Tenant, superuser: User
) -> None:
    """REL-667: what the doctor finds, with what to do; for the platform's owner alone."""
    url = "/platform/state/"
    for role in ("owner", "admin", "auditor", "member"):
        assert tenant.client(role).get(url).status_code == 404
    client = tenant.client("owner")
    client.force_login(superuser, backend="allauth.account.auth_backends.AuthenticationBackend")
    text = client.get(url).content.decode()
    for part in ("Versions", "Keys", "Queues", "Disk", "Restores"):
        assert f'<th scope="row">{part}</th>' in text
    assert "Every stored secret can be read" in text
    Installation.objects.update_or_create(defaults={"restored_at": database_now()})
    worse = client.get(url).content.decode()
    assert "python3 manage.py confirm_restore" in worse
    assert "look at it" in worse


def test_the_owner_confirms_a_restore_in_the_product(tenant: Tenant, superuser: User) -> None:
    """REL-795: the overview leads there; nobody else may, and the log says who did."""
    Installation.objects.update_or_create(defaults={"restored_at": database_now()})
    url = "/platform/state/confirm-restore/"
    for role in ("owner", "admin", "auditor", "member"):
        assert tenant.client(role).post(url).status_code == 404
    assert "restored from a backup" not in tenant.client("admin").get("/admin/").content.decode()
    client = signed_in(superuser)
    assert "restored from a backup" in client.get("/admin/").content.decode()
    assert url in client.get("/platform/state/").content.decode()
    assert client.get(url).status_code == 405
    page = client.post(url, follow=True).content.decode()
    assert "What had waited goes on: mails, webhooks," in page
    assert url not in page
    entry = AuditEntry.objects.across_workspaces().get(action=Action.RESTORE_CONFIRMED)
    assert (entry.actor_label, entry.workspace_id) == (superuser.email, None)
    assert "was confirmed before" in client.post(url, follow=True).content.decode()


def test_a_data_folder_that_takes_no_writes_is_told(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1590: before a turn finds out."""
    assert states()["disk"] is not FindingState.FAILED

    def refuse() -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(machine, "write_to_data_folder", refuse)
    assert states()["disk"] is FindingState.FAILED
    assert "belongs to the user" in advice("disk")


def test_a_database_that_takes_no_writes_is_told(tenant: Tenant) -> None:
    """REL-1590: reading goes on there, so that all else looks well."""
    connection.ensure_connection()
    is_postgresql = connection.vendor == "postgresql"
    on, off = (
        ("SET default_transaction_read_only = on", "SET default_transaction_read_only = off")
        if is_postgresql
        else ("PRAGMA query_only = ON", "PRAGMA query_only = OFF")
    )
    with connection.cursor() as cursor:
        cursor.execute(on)
    try:
        found = {one.part: one for one in doctor.examine()}
    finally:
        with connection.cursor() as cursor:
            cursor.execute(off)
    assert found["database"].state is FindingState.FAILED
    assert "takes no writes" in found["database"].text
    assert "standby" in found["database"].advice
    assert states()["database"] is FindingState.OK


def test_a_database_that_reads_nothing_either_is_told_once(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2005: on a full disk SQLite cannot even open its file. Ten lines hid that the disk is full."""
    if connection.vendor != "sqlite":
        pytest.skip("reading needs no room on PostgreSQL")

    def fail(part: str) -> doctor.DoctorFinding:
        raise OperationalError("disk I/O error")

    for part in ("database", "keys", "seals"):
        monkeypatch.setitem(doctor._CHECKS, part, fail)
    found = {one.part: one for one in doctor.examine()}
    assert [name for name, one in found.items() if one.state is FindingState.FAILED] == ["database"]
    assert "disk is full" in found["database"].advice
    assert found["keys"].text == found["seals"].text == "not looked at"

    def lack(part: str) -> doctor.DoctorFinding:
        raise OperationalError("no such table: chat_new")

    monkeypatch.setitem(
        doctor._CHECKS, "database", lambda part: findings.failed(part, "old", "Migrate.")
    )
    monkeypatch.setitem(doctor._CHECKS, "keys", lack)
    monkeypatch.setitem(
        doctor._CHECKS, "seals", lambda part: findings.failed(part, "other", "Look.")
    )
    found = {one.part: one for one in doctor.examine()}
    assert found["keys"].text == "not looked at"
    assert found["seals"].text == "other"


def test_a_database_that_is_away_is_told_once(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1591: what needs it is not asked, since each question would wait for it anew."""
    reason = "connection refused" if connection.vendor == "postgresql" else "file is not a database"

    def fail(part: str) -> doctor.DoctorFinding:
        raise OperationalError(reason)

    monkeypatch.setitem(doctor._CHECKS, "database", fail)
    found = {one.part: one for one in doctor.examine()}
    assert [name for name, one in found.items() if one.state is FindingState.FAILED] == ["database"]
    assert found["keys"].text == "not looked at"
    assert found["disk"].text != "not looked at"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("couldn't get a connection after 10.00 sec", "does not answer"),
        ('FATAL:  database "x" does not exist', "database's name"),
        ('password authentication failed for user "x"', "password"),
        ("FATAL:  sorry, too many clients already", "no more connections"),
        ('connection failed: root certificate file "x" does not exist', "certificate"),
        ('connection failed: FATAL:  no pg_hba.conf entry for host "::1"', "not let this user in"),
        (
            "connection failed: FATAL:  connection requires a valid client certificate",
            "in this way",
        ),
        ("connection failed: server does not support SSL, but SSL was required", "in this way"),
        ('FATAL:  certificate authentication failed for user "x"', "refuses the user"),
        ('connection failed: FATAL:  role "x" is not permitted to log in', "refuses the user"),
        ("attempt to write a readonly database", "takes no writes"),
        ("database or disk is full", "no room"),
        ("database is locked", "locked"),
        ("no such table: chat_bud", "lacks tables"),
        ("database disk image is malformed", "damaged"),
        ("near SELECT: syntax error", None),
    ],
)
def test_a_refusal_of_the_database_is_a_line_for_people(
    monkeypatch: pytest.MonkeyPatch, error: str, line: str | None
) -> None:
    """REL-1591: commands say the same as the doctor, and what is our own fault keeps its traceback."""
    is_of_sqlite = line is not None and any(
        word in line for word in ("takes", "room", "locked", "lacks", "damaged")
    )
    monkeypatch.setattr(
        "config.installation.database_faults.connection.vendor",
        "sqlite" if is_of_sqlite else "postgresql",
    )
    fault = find_fault(OperationalError(error))
    refused = AuditUnavailable()
    refused.__cause__ = OperationalError(error)
    assert find_fault(refused) == fault
    assert (line in fault.text) if line and fault else (line is None and fault is None)


@pytest.mark.postgresql
def test_why_a_pool_has_no_connection_is_told(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-2962: it says only that it waited, and the line was that the database does not answer."""
    monkeypatch.setitem(connection.settings_dict, "NAME", "not_there")
    error = OperationalError()
    error.__cause__ = PoolTimeout("couldn't get a connection after 10.00 sec")
    assert find_fault(error) == REFUSED


def test_a_backup_that_is_missing_or_old_is_told(tenant: Tenant, tmp_path: Path) -> None:
    """REL-1649: a week after the installation was made, or after the last backup; with what to run."""
    InstalledVersion.objects.all().delete()
    now = database_now()
    assert states()["backups"] is FindingState.OK
    InstalledVersion.objects.create(version="0.1.0", since=now - timedelta(days=8))
    # PostgreSQL is often backed up by its own tools.
    is_sqlite = connection.vendor == "sqlite"
    assert states()["backups"] is (FindingState.LOOK if is_sqlite else FindingState.OK)
    assert "python3 manage.py backup" in doctor.examine_part("backups").advice
    note_backup(now - timedelta(days=6))
    assert states()["backups"] is FindingState.OK
    note_backup(now - timedelta(days=8))
    found = doctor.examine_part("backups")
    assert found.state is FindingState.LOOK
    assert f"{now - timedelta(days=8):%Y-%m-%d}" in found.text
    assert "python3 manage.py backup" in found.advice
    assert [one.name for one in read_jobs().jobs if one.name == "backup"] == []


@pytest.mark.sqlite
def test_the_copy_from_before_an_upgrade_is_told_where_there_is_no_backup(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """REL-3284: "none yet" reads as if there were no way back."""
    InstalledVersion.objects.all().delete()
    now = database_now()
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "trellis.sqlite3"))
    assert doctor.examine_part("backups").text == "none yet"
    for day in (1, 2):
        copy = tmp_path / f"trellis.sqlite3.before-upgrade-2026010{day}T000000"
        copy.touch()
    found = doctor.examine_part("backups")
    assert (found.state, str(copy) in found.text) == (FindingState.OK, True)
    assert "without files" in found.text
    InstalledVersion.objects.create(version="0.1.0", since=now - timedelta(days=8))
    found = doctor.examine_part("backups")
    assert (found.state, str(copy) in found.text) == (FindingState.LOOK, True)
    note_backup(now)
    assert str(copy) not in doctor.examine_part("backups").text


@pytest.mark.both_engines
def test_backups_that_are_made_elsewhere_are_not_missed(tenant: Tenant, settings: Settings) -> None:
    """REL-1742: the doctor says what it cannot see, and how to say that something else makes them."""
    InstalledVersion.objects.all().delete()
    now = database_now()
    InstalledVersion.objects.create(version="0.1.0", since=now - timedelta(days=8))
    found = doctor.examine_part("backups")
    if connection.vendor == "postgresql":
        assert found.state is FindingState.OK
        assert "not seen here" in found.text
        assert "TRELLIS_BACKUPS_ELSEWHERE=1" in found.advice
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"backups_elsewhere": True})
    for words in ("by manage.py backup: none yet", "the last one was made on"):
        found = doctor.examine_part("backups")
        assert (found.state, found.advice) == (FindingState.OK, "")
        assert words in found.text
        note_backup(now - timedelta(days=8))


def test_a_backup_is_noted_where_it_succeeds(tenant: Tenant, tmp_path: Path) -> None:
    """REL-1649: by the moment whose state it holds; one that fails is not."""
    if connection.vendor != "sqlite":
        pytest.skip("needs PostgreSQL's programs of the server's version")
    with pytest.raises(BackupError):
        make_backup(tmp_path)
    assert last_backup() is None
    before = database_now()
    make_backup(tmp_path / "backup.tar.gz")
    made_at = last_backup()
    assert made_at is not None
    assert abs((made_at - before).total_seconds()) < 5
    assert states()["backups"] is FindingState.OK


def test_a_given_file_that_is_not_there_is_told(
    tenant: Tenant, settings: Settings, tmp_path: Path
) -> None:
    """REL-1593: a file that comes later is read then, so this stops no start."""
    path = tmp_path / "mcp-servers.json"
    given = settings.TRELLIS.model_copy(update={"mcp_servers_file": path})
    settings.TRELLIS = given
    found = {one.part: one for one in doctor.examine()}
    assert found["settings"].state is FindingState.LOOK
    assert "MCP_SERVERS_FILE" in found["settings"].text
    path.write_text('{"mcpServers": {}}')
    assert path.name not in doctor.examine_part("settings").text


@pytest.mark.parametrize("setting", ["mcp_servers_file", "catalogue_file"])
def test_a_given_file_that_cannot_be_read_is_told(
    settings: Settings, tmp_path: Path, setting: str
) -> None:
    """REL-1593: it says where the file is wrong. Only a line of the log did, once somebody opened the page."""
    path = tmp_path / "list.json"
    path.write_text('{"servers": [')
    settings.TRELLIS = settings.TRELLIS.model_copy(update={setting: path})
    found = doctor.examine_part("settings")
    assert found.state is FindingState.LOOK
    assert "list.json" in found.text
    assert "line 1" in found.text


class MailServer(socketserver.StreamRequestHandler):
    """As much of one as is asked before a mail."""

    def handle(self) -> None:
        self.wfile.write(b"220 mail.example.org\r\n")
        for line in self.rfile:
            is_refused = line.startswith(b"AUTH")
            self.wfile.write(b"535 no\r\n" if is_refused else b"250-hello\r\n250 AUTH PLAIN\r\n")


def test_a_mail_server_that_takes_no_mail_is_told(tenant: Tenant, settings: Settings) -> None:
    """REL-2234: the doctor tries it; pages do not wait for it, and nothing but the doctor fails for it."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"email_host": "mail.example.org"})
    settings.EMAIL_HOST = "mail.invalid"
    found = doctor.examine_part("mail")
    assert found.state is FindingState.FAILED
    assert "cannot find the mail server mail.invalid" in found.text
    assert "EMAIL_HOST" in found.advice
    assert {one.part: one for one in doctor.examine(is_patient=False)}["mail"].state is (
        FindingState.OK
    )
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), MailServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address[:2]
        assert doctor.examine_part("mail").state is FindingState.OK
        settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "trellis", "wrong"
        assert "EMAIL_HOST_PASSWORD" in doctor.examine_part("mail").advice
        settings.EMAIL_HOST_PASSWORD = "Schlüssel"
        assert "Correct EMAIL_HOST_PASSWORD" in doctor.examine_part("mail").advice
        settings.EMAIL_HOST_PASSWORD = "wrong"
        settings.EMAIL_USE_TLS = True
        assert "EMAIL_SECURITY" in doctor.examine_part("mail").advice
        server.shutdown()
    assert "does not answer" in doctor.examine_part("mail").text
    settings.EMAIL_HOST = "a" * 70
    assert "Correct EMAIL_HOST." in doctor.examine_part("mail").advice


def test_a_full_folder_for_temporary_files_is_told(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2237: it is often another disk than that of the data folder."""
    asked = shutil.disk_usage

    def usage(folder: object) -> object:
        free = 1 if folder == tempfile.gettempdir() else machine.ROOM_BYTES
        return asked("/")._replace(free=free)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    found = doctor.examine_part("disk")
    assert found.state is FindingState.LOOK
    assert "TMPDIR" in found.advice
