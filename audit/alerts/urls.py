"""Routes of alerts and of the bell."""

from __future__ import annotations

from django.urls import path

from audit.alerts import views

_ALERTS = "w/<slug:workspace_slug>/audit/alerts/"
urlpatterns = [
    path(_ALERTS, views.alerts, name="alerts"),
    path(f"{_ALERTS}add/", views.add, name="alert_add"),
    path(f"{_ALERTS}recommended/", views.recommended, name="alert_recommended"),
    path(f"{_ALERTS}<uuid:rule_id>/", views.edit, name="alert_rule"),
    path(f"{_ALERTS}<uuid:rule_id>/<slug:verb>/", views.change, name="alert_change"),
    path("w/<slug:workspace_slug>/notices/", views.bell, name="notices"),
    path("w/<slug:workspace_slug>/notices/all/", views.all_notices, name="all_notices"),
    path("w/<slug:workspace_slug>/notices/read/", views.read, name="notices_read"),
]
