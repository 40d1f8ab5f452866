"""Schedules as people choose them: a view, a time, and people; and what a preview says of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from django.core import mail
from django.db import connection
from django.utils import timezone

from audit import exports
from audit.actions import Action
from audit.models import AuditEntry, ReportSchedule, SavedView, SentFile
from audit.reviews import previews
from audit.reviews.ready_views import READY
from audit.reviews.scheduled_exports import send_due
from audit.reviews.schedules import ScheduleDraft, offered_recipients
from audit.reviews.stored_filters import as_typed, filter_of, meaning_of
from audit.reviews.timing import next_run, next_runs, period_before
from tests.audit.exports.pdf_pages import pages_of
from tests.audit.exports.planned import a_schedule, yesterday
from tests.audit.views.log_pages import SECRET_ARGUMENT, a_call, url
from tests.engines import ENDLESS
from tests.factories import Tenant, TwoTenants
from workspaces.models import Membership

pytestmark = pytest.mark.django_db
ZURICH = "Europe/Zurich"


def choices(tenant: Tenant, **changes: Any) -> dict[str, Any]:
    """What the form sends if a person takes the first of everything."""
    return {
        "view": "ready:failures",
        "cadence": "daily",
        "hour": "7",
        "time_zone": ZURICH,
        "recipients": [str(tenant.auditor.pk)],
        **changes,
    }


def local(moments: list[datetime], zone: str = ZURICH) -> list[str]:
    return [f"{one.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M}" for one in moments]


def test_three_choices_make_a_schedule(tenant: Tenant) -> None:
    """REL-1210: a ready view, a time and people; the name, the file and how it goes have good values."""
    client = tenant.client("auditor")
    page = client.get(url(tenant, "schedules/")).content.decode()
    for words in ("Failed calls", "Every Monday", tenant.auditor.name, "Send me one now"):
        assert words in page
    assert client.post(url(tenant, "schedules/"), choices(tenant)).status_code == 302
    row = ReportSchedule.objects.for_workspace(tenant.workspace).get()
    assert (row.name, row.query) == ("Failed calls, every day", "outcome:failed")
    assert (row.format, row.delivery, row.covers) == ("csv", "mail", "")
    assert local([row.next_run_at])[0].endswith("07:00")
    for wrong in (
        {"view": "ready:no"},
        {"cadence": "hourly"},
        {"hour": "x"},
        {"time_zone": "Nowhere"},
        {"covers": "x"},
    ):
        assert client.post(url(tenant, "schedules/"), choices(tenant, **wrong)).status_code == 422
    assert ReportSchedule.objects.for_workspace(tenant.workspace).count() == 1


def test_ready_views_are_filters_that_the_log_has() -> None:
    """REL-1210: each can be read, and no two are the same."""
    now = timezone.now()
    assert all(not filter_of(one.query, now=now).errors for one in READY)
    assert len({one.query for one in READY}) == len({one.key for one in READY}) == len(READY)


def test_what_is_not_chosen_well_is_told_where_it_stands(tenant: Tenant) -> None:
    """REL-1210: what was chosen stays, and a fault of a folded field unfolds it."""
    client = tenant.client("auditor")
    wrong = choices(tenant, view="", query="outcom:failed", name="x" * 81)
    answer = client.post(url(tenant, "schedules/"), wrong)
    page = answer.content.decode()
    assert 'id="schedule-query_error"' in page
    assert '<details class="filter-more" open>' in page
    assert 'value="outcom:failed"' in page


def test_times_are_of_a_time_zone_and_each_comes_once() -> None:
    """REL-1211, REL-2855: over the hour that clocks leave out, and over the one that comes twice."""
    winter = datetime(2026, 10, 24, 12, tzinfo=UTC)
    found = next_runs("daily", winter, hour=2, time_zone=ZURICH)
    assert local(found) == ["2026-10-25 02:00", "2026-10-26 02:00", "2026-10-27 02:00"]
    assert [one.hour for one in found] == [0, 1, 1]
    spring = datetime(2026, 3, 28, 12, tzinfo=UTC)
    found = next_runs("daily", spring, hour=2, time_zone=ZURICH)
    assert local(found) == ["2026-03-29 03:00", "2026-03-30 02:00", "2026-03-31 02:00"]
    assert local(next_runs("weekly", spring, hour=0, time_zone=ZURICH))[0] == "2026-03-30 00:00"
    # The last hour of a day is left out.
    late = next_runs("daily", spring, hour=23, time_zone="America/Nuuk")
    assert local(late, "America/Nuuk")[:2] == ["2026-03-28 22:59", "2026-03-29 23:00"]
    first, second = (period_before("daily", one, time_zone="America/Nuuk") for one in late[:2])
    assert first[1] == second[0]
    # A whole day is left out, and so is its file.
    new_year = datetime(2011, 12, 28, 20, tzinfo=UTC)
    days = next_runs("daily", new_year, hour=8, time_zone="Pacific/Apia")
    assert local(days, "Pacific/Apia") == [
        f"{day} 08:00" for day in ("2011-12-29", "2011-12-31", "2012-01-01")
    ]
    periods = [period_before("daily", one, time_zone="Pacific/Apia") for one in days]
    assert [until - since for since, until in periods] == [timedelta(days=1)] * 3
    assert [since for since, _ in periods[1:]] == [until for _, until in periods[:-1]]
    # Monday has begun in Auckland while it is still Sunday in UTC.
    sunday = datetime(2026, 11, 29, 18, tzinfo=UTC)
    assert next_run("weekly", sunday, hour=8, time_zone="Pacific/Auckland") == datetime(
        2026, 11, 29, 19, tzinfo=UTC
    )
    monthly = next_runs("monthly", spring, hour=6, time_zone="Asia/Kolkata")
    assert local(monthly, "Asia/Kolkata") == [
        "2026-04-01 06:00",
        "2026-05-01 06:00",
        "2026-06-01 06:00",
    ]


@pytest.mark.parametrize(
    ("cadence", "covers", "days"),
    [
        ("daily", "", ("2026-03-29 00:00", "2026-03-30 00:00")),
        ("weekly", "", ("2026-03-23 00:00", "2026-03-30 00:00")),
        ("monthly", "", ("2026-02-01 00:00", "2026-03-01 00:00")),
        ("daily", "week", ("2026-03-23 00:00", "2026-03-30 00:00")),
        ("monthly", "day", ("2026-03-29 00:00", "2026-03-30 00:00")),
        ("weekly", "month", ("2026-02-28 00:00", "2026-03-30 00:00")),
    ],
)
def test_a_file_is_of_whole_days_of_its_time_zone(
    cadence: str, covers: str, days: tuple[str, str]
) -> None:
    """REL-1211: a day with a changed clock has 23 hours."""
    monday = datetime(2026, 3, 30, 4, tzinfo=UTC)
    since, until = period_before(cadence, monday, time_zone=ZURICH, covers=covers)
    assert tuple(local([since, until])) == days


def test_the_next_three_times_are_shown_while_a_person_chooses(tenant: Tenant) -> None:
    """REL-1211: in words with the time zone, for the choices as they are; nonsense is no error."""
    client, path = tenant.client("auditor"), url(tenant, "schedules/summary/")
    asked = {"view": "ready:refused", "cadence": "weekly", "hour": "6", "time_zone": ZURICH}
    page = client.get(path, asked).content.decode()
    assert page.count("<li>Mon ") == 3
    for words in (f"({ZURICH})", "06:00", "did not let through", "The first file covers"):
        assert words in page
    for wrong in ({"hour": "25"}, {"cadence": "x"}, {"time_zone": "x"}, {"query": "tol:x"}):
        assert client.get(path, {**asked, **wrong}).status_code == 200
    assert "<li>" not in client.get(path, {**asked, "hour": "25"}).content.decode()
    assert tenant.client("admin").get(path, asked).status_code == 403


def test_a_persons_own_time_zone_is_the_one_that_is_offered(tenant: Tenant) -> None:
    """REL-1211: the one that they chose; whoever has chosen none gets their browser's."""
    client, path = tenant.client("auditor"), url(tenant, "schedules/")
    assert 'data-time-zone="guess"' in client.get(path).content.decode()
    tenant.auditor.time_zone = "Asia/Tokyo"
    tenant.auditor.save()
    page = tenant.client("auditor").get(path)
    assert page.context["draft"].time_zone == "Asia/Tokyo"
    assert 'data-time-zone="guess"' not in page.content.decode()


