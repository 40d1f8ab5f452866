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
    told = seed(*sys.argv[1:3])
    from mcp_servers.client.connections import runtime

    runtime.shutdown(2.0)
    print(json.dumps(told))


def seed(model_url: str, server_url: str) -> dict[str, Any]:
    """Make the rows."""
    from django.conf import settings
    from django.utils import timezone

    from chat.models import ModelProvider
    from chat.services.buds import create_bud
    from mcp_servers.models import ApprovalOverride
    from mcp_servers.registry.services import set_approval_override
    from tests.chaos.scenery import MERGE
    from tests.factories import make_tenant
    from tests.mcp_servers.factories import http_server, looked_at, tool_of
    from workspaces.people.tokens import issue_token

    tenant = make_tenant("acme")
    server = looked_at(
        tenant, http_server(tenant, server_url, name="counting", trusts_annotations=True)
    )
    set_approval_override(
        tool=tool_of(server, MERGE), override=ApprovalOverride.AUTO, actor=tenant.actor()
    )
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="planned",
        base_url=model_url,
        default_model="m",
        api_key="sk-planned",
    )
    bud = create_bud(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor(),
        values={
            "slug": "bud",
            "name": "Bud",
            "mcp_config": {"servers": [str(server.pk)]},
        },
        provider_id=provider.pk,
    )
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
