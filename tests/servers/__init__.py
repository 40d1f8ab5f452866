"""The MCP servers of other people that the tests connect to, pinned and installed on first use.

Apart from the product's own packages: some of them need others that do not go together with ours.
"""