def test_filters_of_the_log_lead_to_the_form_with_the_same_view(tenant: Tenant) -> None:
    """REL-1212: a ready view by its name, a saved one by its name, others as they are; not for those who may not export."""
    client = tenant.client("auditor")
    SavedView.objects.create(
        workspace=tenant.workspace,
        owner=tenant.auditor,
        page=SavedView.Page.LOG.value,
        name="Slow mails",
        query="tool=mail.send&duration_min=500&range=7d",
    )
    for query, view in (
        ("outcome=failed&range=7d", "ready:failures"),
        ("q=action:config.changed", "ready:changes"),
        ("tool=mail.send&duration_min=500&range=30d", "Slow mails"),
        ("tool=echo&outcome=refused&sort=duration", ""),
    ):
        link = client.get(f"{url(tenant)}?{query}").context["schedule_url"]
        form = client.get(link.partition("#")[0])
        names = {value: name for _, group in form.context["view_choices"] for value, name in group}
        chosen = form.context["view"]
        assert view in {chosen, names[chosen]}
        assert sorted(form.context["draft"].query.split("&")) == kept_of(query)
    report = client.get(f"{url(tenant, 'reports/')}?tool=echo").context["schedule_url"]
    form = client.get(report.partition("#")[0])
    assert (form.context["draft"].format, form.context["draft"].query) == ("pdf", "tool=echo")
    assert b"Send this regularly" in client.get(f"{url(tenant)}?tool=echo").content
    page = tenant.client("admin").get(f"{url(tenant)}?tool=echo").content
    assert b"Send this regularly" not in page


