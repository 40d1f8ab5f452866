"""Ours: the hosted MCP provider."""
