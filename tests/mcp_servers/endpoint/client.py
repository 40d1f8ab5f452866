"""A client of the endpoint, and tokens for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from tests.factories import Tenant
from workspaces.people.tokens import issue_token

TODAYS = "2026-07-28"
BEFORE = "2025-11-25"


def token_for(tenant: Tenant, *scopes: str, role: str = "member") -> str:
    """A token for MCP clients, unless it is one for other scopes; of a workspace that lets clients in."""
    tenant.workspace.allows_mcp_clients = True
    tenant.workspace.save()
    _, plain = issue_token(
        workspace=tenant.workspace,
        user=tenant.people[role],
        name="Claude on my laptop",
        scopes=scopes or ("mcp:call",),
        expires_at=timezone.now() + timedelta(days=7),
        actor=tenant.actor(role),
    )
    return plain


@dataclass
class McpClient:
    """A client that speaks to the endpoint as the protocol has it."""

    tenant: Tenant
    token: str
    revision: str = BEFORE

    @property
    def url(self) -> str:
        return f"/w/{self.tenant.workspace.slug}/mcp/"

    def message(
        self, method: str, given: Mapping[str, Any] | None = None, request_id: int | None = 1
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Headers and body of a request; of a notification, if it has no id."""
        params = dict(given or {})
        sent = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json, text/event-stream",
            **({"Mcp-Protocol-Version": self.revision} if self.revision else {}),
        }
        if self.revision == TODAYS:
            prefix = "io.modelcontextprotocol"
            params["_meta"] = {
                f"{prefix}/protocolVersion": TODAYS,
                f"{prefix}/clientInfo": {"name": "test", "version": "1"},
                f"{prefix}/clientCapabilities": {},
            }
            sent["Mcp-Method"] = method
            if named := params.get("name", params.get("uri")):
                sent["Mcp-Name"] = named
        numbered = {} if request_id is None else {"id": request_id}
        return sent, {"jsonrpc": "2.0", **numbered, "method": method, "params": params}

    def post(self, method: str, given: Mapping[str, Any] | None = None, /, **headers: str) -> Any:
        sent, body = self.message(method, given)
        return self._send(body, {**sent, **headers})

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Say something that has no answer."""
        sent, body = self.message(method, params, None)
        assert self._send(body, sent).status_code == 202

    def _send(self, body: dict[str, Any], headers: dict[str, str]) -> Any:
        return Client().post(
            self.url, json.dumps(body), content_type="application/json", headers=headers
        )

    def result(self, method: str, params: dict[str, Any] | None = None) -> Any:
        answer = self.post(method, params)
        assert answer.status_code == 200, answer.content
        body = answer.json()
        assert "result" in body, body
        return body["result"]

    def names(self) -> list[str]:
        return [tool["name"] for tool in self.result("tools/list")["tools"]]

    def call(self, name: str, /, **arguments: Any) -> Any:
        return self.result("tools/call", {"name": name, "arguments": arguments})