@pytest.mark.parametrize(
    ("address", "typed"),
    [
        ("tool=mail.send&duration_min=500", "tool:mail.send duration:500.."),
        ("tool=a%20b&outcome=failed&range=7d", 'outcome:failed tool:"a b"'),
        (
            "duration_max=9&queue_min=5&queue_max=5&result_size_min=1&result_size_max=2",
            "duration:..9 queue:5 result:1..2",
        ),
        ("label=a@example.org&refused_by=policy", "person:a@example.org refused:policy"),
        ("words=say%20%22tool:x%22&kind=user", r'"say \"tool:x\"" kind:user'),
        ("q=tool:echo outcome:failed", "outcome:failed tool:echo"),
        ("tool:echo  outcome:failed", "tool:echo  outcome:failed"),
        # What the language cannot say stays an address.
        ("label=sealer", "label=sealer"),
        ("outcome=nothing&tool=x", "outcome=nothing&tool=x"),
        ("", ""),
    ],
)
def test_filters_of_an_address_stand_in_the_form_as_people_type_them(
    tenant: Tenant, address: str, typed: str
) -> None:
    """REL-1388: and mean the same when they are saved; what cannot be typed stays as it is."""
    now = timezone.now()
    shown = as_typed(address, now=now)
    assert shown == typed
    assert meaning_of(shown, now=now) == meaning_of(address, now=now)
    if "%" not in address and "=" in address:
        row = a_schedule(tenant, query=address)
        page = tenant.client("auditor").get(f"{url(tenant, 'schedules/')}?edit={row.pk}")
        assert page.context["typed_query"] == typed


