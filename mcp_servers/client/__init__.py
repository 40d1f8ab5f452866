"""The client: speaks MCP over any transport. It knows no rows, no people and no vendor.

`spec` says where and with what to connect; `connections` holds live connections and sends on them, `transports` gives
each its two streams of messages. The other modules are the protocol's values: what is asked (`inputs`), offered
(`definitions`, `schemas`, `images`), and comes back (`values`, `results`, `errors`).
"""
