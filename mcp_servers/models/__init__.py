"""Rows of MCP servers, what they offer, what was measured, asked and approved."""

from mcp_servers.models.approvals import Approval, ToolPermission
from mcp_servers.models.inputs import InputRequest, InputStatus
from mcp_servers.models.quotas import CallCount
from mcp_servers.models.resources import McpPrompt, McpResource
from mcp_servers.models.servers import (
    GlobalServer,
    LogLevel,
    McpServer,
    SamplingPolicy,
    ServerScope,
    ServerStatus,
    StdioProgram,
    Transport,
)
from mcp_servers.models.telemetry import HealthCheck, TraceMessage
from mcp_servers.models.tools import ApprovalOverride, McpTool

__all__ = [
    "Approval",
    "ApprovalOverride",
    "CallCount",
    "GlobalServer",
    "HealthCheck",
    "InputRequest",
    "InputStatus",
    "LogLevel",
    "McpPrompt",
    "McpResource",
    "McpServer",
    "McpTool",
    "SamplingPolicy",
    "ServerScope",
    "ServerStatus",
    "StdioProgram",
    "ToolPermission",
    "TraceMessage",
    "Transport",
]
