"""What the conformance suite starts for each scenario: it hands the scenario to the process that plays it.

python tests/conformance/client.py URL

That process is the one that runs the suite, so that our side need not start anew for each scenario.
"""

from __future__ import annotations

import json
import os
import socket
import sys

SOCKET = "TRELLIS_CONFORMANCE_SOCKET"


def main() -> int:
    """Wait until the scenario has been played; 0 if nothing failed on our side."""
    task = {
        "url": sys.argv[-1],
        "scenario": os.environ.get("MCP_CONFORMANCE_SCENARIO", ""),
        "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
    }
    with socket.socket(socket.AF_UNIX) as line, line.makefile("rw") as file:
        line.connect(os.environ[SOCKET])
        file.write(json.dumps(task) + "\n")
        file.flush()
        body = json.loads(file.readline())
    sys.stderr.write(body["said"])
    return int(body["code"])


if __name__ == "__main__":
    sys.exit(main())
