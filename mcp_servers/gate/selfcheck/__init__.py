"""A self-check of the log in a running installation: calls whose fate is known, and what the log says of them."""

from mcp_servers.gate.selfcheck.running import Report, Row, check_log

__all__ = ["Report", "Row", "check_log"]
