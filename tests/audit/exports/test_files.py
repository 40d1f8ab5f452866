"""Files of the log in every format: safe to open, one line an entry, ended when the reader leaves; and those that are scheduled."""

from __future__ import annotations

import io
import json
import re
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex
from typing import Any

import openpyxl
import pytest
from asgiref.sync import sync_to_async
from django.core import mail
from django.core.files.storage import storages
from django.db import connection
from django.utils import timezone
from openpyxl.utils.escape import unescape

from audit import exports
from audit.actions import Action
from audit.exports import streams, workbook
from audit.exports.columns import NUMBERS
from audit.exports.ocsf import event_of
from audit.models import AuditEntry, AuditPolicy, ReportSchedule, SentFile
from audit.retention import apply_retention
from audit.reviews import scheduled_exports
from audit.reviews.timing import next_run, period_before
from audit.sealing.sealer import seal_pending
from tests.audit.exports.formulas import FORMULAS, write
from tests.audit.exports.planned import a_schedule, yesterday
from tests.audit.views.log_pages import a_call, url
from tests.factories import Tenant, TwoTenants, make_tenant
from tests.threads import Threads
from workspaces.models import Membership

SUBSET = json.loads((Path(__file__).parent / "ocsf_api_activity_1_3_0.json").read_text())
LINES = ["a\nCEF:0|x", "a\r\nb", "a|b=c\\d", "\x1b[31mred", "\u202egnp.exe", '"}\n{"x":1}']


def entries_of(tenant: Tenant) -> Any:
    return AuditEntry.objects.for_workspace(tenant.workspace)


@pytest.mark.django_db
def test_every_cell_of_a_workbook_is_a_text(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-88: the corpus in every field, opened by a spreadsheet library: no formula, no link, and what Trellis measured a number."""
    monkeypatch.setattr(workbook, "ROWS_OF_A_SHEET", 10)
    for text in (*FORMULAS, "https://example.org", "12"):
        write(tenant, text.replace("\x00", ""))
    file = b"".join(exports.FORMATS["xlsx"].stream(entries_of(tenant)))
    book = openpyxl.load_workbook(io.BytesIO(file))
    assert len(book.worksheets) == 2
    rows = [row for sheet in book.worksheets for row in sheet.iter_rows(min_row=2)]
    assert len(rows) == len(FORMULAS) + 2
    for row in rows:
        for name, cell in zip(exports.COLUMNS, row, strict=True):
            assert cell.data_type in {"s", "n"}
            assert cell.value is None or isinstance(cell.value, int if name in NUMBERS else str)
            assert cell.hyperlink is None
            assert not str(cell.value or "").lstrip().startswith(("=", "+", "-", "@"))
    heads = [[cell.value for cell in sheet[1]] for sheet in book.worksheets]
    assert heads == [list(exports.COLUMNS)] * 2
    assert [sheet.freeze_panes for sheet in book.worksheets] == ["A2", "A2"]


@pytest.mark.django_db
def test_measures_in_a_workbook_can_be_added_up(tenant: Tenant) -> None:
    """REL-2546: a spreadsheet sorts and adds numbers, and no texts."""
    entry = a_call(tenant)
    file = b"".join(exports.FORMATS["xlsx"].stream(entries_of(tenant)))
    rows = openpyxl.load_workbook(io.BytesIO(file)).worksheets[0].iter_rows(values_only=True)
    found = [dict(zip(exports.COLUMNS, row, strict=True)) for row in rows]
    assert {type(row["arguments_size"]) for row in found[1:]} == {int}
    assert found[-1]["arguments_size"] == entry.arguments_size
    assert isinstance(found[-1]["id"], str)


@pytest.mark.django_db
def test_one_entry_is_one_line_whatever_is_in_it(tenant: Tenant) -> None:
    """SEC-106: in CEF, OCSF and JSON lines; nothing in a name ends a line or adds a field."""
    for text in LINES:
        write(tenant, text)
    for name in ("cef", "ocsf.jsonl", "jsonl"):
        data = b"".join(exports.FORMATS[name].stream(entries_of(tenant))).decode()
        assert len(data.splitlines()) == len(data.split("\n")) - 1 == len(LINES), name
        for line in data.splitlines():
            if name == "cef":
                fields = re.split(r"(?<!\\)\|", line, maxsplit=7)
                assert fields[:3] == ["CEF:0", "Trellis", "Trellis"]
                assert fields[4] == "server.error"
                assert line.isprintable()
                assert len(re.findall(r"(?<!\\)(?:^| )act=", f" {fields[7]}")) == 1
            else:
                assert isinstance(json.loads(line), dict)


@pytest.mark.django_db
def test_events_are_of_the_pinned_version_of_ocsf(tenant: Tenant) -> None:
    """Ours: each has every required attribute of the class, of its type; refusals fail, with who refused."""
    a_call(tenant)
    write(tenant, "a server")
    tenant.client("auditor").get(url(tenant))
    for event in (event_of(entry) for entry in entries_of(tenant)):
        for path, kind in SUBSET["required"].items():
            value: Any = event
            for part in path.split("."):
                value = value[part]
            assert type(value).__name__ == kind, path
        assert event["metadata"]["version"] == SUBSET["version"]
        assert event["class_uid"] == SUBSET["class_uid"]
        assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
        for name, allowed in SUBSET["enums"].items():
            assert event[name] in allowed
        assert {"ip", "name"} & event["src_endpoint"].keys()


@pytest.mark.django_db
def test_every_format_is_recorded_and_only_an_auditors(tenant: Tenant) -> None:
    """SEC-105."""
    a_call(tenant)
    admin, auditor = tenant.client("admin"), tenant.client("auditor")
    for name in exports.FORMATS:
        assert admin.get(url(tenant, f"export.{name}")).status_code == 403
        answer = auditor.get(url(tenant, f"export.{name}?tool=echo"))
        body = b"".join(answer)
        assert body
        taken = entries_of(tenant).filter(action=Action.EXPORT_CREATED.value)
        assert taken.order_by("-id")[0].details["format"] == name
    assert taken.count() == len(exports.FORMATS)


@pytest.mark.django_db(transaction=True)
async def test_a_reader_who_leaves_ends_the_export(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-48: no batch is read after that, and no query of it stays behind in the database."""
    tenant = await sync_to_async(make_tenant)("a")
    monkeypatch.setattr(streams, "BATCH", 2)
    for number in range(9):
        await sync_to_async(write)(tenant, f"entry {number}")
    read = []
    original = streams._next_batch

    def counted(*args: Any) -> Any:
        read.append(args)
        return original(*args)

    monkeypatch.setattr(streams, "_next_batch", counted)
    rows = await sync_to_async(entries_of)(tenant)
    for name in ("jsonl", "xlsx"):
        pieces: Any = exports.FORMATS[name].stream_async(rows)
        if name == "jsonl":
            await anext(pieces)
        await pieces.aclose()
    assert len(read) == 1
    if connection.vendor == "postgresql":

        def running() -> int:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle' "
                    "AND query LIKE '%audit_auditentry%'"
                )
                return int(cursor.fetchone()[0])

        assert await sync_to_async(running)() == 0


