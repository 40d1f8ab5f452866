"""Servers, what they offer, and the platform's catalogue in the admin."""

from mcp_servers.admin import grants, offers, platform, servers

__all__ = ["grants", "offers", "platform", "servers"]
