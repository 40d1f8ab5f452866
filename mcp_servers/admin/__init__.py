"""Servers, what they offer, and the platform's catalogue in the admin."""

from mcp_servers.admin import grants, klavis, offers, platform, servers

__all__ = ["grants", "klavis", "offers", "platform", "servers"]