def test_a_view_that_is_deleted_while_the_form_is_open_loses_nothing(tenant: Tenant) -> None:
    """REL-1388: the form comes back with what was typed and the filters that it held, and says what happened."""
    client = tenant.client("auditor")
    view = SavedView.objects.create(
        workspace=tenant.workspace,
        owner=tenant.auditor,
        page=SavedView.Page.LOG.value,
        name="Slow mails",
        query="tool=mail.send&duration_min=500&range=7d",
    )
    held = client.get(f"{url(tenant, 'schedules/')}?{view.query}").context["typed_query"]
    asked = choices(tenant, view=str(view.pk), query=held, name="Typed by hand", hour="9")
    view.delete()
    for button in ({"preview": "1"}, {"to_me": "1"}, {}):
        answer = client.post(url(tenant, "schedules/"), {**asked, **button})
        assert answer.status_code == 422
        text = answer.content.decode()
        assert "The view that you chose was deleted." in text
        assert 'aria-describedby="schedule-view_error"' in text
        assert answer.context["view"] == ""
        assert answer.context["typed_query"] == "tool:mail.send duration:500.."
        assert (answer.context["typed_name"], answer.context["draft"].hour) == ("Typed by hand", 9)
    assert not ReportSchedule.objects.for_workspace(tenant.workspace).exists()
    assert not mail.outbox
    summary = client.get(url(tenant, "schedules/summary/"), asked)
    assert (summary.status_code, b"was deleted" in summary.content) == (200, True)
    kept = client.post(url(tenant, "schedules/"), {**asked, "view": ""})
    assert kept.status_code == 302
    gone = client.post(url(tenant, "schedules/"), {**asked, "view": "ready:nothing"})
    assert gone.status_code == 422


@pytest.mark.parametrize("extension", ["csv", exports.PDF])
def test_filters_are_told_in_words_and_people_by_name(tenant: Tenant, extension: str) -> None:
    """REL-1262: on the form, in the preview, in the mail, on the schedule's page and in the PDF."""
    a_call(tenant)
    person = tenant.member
    query = f"user={person.pk}&outcome=failed"
    client = tenant.client("auditor")
    asked = choices(tenant, view="", query=query, format=extension, name="Theirs", time_zone="UTC")
    in_words = ("Outcome: Failed in any way", f"Person: {person.email}")
    summary = client.get(url(tenant, "schedules/summary/"), asked).content.decode()
    preview = client.post(url(tenant, "schedules/"), {**asked, "preview": "1"}).context["preview"]
    client.post(url(tenant, "schedules/"), {**asked, "to_me": "1"})
    client.post(url(tenant, "schedules/"), asked)
    row = ReportSchedule.objects.for_workspace(tenant.workspace).get()
    page = client.get(url(tenant, f"schedules/{row.pk}/")).content.decode()
    [message] = mail.outbox
    for body in (summary, preview.text, str(message.body), page):
        assert all(one in body for one in in_words), body
    if extension == exports.PDF:
        _name, content, _kind = message.attachments[0]
        text = " ".join("\n".join(pages_of(content)).split())
        assert "Failed in any way" in text
        assert person.email in text
        assert str(person.pk) not in text


def kept_of(query: str) -> list[str]:
    """What a schedule keeps of an address."""
    if query.startswith("q="):
        return ["action=config.changed"]
    return sorted(
        part for part in query.split("&") if part.partition("=")[0] not in {"range", "sort"}
    )


@pytest.mark.parametrize("extension", [*exports.FORMATS, exports.PDF])
def test_a_preview_is_the_beginning_of_the_file_and_its_mail(
    tenant: Tenant, extension: str
) -> None:
    """REL-1213: the same rows, subject and text as what is sent then; nothing is kept of it.

    REL-1732: the entries open beside what was typed.
    """
    yesterday(tenant)
    client = tenant.client("auditor")
    asked = choices(tenant, view="ready:calls", format=extension, name="Calls", time_zone="UTC")
    page = client.post(url(tenant, "schedules/"), {**asked, "preview": "1"})
    shown = page.context["preview"]
    assert (shown.entries, shown.calls, shown.is_more) == (1, 1, False)
    assert "It holds 1 entry, with 1 tool call." in page.content.decode()
    assert 'target="_blank" rel="noopener">Show these entries' in page.content.decode()
    assert not SentFile.objects.for_workspace(tenant.workspace).exists()
    assert mail.outbox == []
    client.post(url(tenant, "schedules/"), {**asked, "to_me": "1"})
    [message] = mail.outbox
    assert message.subject == shown.subject
    assert "It holds 1 entry, with 1 tool call." in message.body
    name, content, _kind = message.attachments[0]
    assert name == shown.file_name
    data = content if isinstance(content, bytes) else str(content).encode()
    if extension == "csv":
        assert data.decode("utf-8-sig").splitlines()[1] == ",".join(
            '"' + cell.replace('"', '""') + '"' for cell in shown.sample.rows[0]
        )
    elif extension in {"jsonl", "ocsf.jsonl", "cef"}:
        assert data.decode().splitlines() == list(shown.sample.lines)
    elif extension == "xlsx":
        assert SECRET_ARGUMENT in shown.sample.rows[0]
    else:
        text = "\n".join(pages_of(data))
        assert all(one.value in text for one in shown.figures)
    if shown.size is not None:
        assert shown.size == len(data)


