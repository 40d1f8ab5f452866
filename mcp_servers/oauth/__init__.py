"""Signing in to MCP servers: this platform as an OAuth client.

Two requests make a sign-in, and any process may serve either: `services.start_sign_in()` finds out who issues tokens
for a server and as whom we are known there, and `services.end_sign_in()` takes what the issuer sent back. What is
granted then belongs to one person, or to the workspace, and `bearer.GrantAuth` puts it on that principal's requests.

Source: MCP specification, "Authorization" (2025-11-25 and 2026-07-28); RFC 6749, 6750, 7009, 7591, 7636, 8414, 8707,
9207, 9728.
"""
