"""What a backup of the database holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.conf import settings
from django.core import serializers
from django.db import connection

from chat.models import ModelProvider
from tests.factories import Tenant
from tests.mcp_servers.factories import http_server
from workspaces.models import User

KEY, HEADER = "sk-backup-canary-0123456789", "backup-header-canary-0123456789"

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_backup_holds_no_secret_in_clear_and_no_key(tenant: Tenant, tmp_path: Path) -> None:
    """SEC-97: the file of SQLite byte for byte, or a dump of every row; and what Django itself would write down."""
    ModelProvider.objects.create(
        workspace=tenant.workspace, name="p", base_url="https://models.example.org", api_key=KEY
    )
    http_server(tenant, "https://tools.example.org/mcp", headers={"Authorization": HEADER})
    if connection.vendor == "sqlite":
        copy = tmp_path / "backup.sqlite3"
        with connection.cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(copy)])
        raw = copy.read_bytes()
    else:
        raw = "".join(_rows()).encode()
    keys = settings.TRELLIS
    assert keys.secret_key is not None
    materials = [key.material for key in keys.encryption_keys] + [keys.audit_key_bytes]
    needles = [
        KEY.encode(),
        HEADER.encode(),
        keys.secret_key.get_secret_value().encode(),
        *materials,
    ]
    assert b"models.example.org" in raw
    assert not [needle for needle in needles if needle in raw]
    dumped = serializers.serialize("json", [*ModelProvider.unscoped.all(), *User.objects.all()])
    assert KEY not in dumped
    assert json.loads(dumped)


def _rows() -> list[str]:
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT row_to_json(t)::text FROM "{table}" t')
            found += [row for (row,) in cursor.fetchall()]
    return found
