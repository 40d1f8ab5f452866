"""Servers, what they offer, and the platform's catalogue in the admin."""

from mcp_servers.admin import offers, platform, servers

__all__ = ["offers", "platform", "servers"]
