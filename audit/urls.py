"""Routes of the log."""

from __future__ import annotations

from django.urls import URLPattern, path

from audit import overview, views
from audit.alerts import views as alerts
from audit.retention import views as retention
from audit.streams import views as streams

app_name = "audit"
_IN_WORKSPACE = "w/<slug:workspace_slug>/"
_LOG = f"{_IN_WORKSPACE}audit/"
_ACTIVITY = f"{_IN_WORKSPACE}activity/"
_NOTICES = f"{_IN_WORKSPACE}notices/"
_SETTINGS = f"{_LOG}settings/"
_ALERTS = f"{_LOG}alerts/"


def _of_streams(base: str, prefix: str) -> list[URLPattern]:
    return [
        path(base, streams.streams, name=f"{prefix}streams"),
        path(f"{base}add/<slug:kind>/", streams.add, name=f"{prefix}stream_add"),
        path(f"{base}<uuid:stream_id>/", streams.edit, name=f"{prefix}stream"),
        path(f"{base}<uuid:stream_id>/<slug:verb>/", streams.change, name=f"{prefix}stream_change"),
    ]


urlpatterns = [
    path(f"{_LOG}overview/", overview.overview, name="overview"),
    path(f"{_LOG}reports/", views.reports_page, name="reports"),
    path(f"{_LOG}reports.pdf", views.report_file, name="report-file"),
    path(f"{_LOG}views/", views.save_view, name="save_view"),
    path(f"{_LOG}views/<uuid:view_id>/delete/", views.delete_view, name="delete_view"),
    path(f"{_LOG}reviews/", views.reviews, name="reviews"),
    path(f"{_LOG}schedules/", views.schedule_list, name="schedules"),
    path(f"{_LOG}schedules/summary/", views.schedule_summary, name="schedule-summary"),
    path(f"{_LOG}schedules/<uuid:schedule_id>/", views.schedule_page, name="schedule-page"),
    path(
        f"{_LOG}schedules/<uuid:schedule_id>/<slug:verb>/", views.change_schedule, name="schedule"
    ),
    path(f"{_LOG}sent/<uuid:sent_id>/", views.sent_file, name="sent-file"),
    path(f"{_LOG}sent/<uuid:sent_id>/again/", views.send_file_again, name="send-file-again"),
    path(_ACTIVITY, views.activity, name="activity"),
    path(f"{_ACTIVITY}<uuid:entry_id>/", views.own_entry, name="own_entry"),
    path("platform/audit/", views.platform, name="platform"),
    path(_LOG, views.entries, name="entries"),
    path(f"{_LOG}export.<str:extension>", views.export, name="export"),
    path(f"{_LOG}proof.jsonl", views.proof_export, name="proof-export"),
    path(f"{_LOG}trellis_verify.py", views.verifier, name="verifier"),
    path(f"{_LOG}calls/<uuid:call_id>/", views.call_page, name="call"),
    path(f"{_LOG}<uuid:entry_id>/", views.entry_detail, name="entry"),
    path(_SETTINGS, retention.settings, name="settings"),
    path(f"{_SETTINGS}hold/", retention.place_hold, name="hold_place"),
    path(f"{_SETTINGS}hold/<uuid:hold_id>/release/", retention.release_hold, name="hold_release"),
    path(f"{_SETTINGS}erase/", retention.erase, name="erase"),
    *_of_streams(f"{_LOG}streams/", ""),
    *_of_streams("platform/audit/streams/", "platform_"),
    path(_ALERTS, alerts.alerts, name="alerts"),
    path(f"{_ALERTS}add/", alerts.add, name="alert_add"),
    path(f"{_ALERTS}recommended/", alerts.recommended, name="alert_recommended"),
    path(f"{_ALERTS}<uuid:rule_id>/", alerts.edit, name="alert_rule"),
    path(f"{_ALERTS}<uuid:rule_id>/<slug:verb>/", alerts.change, name="alert_change"),
    path(_NOTICES, alerts.bell, name="notices"),
    path(f"{_NOTICES}all/", alerts.all_notices, name="all_notices"),
    path(f"{_NOTICES}read/", alerts.read, name="notices_read"),
]
