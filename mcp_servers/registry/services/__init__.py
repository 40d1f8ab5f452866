"""What people do with servers and what these offer: one function for each.

Each asks permission, owns the transaction, the record and the news. Functions that talk to a server do so outside of
any transaction.
"""

from mcp_servers.registry.services.connections import (
    connections_of,
    disconnect_server,
)
from mcp_servers.registry.services.drafts import ServerDraft, has_secrets_of
from mcp_servers.registry.services.first_looks import begin_first_look
from mcp_servers.registry.services.inspection import (
    LOOK_SECONDS,
    ConnectionReport,
    check_server,
    refresh_tools,
    test_connection,
    try_connection,
    try_personal_connection,
)
from mcp_servers.registry.services.programs import (
    accept_program,
    check_programs,
    delete_program,
    ensure_program,
    save_program,
    withdraw_program,
)
from mcp_servers.registry.services.rules import set_workspace_rule
from mcp_servers.registry.services.server_notices import listen_to_servers
from mcp_servers.registry.services.servers import (
    add_personal_server,
    add_server,
    check_draft,
    delete_server,
    set_server_active,
    update_server,
)
from mcp_servers.registry.services.tools import (
    accept_definition,
    accept_definitions,
    may_keep_results,
    set_approval_override,
    set_offer_enabled,
    set_tool_cache,
    set_tool_enabled,
)

__all__ = [
    "LOOK_SECONDS",
    "ConnectionReport",
    "ServerDraft",
    "accept_definition",
    "accept_definitions",
    "accept_program",
    "add_personal_server",
    "add_server",
    "begin_first_look",
    "check_draft",
    "check_programs",
    "check_server",
    "connections_of",
    "delete_program",
    "delete_server",
    "disconnect_server",
    "ensure_program",
    "has_secrets_of",
    "listen_to_servers",
    "may_keep_results",
    "refresh_tools",
    "save_program",
    "set_approval_override",
    "set_offer_enabled",
    "set_server_active",
    "set_tool_cache",
    "set_tool_enabled",
    "set_workspace_rule",
    "test_connection",
    "try_connection",
    "try_personal_connection",
    "update_server",
    "withdraw_program",
]
