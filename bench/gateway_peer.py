"""A gateway of others before the tool server, in an environment of its own: `python gateway_peer.py URL PORT`."""

from __future__ import annotations

import sys

from fastmcp.server import create_proxy  # type: ignore[import-not-found]

if __name__ == "__main__":
    create_proxy(sys.argv[1]).run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[2]),
        show_banner=False,
        log_level="ERROR",
    )
