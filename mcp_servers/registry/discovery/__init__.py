"""What servers offer, kept in rows: seen, changed, gone; tools quarantined until somebody has looked at them."""

from mcp_servers.registry.discovery.offers import OfferCounts, store_prompts, store_resources
from mcp_servers.registry.discovery.sightings import is_shown_to, listed_for, shown_to
from mcp_servers.registry.discovery.tools import DiscoveryResult, accept, store_tools

__all__ = [
    "DiscoveryResult",
    "OfferCounts",
    "accept",
    "is_shown_to",
    "listed_for",
    "shown_to",
    "store_prompts",
    "store_resources",
    "store_tools",
]
