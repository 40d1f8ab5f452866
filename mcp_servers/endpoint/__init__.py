"""The workspace's own MCP endpoint: other MCP clients use its tools through Trellis.

A client sends a token for MCP clients. It is listed and may call what its person may use in a chat with all tools. Each
call passes the gate, as every other does. The SDK speaks the protocol, of today's revision and of those before.
"""
