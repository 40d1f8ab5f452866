"""Routes of the log."""

from __future__ import annotations

from django.urls import path

from audit import views
from audit.alerts.urls import urlpatterns as alerts
from audit.streams.urls import urlpatterns as streams

app_name = "audit"
urlpatterns = [
    path("w/<slug:workspace_slug>/audit/", views.entries, name="entries"),
    path("w/<slug:workspace_slug>/audit/export.<str:extension>", views.export, name="export"),
    path("w/<slug:workspace_slug>/audit/<uuid:entry_id>/", views.entry_detail, name="entry"),
    *streams,
    *alerts,
]
