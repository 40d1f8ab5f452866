"""A small MCP server of our own, for the demo workspace and the tests."""
