"""Routes of the servers page."""

from __future__ import annotations

from django.urls import path

from mcp_servers import views

_BASE = "w/<slug:workspace_slug>/servers/"
_ONE = f"{_BASE}<uuid:server_id>/"
_TOOL = f"{_ONE}tools/<uuid:tool_id>/"

app_name = "mcp_servers"
urlpatterns = [
    path(_BASE, views.servers, name="servers"),
    path(f"{_BASE}add/", views.add, name="add"),
    path(f"{_BASE}catalogue/", views.add_from_catalogue, name="add_from_catalogue"),
    path(f"{_BASE}try/", views.try_out, name="try"),
    path(_ONE, views.server, name="server"),
    path(f"{_ONE}test/", views.test, name="test"),
    path(f"{_ONE}refresh/", views.refresh, name="refresh"),
    path(f"{_ONE}active/", views.set_active, name="active"),
    path(f"{_ONE}delete/", views.delete, name="delete"),
    path(f"{_TOOL}enabled/", views.set_tool_enabled, name="tool_enabled"),
    path(f"{_TOOL}approval/", views.set_tool_approval, name="tool_approval"),
    path(f"{_TOOL}accept/", views.accept_tool, name="tool_accept"),
]
