"""Call rules of a workspace."""

from __future__ import annotations

from typing import Any

from mcp_servers.models import CallRule
from mcp_servers.registry.services.call_rules import CallRuleDraft, create_call_rule
from tests.factories import Tenant


def make(tenant: Tenant, **fields: Any) -> CallRule:
    known = {"name": "No deletes", "effect": "deny", "servers": ["*"], "tools": ["delete_*"]}
    draft = CallRuleDraft(**{**known, **fields})
    return create_call_rule(workspace=tenant.workspace, draft=draft, actor=tenant.actor("admin"))
