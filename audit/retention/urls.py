"""Routes of the log's settings."""

from __future__ import annotations

from django.urls import path

from audit.retention import views

_BASE = "w/<slug:workspace_slug>/audit/settings/"

urlpatterns = [
    path(_BASE, views.settings, name="settings"),
    path(f"{_BASE}hold/", views.place_hold, name="hold_place"),
    path(f"{_BASE}hold/<uuid:hold_id>/release/", views.release_hold, name="hold_release"),
    path(f"{_BASE}erase/", views.erase, name="erase"),
]
