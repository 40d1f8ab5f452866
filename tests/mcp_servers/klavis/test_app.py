"""The tables of the app came from the servers' app, with what is encrypted in them."""

from __future__ import annotations

from django.db import connection

from mcp_servers.klavis.models import KlavisAccount
from tests.factories import Tenant
from workspaces.secrets import seal


def test_what_was_encrypted_before_can_be_read(tenant: Tenant) -> None:
    """Ours: the label under which a secret was sealed stays when its model moves."""
    account = KlavisAccount.objects.create(workspace=tenant.workspace, api_key="new")
    place = f"{tenant.workspace.pk}:mcp_servers.klavisaccount:{account.pk}:api_key"
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE mcp_servers_klavisaccount SET api_key = %s", [seal("of before", place=place)]
        )
    account.refresh_from_db()
    assert account.api_key.reveal("a test") == "of before"
