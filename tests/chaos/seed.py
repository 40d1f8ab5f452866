"""The first rows of an installation that is about to be hurt: a person, a bud with the counting server's tools.

python -m tests.chaos.seed <model url> <server url>
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from typing import Any

import django


def main() -> None:
    """Print what a client needs to know, as JSON."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    world = seed(*sys.argv[1:3])
    from mcp_servers.client.connections import runtime

    runtime.shutdown(2.0)
    print(json.dumps(world))


def seed(model_url: str, server_url: str) -> dict[str, Any]:
    """Make the rows."""
    from django.conf import settings
    from django.utils import timezone

    from tests.chaos.cast import make_cast
    from workspaces.people.tokens import issue_token

    tenant, bud = make_cast(model_url, server_url)
    _, token = issue_token(
        workspace=tenant.workspace,
        user=tenant.member,
        name="chaos",
        scopes=["chat"],
        expires_at=timezone.now() + timedelta(days=1),
        actor=tenant.actor("member"),
    )
    cookie = tenant.client("member").cookies[settings.SESSION_COOKIE_NAME].value
    return {
        "token": token,
        "cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}",
        "workspace": tenant.workspace.slug,
        "bud": str(bud.pk),
    }


if __name__ == "__main__":
    main()
