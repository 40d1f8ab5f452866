"""The endpoint's route, and those of signing in for it."""

from __future__ import annotations

from django.urls import path

from mcp_servers.endpoint import consent
from mcp_servers.endpoint.sign_in import views as sign_in
from mcp_servers.endpoint.views import EndpointView

_ABOUT = ".well-known/oauth-protected-resource/w/<slug:name>/mcp"
"""Not `workspace_slug`: it says the same whether there is such a workspace or not."""

urlpatterns = [
    path("w/<slug:workspace_slug>/mcp/", EndpointView.as_view(), name="mcp_endpoint"),
    path(f"{_ABOUT}/", sign_in.describe_endpoint, name="mcp_about_endpoint"),
    path(_ABOUT, sign_in.describe_endpoint, name="mcp_about_endpoint_short"),
    path(
        ".well-known/oauth-authorization-server",
        sign_in.describe_server,
        name="mcp_about_sign_in",
    ),
    path("oauth/authorize", consent.authorize, name="mcp_authorize"),
    path("oauth/token", sign_in.token, name="mcp_token"),
    path("oauth/register", sign_in.register, name="mcp_register"),
    path("oauth/revoke", sign_in.revoke, name="mcp_revoke"),
]
