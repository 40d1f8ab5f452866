"""Servers and what they offer over REST."""

from mcp_servers.pages.api.action_rules import ActionRuleViewSet
from mcp_servers.pages.api.call_rules import CallRuleViewSet
from mcp_servers.pages.api.catalogue import CatalogueViewSet
from mcp_servers.pages.api.clients import MemberClientViewSet, OwnClientViewSet
from mcp_servers.pages.api.connections import ConnectionViewSet
from mcp_servers.pages.api.health_checks import HealthCheckViewSet
from mcp_servers.pages.api.lists import GlobalServerViewSet, ServerListViewSet
from mcp_servers.pages.api.offers import PromptViewSet, ResourceViewSet
from mcp_servers.pages.api.platform import platform_routes
from mcp_servers.pages.api.servers import ServerViewSet
from mcp_servers.pages.api.tools import ToolViewSet
from mcp_servers.pages.api.trace import TraceViewSet

__all__ = ["platform_routes", "routes"]

routes = [
    ("servers", ServerViewSet),
    ("tools", ToolViewSet),
    ("call-rules", CallRuleViewSet),
    ("resources", ResourceViewSet),
    ("prompts", PromptViewSet),
    ("trace", TraceViewSet),
    ("health-checks", HealthCheckViewSet),
    ("action-rules", ActionRuleViewSet),
    ("catalogue", CatalogueViewSet),
    ("connections", ConnectionViewSet),
    ("mcp-clients", OwnClientViewSet),
    ("member-mcp-clients", MemberClientViewSet),
    ("global-servers", GlobalServerViewSet),
    ("server-lists", ServerListViewSet),
]
