"""Signing in with other MCP clients: Trellis as the authorization server of its own endpoints.

A client needs the endpoint's address and nothing else. It reads where people sign in, opens the page that asks the person,
and gets tokens that are good for one workspace's endpoint. The SDK's handlers speak the protocol; rows and rules are here.

Source: MCP specification, "Authorization"; OAuth 2.1; RFC 6749, 7009, 7591, 7636, 8252, 8414, 8707, 9207, 9700, 9728.
"""
