"""Reports as PDF files: what people read in them, and that taking one is recorded."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pypdfium2
import pytest
from django.core import mail

from audit import exports
from audit.actions import Action, Outcome
from audit.exports.pdf import MOST_ROWS, Document, PdfChart, PdfFigure, PdfTable, as_pdf
from audit.models import AuditEntry, ReportSchedule
from audit.reports.report import ReportSeries
from audit.reviews.scheduled_exports import send_now
from audit.reviews.schedules import ScheduleDraft, create_schedule
from tests.audit.exports.pdf_pages import pages_of
from tests.audit.views.log_pages import SECRET_ARGUMENT, a_call, a_refusal, url
from tests.factories import Tenant
from workspaces.database import database_now

DOCUMENT = Document(
    title="Audit report",
    workspace="Zürich Łódź Київ Αθήνα",
    period="2026-11-01 00:00 to 2026-11-08 00:00, time zone UTC",
    filters=[("Server", "mail"), ("Person", "ann@example.org")],
    made_by="Ann",
    made_at=datetime(2026, 11, 8, 9, 30, tzinfo=UTC),
    figures=[
        PdfFigure(label="Tool calls", value="1,204", change="12% more than in the period before")
    ],
    charts=[
        PdfChart(
            title="Tool calls over time",
            labels=["1 Nov", "2 Nov", "3 Nov"],
            series=[ReportSeries(label="Succeeded", values=[3, 0, 900], kind="ok")],
            is_stacked=True,
        )
    ],
)


def test_a_report_says_what_it_is_of() -> None:
    """REL-578: title, workspace, period with its time zone, filters, who made it when, and numbers on A4 pages."""
    body = as_pdf(DOCUMENT)
    (text,) = pages_of(body)
    for words in (
        *("Audit report", "Zürich Łódź Київ Αθήνα", "time zone UTC", "Server: mail"),
        *("Person: ann@example.org", "8 Nov 2026, 09:30 UTC, Ann", "1,204", "12% more"),
        *("Tool calls over time", "Succeeded", "900", "2 Nov", "Page 1 of 1"),
    ):
        assert words in text
    page = pypdfium2.PdfDocument(body)[0]
    assert [round(size / 72 * 25.4) for size in page.get_size()] == [210, 297]
    kinds = {one.type for one in page.get_objects()}
    assert pypdfium2.raw.FPDF_PAGEOBJ_IMAGE not in kinds  # charts are drawn
    assert "shown as “?”" not in text


def test_a_long_table_repeats_its_head_and_is_bounded() -> None:
    """REL-578: on each page, with the page's number; what is left out is told."""
    rows = [(f"tool_{number}", str(number)) for number in range(MOST_ROWS + 7)]
    table = PdfTable(title="Most used tools", head=("Tool", "Calls"), rows=rows, widths=(3, 1))
    pages = pages_of(as_pdf(replace(DOCUMENT, tables=[table])))
    assert len(pages) > 2
    for number, text in enumerate(pages, start=1):
        assert f"Page {number} of {len(pages)}" in text
    for text in pages[1:-1]:
        assert text.startswith("Tool")
    whole = "\n".join(pages)
    assert f"tool_{MOST_ROWS - 1}" in whole
    assert f"tool_{MOST_ROWS}" not in whole
    assert "7 more are not in this file." in whole


def test_characters_that_no_font_has_are_told() -> None:
    """REL-578: a question mark and a sentence in place of black boxes; signs that reorder text are left out."""
    (text,) = pages_of(as_pdf(replace(DOCUMENT, workspace="东京 team\u202e\x07\nnext")))
    assert "?? team next" in text
    assert "shown as “?”" in text


@pytest.mark.django_db
def test_the_report_is_downloaded_and_recorded(tenant: Tenant) -> None:
    """REL-578, SEC-105: with the page's filters, for auditors alone, and as an entry of its own."""
    a_call(tenant)
    a_call(tenant, outcome=Outcome.TIMEOUT)
    a_refusal(tenant)
    auditor = tenant.client("auditor")
    page = auditor.get(url(tenant, "reports/?tool=echo&by=tool"))
    address = page.context["report_file"]
    assert address in page.content.decode().replace("&amp;", "&")
    answer = auditor.get(address)
    assert answer["Content-Type"] == exports.SCHEDULED[exports.PDF][1]
    text = "\n".join(pages_of(answer.content))
    assert tenant.workspace.name in text
    assert "Tool: echo" in text
    assert "by tool" in text
    assert tenant.auditor.email in text
    assert SECRET_ARGUMENT not in text
    taken = AuditEntry.objects.for_workspace(tenant.workspace).filter(
        action=Action.EXPORT_CREATED.value
    )
    assert taken.get().details == {
        "format": "pdf",
        "filters": {"tool": "echo", "range": "7d"},
        "report": "tool",
    }
    assert tenant.client("admin").get(address).status_code == 403
    assert auditor.get(url(tenant, "reports.pdf?ip=nonsense")).status_code == 400
    assert taken.count() == 1


@pytest.mark.django_db
def test_a_schedule_mails_the_report(tenant: Tenant) -> None:
    """REL-578: as an attachment, of the schedule's own time."""
    auditor = tenant.auditor
    draft = ScheduleDraft(
        name="For the board",
        query="tool=echo",
        format=exports.PDF,
        cadence=ReportSchedule.Cadence.WEEKLY,
        delivery=ReportSchedule.Delivery.MAIL,
        recipients=[str(auditor.pk)],
    )
    schedule = create_schedule(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("auditor"),
        draft=draft,
        now=database_now(),
    )
    send_now(schedule=schedule, actor=tenant.actor("auditor"))
    assert schedule.last_ok, schedule.last_result
    ((name, body, kind),) = mail.outbox[0].attachments
    assert (name.rpartition(".")[2], kind) == ("pdf", "application/pdf")
    assert isinstance(body, bytes)
    assert "Tool: echo" in pages_of(body)[0]
