"""Rows of MCP servers, what they offer, what was measured, asked and approved."""

from mcp_servers.models.actions import ActionRule
from mcp_servers.models.approvals import Approval, ToolPermission
from mcp_servers.models.call_rules import Approver, CallRule
from mcp_servers.models.catalogue import CatalogueChoice
from mcp_servers.models.client_sign_ins import (
    ClientSignIn,
    ClientToken,
    KnownClient,
    KnownVia,
    TokenKind,
)
from mcp_servers.models.icons import ServerIcon
from mcp_servers.models.inputs import InputRequest, InputStatus
from mcp_servers.models.oauth import (
    ClientKind,
    OAuthAttempt,
    OAuthClient,
    OAuthGrant,
    ToolSighting,
)
from mcp_servers.models.quotas import CallCount
from mcp_servers.models.resources import McpPrompt, McpResource
from mcp_servers.models.server_credentials import OAUTH_TYPES, AccountUse, AuthType
from mcp_servers.models.server_questions import SamplingPolicy
from mcp_servers.models.server_state import ServerState, ServerStatus
from mcp_servers.models.servers import GlobalServer, LogLevel, McpServer, ServerScope
from mcp_servers.models.stdio_programs import StdioProgram
from mcp_servers.models.telemetry import HealthCheck, TraceMessage
from mcp_servers.models.tools import ApprovalOverride, McpTool

__all__ = [
    "OAUTH_TYPES",
    "AccountUse",
    "ActionRule",
    "Approval",
    "ApprovalOverride",
    "Approver",
    "AuthType",
    "CallCount",
    "CallRule",
    "CatalogueChoice",
    "ClientKind",
    "ClientSignIn",
    "ClientToken",
    "GlobalServer",
    "HealthCheck",
    "InputRequest",
    "InputStatus",
    "KnownClient",
    "KnownVia",
    "LogLevel",
    "McpPrompt",
    "McpResource",
    "McpServer",
    "McpTool",
    "OAuthAttempt",
    "OAuthClient",
    "OAuthGrant",
    "SamplingPolicy",
    "ServerIcon",
    "ServerScope",
    "ServerState",
    "ServerStatus",
    "StdioProgram",
    "TokenKind",
    "ToolPermission",
    "ToolSighting",
    "TraceMessage",
]
