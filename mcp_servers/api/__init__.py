"""Servers and what they offer over REST."""

from mcp_servers.api.connections import ConnectionViewSet
from mcp_servers.api.klavis import HostedViewSet
from mcp_servers.api.known import CatalogueViewSet
from mcp_servers.api.lists import GlobalServerViewSet, ServerListViewSet
from mcp_servers.api.offers import PromptViewSet, ResourceViewSet
from mcp_servers.api.servers import ServerViewSet
from mcp_servers.api.tools import ToolViewSet
from mcp_servers.api.trace import TraceViewSet

routes = [
    ("servers", ServerViewSet),
    ("tools", ToolViewSet),
    ("resources", ResourceViewSet),
    ("prompts", PromptViewSet),
    ("trace", TraceViewSet),
    ("catalogue", CatalogueViewSet),
    ("connections", ConnectionViewSet),
    ("global-servers", GlobalServerViewSet),
    ("server-lists", ServerListViewSet),
    ("hosted-servers", HostedViewSet),
]
