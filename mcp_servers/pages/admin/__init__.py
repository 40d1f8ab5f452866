"""Servers, what they offer, and the platform's catalogue in the admin."""

from mcp_servers.klavis import admin as klavis
from mcp_servers.pages.admin import grants, offers, platform, servers

__all__ = ["grants", "klavis", "offers", "platform", "servers"]
