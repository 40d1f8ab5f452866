"""Routes of the log."""

from __future__ import annotations

from django.urls import path

from audit import overview, views
from audit.alerts.urls import urlpatterns as alerts
from audit.retention.urls import urlpatterns as retention
from audit.streams.urls import urlpatterns as streams

app_name = "audit"
_LOG = "w/<slug:workspace_slug>/audit/"
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
    path("w/<slug:workspace_slug>/activity/", views.activity, name="activity"),
    path(
        "w/<slug:workspace_slug>/activity/<uuid:entry_id>/",
        views.own_entry,
        name="own_entry",
    ),
    path("platform/audit/", views.platform, name="platform"),
    path("w/<slug:workspace_slug>/audit/", views.entries, name="entries"),
    path("w/<slug:workspace_slug>/audit/export.<str:extension>", views.export, name="export"),
    path("w/<slug:workspace_slug>/audit/proof.jsonl", views.proof_export, name="proof-export"),
    path("w/<slug:workspace_slug>/audit/trellis_verify.py", views.verifier, name="verifier"),
    path(f"{_LOG}calls/<uuid:call_id>/", views.call_page, name="call"),
    path("w/<slug:workspace_slug>/audit/<uuid:entry_id>/", views.entry_detail, name="entry"),
    *retention,
    *streams,
    *alerts,
]
