"""How pages show servers and what they offer: rows into plain values. Reads only."""

from mcp_servers.cards.servers import Card, cards_of
from mcp_servers.cards.tools import Badge, OfferRow, ToolRow, badges_of, offer_of, tool_row

__all__ = [
    "Badge",
    "Card",
    "OfferRow",
    "ToolRow",
    "badges_of",
    "cards_of",
    "offer_of",
    "tool_row",
]
