"""A person's own settings over REST, and how their pages begin."""

from __future__ import annotations

import json
import re
from typing import Any

from django.test import Client

from tests.factories import Tenant


def root_of(client: Client, path: str) -> str:
    """The page's `<html …>`."""
    found = re.search(r"<html[^>]*>", client.get(path).content.decode())
    assert found is not None
    return found[0]


def profile(client: Client, tenant: Tenant, **body: Any) -> Any:
    headers = {"X-Workspace": tenant.workspace.slug}
    if not body:
        return client.get("/api/profile/", headers=headers)
    return client.post(
        "/api/profile/", json.dumps(body), content_type="application/json", headers=headers
    )