@pytest.mark.django_db(transaction=True)
async def test_a_workbook_goes_out_as_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1866, REL-1934: bytes of each batch are there before the next one is read, and nothing is kept on a disk."""
    tenant = await sync_to_async(make_tenant)("a")
    monkeypatch.setattr(streams, "BATCH", 2)
    workspace_id = tenant.workspace.pk
    await AuditEntry.objects.abulk_create(
        # So much by chance that compression has to let some of it out.
        AuditEntry(workspace_id=workspace_id, actor_kind="user", result_preview=token_hex(15_000))
        for _ in range(5)
    )
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    read = []
    original = streams._next_batch

    def counted(*args: Any) -> Any:
        read.append(args)
        return original(*args)

    monkeypatch.setattr(streams, "_next_batch", counted)
    pieces = exports.FORMATS["xlsx"].stream_async(await sync_to_async(entries_of)(tenant))
    file = b""
    for number in (1, 2, 3):
        piece = await anext(pieces)
        assert piece
        assert len(read) == number
        file += piece
    file += b"".join([piece async for piece in pieces])
    book = openpyxl.load_workbook(io.BytesIO(file))
    assert book.worksheets[0].max_row == 6


@pytest.mark.django_db
def test_a_workbook_holds_what_xml_does_not_know(tenant: Tenant) -> None:
    """REL-1934: control characters, marks of XML, blanks at the edges, and what looks like an escaped character."""
    texts = [
        "a\x1bb",
        "a\rb\nc\td",
        "<&>\"'",
        "  blank  ",
        "_x0041_",
        "\ufffe\uffff",
        "\U0001f600",
        "x" * 40_000,
    ]
    AuditEntry.objects.bulk_create(
        AuditEntry(workspace_id=tenant.workspace.pk, actor_kind="user", result_preview=text)
        for text in texts
    )
    file = b"".join(exports.FORMATS["xlsx"].stream(entries_of(tenant)))
    sheet = openpyxl.load_workbook(io.BytesIO(file)).worksheets[0]
    column = exports.COLUMNS.index("result_preview") + 1
    listed = [str(sheet.cell(row, column).value) for row in range(2, len(texts) + 2)]
    assert [unescape(text) for text in listed] == [text[:32_767] for text in texts]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("checkpoint_file")
@pytest.mark.parametrize("name", list(exports.FORMATS))
def test_a_file_that_retention_overtook_says_so(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """REL-1935: it ends with the entries that say what was removed meanwhile, whatever its filter."""
    monkeypatch.setattr(streams, "BATCH", 2)
    for _ in range(4):
        a_call(tenant)
    seal_pending()
    answer = tenant.client("auditor").get(url(tenant, f"export.{name}?tool=echo"))
    pieces = iter(answer.streaming_content)  # type: ignore[attr-defined]
    file = next(pieces)
    AuditPolicy.unscoped.create(workspace=tenant.workspace, keep_entries=2)
    apply_retention(tenant.workspace.pk, now=timezone.now())
    file += b"".join(pieces)
    if name == "xlsx":
        rows = openpyxl.load_workbook(io.BytesIO(file)).worksheets[0].iter_rows(values_only=True)
        lines = [" ".join(map(str, row)) for row in rows]
    else:
        lines = file.decode().splitlines()
    assert [line for line in lines if "retention.applied" in line] == lines[-1:]
    assert (
        '"first": 1' in lines[-1].replace('\\"', '"').replace('""', '"') or '"first":1' in lines[-1]
    )


@pytest.mark.django_db
def test_a_due_file_is_mailed_once_with_what_was_asked(tenant: Tenant) -> None:
    """SEC-88, REL-47: of yesterday, filtered, safe to open, recorded first; and then the next day's turn."""
    yesterday(tenant)
    a_call(tenant)
    schedule = a_schedule(tenant)
    assert scheduled_exports.send_due() == 1
    assert scheduled_exports.send_due() == 0
    [message] = mail.outbox
    assert message.to == [tenant.auditor.email]
    sent = SentFile.objects.for_workspace(tenant.workspace).get()
    assert str(sent.pk) in message.extra_headers["Message-ID"]
    name, content, _ = message.attachments[0]
    assert name.endswith(".csv")
    lines = (content.decode() if isinstance(content, bytes) else content).splitlines()
    assert len(lines) == 2
    assert "'=1+1" in lines[1]
    schedule.refresh_from_db()
    assert schedule.last_ok
    assert schedule.next_run_at > timezone.now()
    assert tenant.auditor.email in schedule.last_result
    taken = entries_of(tenant).get(action=Action.EXPORT_CREATED.value)
    assert taken.details["schedule"] == schedule.name
    assert taken.source == "task"


