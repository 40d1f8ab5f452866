"""Rows of MCP servers, their tools, checks and approvals."""

from mcp_servers.models.approvals import Approval
from mcp_servers.models.servers import McpServer, ServerStatus, StdioProgram, Transport
from mcp_servers.models.telemetry import HealthCheck
from mcp_servers.models.tools import ApprovalOverride, McpTool

__all__ = [
    "Approval",
    "ApprovalOverride",
    "HealthCheck",
    "McpServer",
    "McpTool",
    "ServerStatus",
    "StdioProgram",
    "Transport",
]
