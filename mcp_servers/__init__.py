"""MCP servers: what they offer, connections to them, and the one gate through which their tools are called."""
