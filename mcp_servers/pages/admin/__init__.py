"""Servers, what they offer, and the platform's catalogue in the admin."""

from mcp_servers.pages.admin import actions, grants, offers, platform, servers

__all__ = ["actions", "grants", "offers", "platform", "servers"]