def test_a_preview_is_bounded(tenant: Tenant) -> None:
    """REL-1213: it counts up to a number, shows some rows, cuts long values, and says if the file is too large."""
    noon = timezone.now().astimezone(UTC).replace(hour=12) - timedelta(days=1)
    AuditEntry.objects.bulk_create(
        AuditEntry(
            workspace_id=tenant.workspace.pk,
            created_at=noon + timedelta(seconds=number),
            action=Action.CONFIG_CHANGED.value,
            actor_kind="user",
            actor_label="x" * 200,
            source="web",
            details={"long": "y" * 5_000},
        )
        for number in range(9)
    )
    client = tenant.client("auditor")
    asked = choices(tenant, view="ready:everything", time_zone="UTC", preview="1")
    with patch.object(previews, "MOST_COUNTED", 8):
        shown = client.post(url(tenant, "schedules/"), asked).context["preview"]
    assert (shown.entries, shown.calls, shown.is_more) == (8, None, True)
    assert len(shown.sample.rows) == previews.MOST_SHOWN
    assert max(len(cell) for row in shown.sample.rows for cell in row) <= previews.LONGEST_CELL
    with patch("audit.reviews.making.MOST_MAILED", 1_000):
        page = client.post(url(tenant, "schedules/"), asked)
    assert page.context["preview"].is_too_large
    assert "Choose a view with fewer entries" in page.content.decode()


@pytest.mark.both_engines
def test_a_preview_that_takes_too_long_is_stopped(tenant: Tenant) -> None:
    """REL-1213: the database is told to stop, and the person what to do."""

    def slow(*_args: object, **_kwargs: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(ENDLESS[connection.vendor])

    asked = choices(tenant, preview="1")
    with patch("audit.reviews.making.count", slow), patch.object(previews, "SECONDS", 0.1):
        answer = tenant.client("auditor").post(url(tenant, "schedules/"), asked)
    assert answer.status_code == 422
    assert "Looking took too long." in answer.content.decode()


def test_one_for_me_goes_to_nobody_else(tenant: Tenant) -> None:
    """REL-1214, SEC-591: the real mail with the file, recorded as an export, whoever else was chosen."""
    yesterday(tenant)
    second = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.admin)
    second.is_auditor = True
    second.save()
    client = tenant.client("auditor")
    both = [str(tenant.auditor.pk), str(tenant.admin.pk)]
    asked = choices(tenant, view="ready:everything", recipients=both, time_zone="UTC", to_me="1")
    page = client.post(url(tenant, "schedules/"), asked)
    assert f"Sent to {tenant.auditor.email} alone" in page.content.decode()
    [message] = mail.outbox
    assert message.to == [tenant.auditor.email]
    assert "You sent this to yourself" in message.body
    row = SentFile.objects.for_workspace(tenant.workspace).get()
    assert (row.is_trial, row.schedule, row.status, row.entries) == (True, None, "sent", 1)
    taken = AuditEntry.objects.for_workspace(tenant.workspace).get(
        action=Action.EXPORT_CREATED.value
    )
    assert taken.details["to"] == [tenant.auditor.email]
    assert not ReportSchedule.objects.for_workspace(tenant.workspace).exists()
    wrong = client.post(url(tenant, "schedules/"), {**asked, "view": "", "query": "outcom:x"})
    assert wrong.status_code == 422
    assert len(mail.outbox) == 1
    assert tenant.client("owner").post(url(tenant, "schedules/"), asked).status_code == 403


