"""Live connections to MCP servers: one owner task each, on one loop thread per process."""
