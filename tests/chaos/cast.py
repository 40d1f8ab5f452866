"""Who takes part when an installation is hurt. Django must be set up before this is imported."""

from __future__ import annotations

from chat.models import Bud, ModelProvider
from chat.services.buds import create_bud
from mcp_servers.models import ApprovalOverride
from mcp_servers.registry.services import set_approval_override
from tests.chaos.scenery import MERGE
from tests.factories import Tenant, make_tenant
from tests.mcp_servers.factories import http_server, looked_at, tool_of


def make_cast(model_url: str, server_url: str) -> tuple[Tenant, Bud]:
    """Give a workspace, and its bud with the counting server's tools and the planned model."""
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
        values={"slug": "bud", "name": "Bud", "mcp_config": {"servers": [str(server.pk)]}},
        provider_id=provider.pk,
    )
    return tenant, bud