@pytest.mark.django_db(transaction=True)
def test_two_workers_send_a_due_file_once() -> None:
    """REL-47: the claim is one conditional statement."""
    tenant = make_tenant("a")
    a_schedule(tenant)
    with Threads(3) as pool:
        done = [pool.submit(scheduled_exports.send_due) for _ in range(3)]
        assert sum(one.result() for one in done) == 1
    assert len(mail.outbox) == 1


@pytest.mark.django_db
def test_rights_are_asked_again_when_the_file_is_made(tenant: Tenant) -> None:
    """SEC-105: who lost the right gets nothing, and the page says why."""
    schedule = a_schedule(tenant)
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.auditor).update(
        is_auditor=False
    )
    assert scheduled_exports.send_due() == 1
    schedule.refresh_from_db()
    assert mail.outbox == []
    assert schedule.last_ok is False
    assert "may no longer export" in schedule.last_result
    assert not entries_of(tenant).filter(action=Action.EXPORT_CREATED.value).exists()


@pytest.mark.django_db
def test_a_failure_is_said_plainly_and_tried_again(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: no address of a server, no exception's text."""
    schedule = a_schedule(tenant)

    def refused(*_args: object, **_kwargs: object) -> None:
        raise ConnectionRefusedError("smtp.internal:25 refused")

    monkeypatch.setattr("django.core.mail.EmailMessage.send", refused)
    scheduled_exports.send_due()
    schedule.refresh_from_db()
    assert schedule.last_ok is False
    assert "smtp" not in schedule.last_result
    assert timezone.now() < schedule.next_run_at < timezone.now() + timedelta(hours=2)
    assert schedule.claimed_until is None


@pytest.mark.django_db
def test_a_file_goes_into_the_store(tenant: Tenant, settings: Any, tmp_path: Path) -> None:
    """Ours: any Django storage, S3 too."""
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {
        **settings.STORAGES,
        "audit_reports": {"BACKEND": backend, "OPTIONS": {"location": tmp_path}},
    }
    yesterday(tenant)
    schedule = a_schedule(tenant, delivery="storage", recipients=[], format="xlsx")
    scheduled_exports.send_due()
    schedule.refresh_from_db()
    assert schedule.last_ok, schedule.last_result
    name = schedule.last_result.removeprefix("Stored as ").removesuffix(".")
    with storages["audit_reports"].open(name) as file:
        assert openpyxl.load_workbook(file).active.max_row == 2


@pytest.mark.django_db
def test_a_schedule_is_made_sent_paused_and_deleted_by_hand(tenant: Tenant) -> None:
    """Ours: by those who may export, for those who may."""
    client = tenant.client("auditor")
    draft = {
        "name": "Weekly",
        "format": "jsonl",
        "cadence": "weekly",
        "delivery": "mail",
        "recipients": [str(tenant.auditor.pk)],
    }
    assert tenant.client("admin").post(url(tenant, "schedules/"), draft).status_code == 403
    faults: tuple[dict[str, Any], ...] = (
        {"format": "exe"},
        {"cadence": "never"},
        {"recipients": []},
        {"recipients": [str(tenant.member.pk)]},
        {"name": "x" * 81},
        {"query": "duration_min=x"},
        {"hour": "24"},
        {"time_zone": "Atlantis"},
        {"covers": "ages"},
    )
    for wrong in faults:
        assert client.post(url(tenant, "schedules/"), {**draft, **wrong}).status_code == 422, wrong
    assert client.post(url(tenant, "schedules/"), draft).status_code == 302
    row = ReportSchedule.objects.for_workspace(tenant.workspace).get()
    assert row.next_run_at.weekday() == 0

    def press(verb: str) -> Any:
        return client.post(url(tenant, f"schedules/{row.pk}/{verb}/"), follow=True)

    assert b"Sent to" in press("send").content
    press("pause")
    row.refresh_from_db()
    assert not row.is_active
    press("resume")
    press("delete")
    assert not ReportSchedule.objects.for_workspace(tenant.workspace).exists()
    changed = entries_of(tenant).filter(action=Action.CONFIG_CHANGED.value)
    assert {entry.details["verb"] for entry in changed} >= {"created", "changed", "deleted"}


@pytest.mark.django_db
def test_a_schedule_is_edited_where_it_stands(tenant: Tenant) -> None:
    """REL-737: with the checks of a new one; whoever saves second is told that somebody else did."""
    client, row = tenant.client("auditor"), a_schedule(tenant)
    path = url(tenant, f"schedules/?edit={row.pk}")
    page = client.get(path)
    assert f"Edit “{row.name}”" in page.content.decode()
    seen = page.context["seen"]
    draft = {
        "name": "Monthly",
        "query": "outcome:failed",
        "format": "jsonl",
        "cadence": "monthly",
        "delivery": "mail",
        "recipients": [str(tenant.auditor.pk)],
        "seen": seen,
    }
    assert client.post(path, {**draft, "query": "outcom:failed"}).status_code == 422
    assert client.post(path, draft).status_code == 302
    row.refresh_from_db()
    assert (row.name, row.query, row.next_run_at.day) == ("Monthly", "outcome:failed", 1)
    late = client.post(path, {**draft, "name": "Mine"})
    assert late.status_code == 422
    assert "Somebody else changed this schedule" in late.content.decode()
    kept = client.post(path, {**draft, "name": "Mine", "seen": late.context["seen"]})
    assert kept["Location"].endswith("/schedules/")
    row.refresh_from_db()
    assert row.name == "Mine"
    changes = entries_of(tenant).filter(action=Action.CONFIG_CHANGED.value)
    assert [entry.details["verb"] for entry in changes].count("changed") == 2


@pytest.mark.django_db
def test_another_workspaces_schedule_is_not_found(two_workspaces: TwoTenants) -> None:
    """SEC-01."""
    row = a_schedule(two_workspaces.b)
    client = two_workspaces.a.client("auditor")
    for verb in ("send", "pause", "delete"):
        path = url(two_workspaces.a, f"schedules/{row.pk}/{verb}/")
        assert client.post(path).status_code == 404
    assert client.get(url(two_workspaces.a, f"schedules/?edit={row.pk}")).status_code == 404
    assert client.get(url(two_workspaces.a, "schedules/?edit=x")).status_code == 404
    assert mail.outbox == []


def test_times_of_schedules_are_whole_days_weeks_and_months() -> None:
    """Ours: a file of each period, none twice."""
    friday = datetime(2026, 2, 27, 9, 30, tzinfo=UTC)
    assert next_run("daily", friday) == datetime(2026, 2, 28, 6, tzinfo=UTC)
    assert next_run("weekly", friday) == datetime(2026, 3, 2, 6, tzinfo=UTC)
    assert next_run("monthly", friday) == datetime(2026, 3, 1, 6, tzinfo=UTC)
    for cadence, days in (("daily", 1), ("weekly", 7), ("monthly", 28)):
        moment = next_run(cadence, friday)
        since, until = period_before(cadence, moment)
        assert until - since == timedelta(days=days)
        assert period_before(cadence, moment + timedelta(hours=3)) == (since, until)
        assert period_before(cadence, next_run(cadence, moment))[0] == until
