"""The endpoint's route."""

from __future__ import annotations

from django.urls import path

from mcp_servers.endpoint.views import Endpoint

urlpatterns = [path("w/<slug:workspace_slug>/mcp/", Endpoint.as_view(), name="mcp_endpoint")]
