"""Routes of the pages on the hosted MCP provider, among those on servers."""

from __future__ import annotations

from django.urls import path

from mcp_servers.klavis import views

_KLAVIS = "w/<slug:workspace_slug>/servers/klavis/"
_HOSTED = f"{_KLAVIS}<uuid:instance_id>/"

urlpatterns = [
    path("oauth/hosted/signed-in", views.signed_in, name="klavis_signed_in"),
    path(_KLAVIS, views.klavis, name="klavis"),
    path(f"{_KLAVIS}save/", views.save, name="klavis_save"),
    path(f"{_KLAVIS}test/", views.test, name="klavis_test"),
    path(f"{_KLAVIS}remove/", views.remove, name="klavis_remove"),
    path(f"{_KLAVIS}strata/", views.strata, name="klavis_strata"),
    path(
        f"{_KLAVIS}removals/<uuid:removal_id>/forget/",
        views.forget_removal,
        name="klavis_forget_removal",
    ),
    path(_HOSTED, views.instance, name="klavis_instance"),
    path(f"{_HOSTED}card/", views.card, name="klavis_card"),
    path(f"{_HOSTED}poll/", views.poll, name="klavis_poll"),
    path(f"{_HOSTED}sign-in/", views.sign_in, name="klavis_sign_in"),
    path(f"{_HOSTED}credential/", views.credential, name="klavis_credential"),
    path(f"{_HOSTED}read-only/", views.read_only, name="klavis_read_only"),
    path(f"{_HOSTED}rest/", views.rest, name="klavis_rest"),
    path(f"{_HOSTED}services/", views.services, name="klavis_services"),
    path(f"{_HOSTED}uninstall/", views.uninstall, name="klavis_uninstall"),
    path(f"{_HOSTED}actions/", views.set_rule, name="klavis_rule"),
    path(
        f"{_HOSTED}actions/<uuid:rule_id>/remove/",
        views.remove_rule,
        name="klavis_rule_remove",
    ),
]
