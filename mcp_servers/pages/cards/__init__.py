"""How pages show servers and what they offer: rows into plain values. Reads only."""

from mcp_servers.pages.cards.connections import (
    ConnectedAccount,
    accounts_of,
    host_of,
    missing_sign_ins,
    people_of,
    sign_in_path,
)
from mcp_servers.pages.cards.listing import ServerOrigin, ServerSearch, list_servers
from mcp_servers.pages.cards.servers import Card, cards_of
from mcp_servers.pages.cards.tools import (
    Badge,
    OfferRow,
    ToolRow,
    badges_of,
    offer_of,
    tool_row,
    unchecked_results,
)

__all__ = [
    "Badge",
    "Card",
    "ConnectedAccount",
    "OfferRow",
    "ServerOrigin",
    "ServerSearch",
    "ToolRow",
    "accounts_of",
    "badges_of",
    "cards_of",
    "host_of",
    "list_servers",
    "missing_sign_ins",
    "offer_of",
    "people_of",
    "sign_in_path",
    "tool_row",
    "unchecked_results",
]
