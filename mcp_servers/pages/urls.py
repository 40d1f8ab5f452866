"""Routes of the pages on servers."""

from __future__ import annotations

from django.urls import path

from mcp_servers.pages.extensions import url_patterns
from mcp_servers.pages.views import (
    adding,
    call_rules,
    catalogue,
    clients,
    connections,
    icons,
    lists,
    oauth,
    rules,
    servers,
    settings,
    tester,
    tools,
    trace,
)

_BASE = "w/<slug:workspace_slug>/servers/"
_ONE = f"{_BASE}<uuid:server_id>/"
_TOOL = f"{_ONE}tools/<uuid:tool_id>/"
_KNOWN = "w/<slug:workspace_slug>/catalogue/"
_ENTRY = f"{_KNOWN}<slug:source>/<slug:entry_slug>/"
_MESSAGE = f"{_ONE}trace/<uuid:message_id>/"

app_name = "mcp_servers"
urlpatterns = [
    path(_BASE, servers.servers, name="servers"),
    path(f"{_BASE}add/", adding.add, name="add"),
    path(f"{_BASE}catalogue/", adding.add_from_catalogue, name="add_from_catalogue"),
    path(f"{_BASE}mine/", adding.add_personal, name="add_personal"),
    path(f"{_BASE}rules/", rules.rules, name="rules"),
    path(f"{_BASE}call-rules/", call_rules.call_rules, name="call_rules"),
    path(f"{_BASE}call-rules/add/", call_rules.call_rule, name="call_rule_new"),
    path(f"{_BASE}call-rules/<uuid:rule_id>/", call_rules.call_rule, name="call_rule"),
    path(
        f"{_BASE}call-rules/<uuid:rule_id>/enabled/",
        call_rules.switch_rule,
        name="call_rule_enabled",
    ),
    path(
        f"{_BASE}call-rules/<uuid:rule_id>/delete/", call_rules.delete_rule, name="call_rule_delete"
    ),
    path(f"{_BASE}clients/", clients.clients, name="clients"),
    path(f"{_BASE}clients/members/", clients.members, name="member_clients"),
    path(f"{_BASE}clients/<uuid:sign_in_id>/end/", clients.end, name="client_end"),
    path(f"{_BASE}buds/", adding.buds_to_choose, name="buds_to_choose"),
    path(f"{_BASE}try/", adding.try_out, name="try"),
    path(f"{_BASE}icons/", icons.icons, name="icons"),
    path(f"{_BASE}import/", lists.import_servers, name="import"),
    path(f"{_BASE}export/", lists.export_servers, name="export"),
    path(f"{_BASE}platform/<uuid:global_id>/", servers.set_global, name="set_global"),
    path(_KNOWN, catalogue.catalogue, name="catalogue"),
    path(f"{_ENTRY}install/", catalogue.install, name="catalogue_install"),
    path(f"{_ENTRY}audience/", catalogue.set_audience, name="catalogue_audience"),
    path(f"{_ENTRY}<uuid:server_id>/uninstall/", catalogue.uninstall, name="catalogue_uninstall"),
    path("w/<slug:workspace_slug>/connections/", connections.connections, name="connections"),
    path(
        "w/<slug:workspace_slug>/connections/<uuid:grant_id>/revoke/",
        connections.revoke,
        name="connection_revoke",
    ),
    path("oauth/mcp/<uuid:server_id>/callback", oauth.callback, name="oauth_callback"),
    path("oauth/mcp/<uuid:server_id>/client.json", oauth.document, name="oauth_client_document"),
    path(f"{_ONE}sign-in/", oauth.sign_in, name="sign_in"),
    path(f"{_ONE}people/", connections.people, name="server_people"),
    path(_ONE, servers.server, name="server"),
    path(f"{_ONE}settings/", settings.settings, name="settings"),
    path(f"{_ONE}test/", servers.test, name="test"),
    path(f"{_ONE}refresh/", servers.refresh, name="refresh"),
    path(f"{_ONE}connect/", servers.refresh, name="connect"),
    path(f"{_ONE}disconnect/", servers.disconnect, name="disconnect"),
    path(f"{_ONE}sessions/", servers.use_sessions, name="use_sessions"),
    path(f"{_ONE}active/", servers.set_active, name="active"),
    path(f"{_ONE}delete/", servers.delete, name="delete"),
    path(f"{_ONE}icon/", icons.icon, name="icon"),
    path(f"{_ONE}review/", tools.review, name="review"),
    path(f"{_ONE}offers/", tools.offers, name="offers"),
    path(
        f"{_ONE}resources/<uuid:resource_id>/enabled/",
        tools.set_resource_enabled,
        name="resource_enabled",
    ),
    path(
        f"{_ONE}prompts/<uuid:prompt_id>/enabled/", tools.set_prompt_enabled, name="prompt_enabled"
    ),
    path(f"{_ONE}trace/", trace.trace, name="trace"),
    path(f"{_ONE}trace/news/", trace.trace_news, name="trace_news"),
    path(f"{_ONE}trace/download/", trace.download, name="trace_download"),
    path(_MESSAGE, trace.message, name="trace_message"),
    path(f"{_MESSAGE}body/", trace.message_body, name="trace_body"),
    path(f"{_TOOL}enabled/", tools.set_tool_enabled, name="tool_enabled"),
    path(f"{_TOOL}approval/", tools.set_tool_approval, name="tool_approval"),
    path(f"{_TOOL}cache/", tools.set_tool_cache, name="tool_cache"),
    path(f"{_TOOL}accept/", tools.accept_tool, name="tool_accept"),
    path(f"{_TOOL}try/", tester.tool_tester, name="tool_tester"),
    path(f"{_TOOL}try/run/", tester.tool_try, name="tool_try"),
    *url_patterns(),
]