def test_one_for_me_says_why_it_was_not_sent(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1214: in words, and it stays on record as not sent."""

    def refused(*_args: object, **_kwargs: object) -> None:
        raise ConnectionRefusedError("smtp.internal:25 refused")

    monkeypatch.setattr("django.core.mail.EmailMessage.send", refused)
    asked = choices(tenant, to_me="1")
    page = tenant.client("auditor").post(url(tenant, "schedules/"), asked).content.decode()
    assert "The mail was not sent." in page
    assert "smtp" not in page
    assert SentFile.objects.for_workspace(tenant.workspace).get().status == "failed"


def test_only_readers_of_the_log_are_offered_and_taken(two_workspaces: TwoTenants) -> None:
    """SEC-590: no plain member, nobody suspended or switched off, and nobody of another workspace."""
    tenant, other = two_workspaces.a, two_workspaces.b
    client = tenant.client("auditor")

    def offered() -> set[str]:
        found = client.get(url(tenant, "schedules/")).context["people"]
        return {user.email for user in found}

    assert offered() == {tenant.auditor.email}
    rows = Membership.objects.for_workspace(tenant.workspace)
    rows.filter(user=tenant.admin).update(is_auditor=True)
    assert offered() == {tenant.auditor.email, tenant.admin.email}
    rows.filter(user=tenant.admin).update(suspended_at=timezone.now())
    assert offered() == {tenant.auditor.email}
    for stranger in (tenant.member, tenant.admin, other.auditor):
        asked = choices(tenant, recipients=[str(stranger.pk)])
        assert client.post(url(tenant, "schedules/"), asked).status_code == 422
    asked = choices(tenant, recipients=["nobody"])
    assert client.post(url(tenant, "schedules/"), asked).status_code == 422


def test_a_form_offers_a_bounded_number_of_people(tenant: Tenant) -> None:
    """REL-1210: and always those who are chosen already."""
    Membership.objects.for_workspace(tenant.workspace).update(is_auditor=True)
    with patch("audit.reviews.schedules.MOST_OFFERED", 2):
        chosen = str(tenant.owner.pk)
        people, is_cut = offered_recipients(tenant.workspace.pk, [chosen])
    assert (len(people), is_cut) == (3, True)
    assert tenant.owner in people


def test_a_scheduled_report_is_drawn_in_its_time_zone(tenant: Tenant) -> None:
    """REL-1218: and the one that a person takes in theirs, each saying so."""
    yesterday(tenant)
    a_schedule(tenant, format=exports.PDF, time_zone=ZURICH)
    assert send_due() == 1
    _name, content, _kind = mail.outbox[0].attachments[0]
    assert isinstance(content, bytes)
    text = "\n".join(pages_of(content))
    assert f"time zone {ZURICH}" in text
    assert f"per hour, {ZURICH}" in text
    assert "00:00 to" in text
    tenant.auditor.time_zone = "Asia/Tokyo"
    tenant.auditor.save()
    for path in (url(tenant, "reports.pdf"), "/api/audit-files/report/"):
        headers = {"X-Workspace": tenant.workspace.slug}
        answer = tenant.client("auditor").get(path, headers=headers)
        text = "\n".join(pages_of(answer.content))
        assert "time zone Asia/Tokyo" in text
        assert "Asia/Tokyo, " in text


def test_a_draft_knows_whether_it_was_changed() -> None:
    """REL-1211: an hour or a zone is a change as any other."""
    values: dict[str, Any] = {
        "name": "x",
        "query": "",
        "format": "csv",
        "cadence": "daily",
        "delivery": "mail",
        "recipients": [],
    }
    one = ScheduleDraft(**values)
    assert one.digest != ScheduleDraft(**values, hour=7).digest
    assert one.digest != ScheduleDraft(**values, time_zone=ZURICH).digest
