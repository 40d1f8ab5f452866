"""Klavis, a hosted MCP provider: its API, the servers it runs for a workspace and its people, and how they are called.

An app of its own that registers itself; without this folder and its line in the settings everything else works.
`client` speaks the API, `accounts` and `instances` are what people do, `polling`, `reconciling` and `removals` are the
regular work, `targets` says how a hosted server is reached, and `rest_transport` reaches it over the API.
"""
