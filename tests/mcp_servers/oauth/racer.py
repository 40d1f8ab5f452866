"""A process that renews one grant over and over, as fast as it may, beside another that does the same.

python -m tests.mcp_servers.oauth.racer DATABASE WORKSPACE SERVER USER GENERATIONS

It says "ready", waits for a line, and races until the grant has had that many tokens; then it tells how often the token
it was given was its own doing or another's.
"""

from __future__ import annotations

import sys
from uuid import UUID

import django
from django.conf import settings


def main() -> int:
    """Race; 0 if each round brought a token."""
    database, workspace, server, user, generations = sys.argv[1:]
    # The tests' own database, whose name Django made up when they began.
    settings.DATABASES["default"]["NAME"] = database
    django.setup()
    from mcp_servers.client.connections import runtime
    from mcp_servers.oauth.grants import Holder
    from mcp_servers.oauth.renewing import AccessToken, renew

    holder = Holder(workspace_id=UUID(workspace), server_id=UUID(server), user_id=UUID(user))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    generation, rounds = 2, 0
    while generation < int(generations):
        token = runtime.run_sync(renew(holder, generation), 60)
        if not isinstance(token, AccessToken):
            sys.stdout.write(f"lost at {generation}\n")
            return 1
        generation, rounds = token.generation, rounds + 1
    runtime.shutdown(2.0)
    sys.stdout.write(f"{rounds}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
