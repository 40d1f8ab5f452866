"""What the gate writes into the log. Nothing is sent, and no result is given away, before its entry is committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from audit.actions import Action, RefusedBy
from audit.errors import AuditUnavailable
from audit.services import EntryDraft, Ref, record
from mcp_servers.client.canonical import as_sent
from mcp_servers.client.errors import CallRefused
from mcp_servers.client.values import ToolCallRequest
from mcp_servers.oauth.grants import person_of, principal_of
from mcp_servers.registry.consent.effective import details_of

if TYPE_CHECKING:
    from mcp_servers.models import Approval, McpTool
    from workspaces.errors import DomainError


SENT_AGAIN_AFTER: Final = "sent_again_after"
"""In the details of a *requested* that is not its call's first: what the sending comes after."""
PROTOCOL_ROUNDS: Final = frozenset({"answers", "auth_required", "link", "sign_in"})
"""After these the protocol has a call sent again, since the server says that it has not begun."""


def refuse_because(
    request: ToolCallRequest,
    tool: McpTool,
    arguments: bytes,
    *,
    layer: RefusedBy,
    rule: str,
    reason: str,
) -> NoReturn:
    error = CallRefused(reason, rule=rule, refused_by=layer)
    refuse(request, tool, arguments, error, layer=layer, rule=rule)
    raise error


def refuse(
    request: ToolCallRequest,
    tool: McpTool | None,
    arguments: bytes | None,
    error: DomainError,
    *,
    layer: RefusedBy,
    rule: str,
) -> None:
    """Write *refused*, with the arguments in canonical form or, without one, as they came. Nothing was or will be sent."""
    if arguments is None:
        arguments = as_sent(dict(request.arguments))
    record(
        replace(
            draft(request, tool, Action.TOOL_CALL_REFUSED, arguments),
            refused_by=layer,
            rule=rule,
            details={**details_of(tool, request.arguments), "reason": error.message},
        )
    )


def unrecorded(request: ToolCallRequest) -> EntryDraft:
    """What is kept of a call that was refused because the log could not be written."""
    return replace(
        draft(request, None, Action.TOOL_CALL_REFUSED, as_sent(dict(request.arguments))),
        refused_by=RefusedBy.AUDIT,
        rule="audit.unavailable",
        details={"reason": AuditUnavailable.default_message},
    )


def draft(
    request: ToolCallRequest, tool: McpTool | None, action: Action, arguments: bytes | None
) -> EntryDraft:
    server = tool.server if tool is not None else None
    return EntryDraft(
        action=action,
        actor=request.actor,
        workspace_id=request.workspace_id,
        call_id=request.call_id,
        bud=request.bud,
        conversation_id=request.conversation_id,
        turn_id=request.turn_id,
        model=request.model or "",
        server=Ref(id=server.pk, name=server.name) if server is not None else None,
        transport=server.known_transport if server is not None else "",
        protocol_revision=server.protocol_revision if server is not None else "",
        credential_id=principal_of(server, person_of(request.actor)) if server is not None else "",
        tool=Ref(id=tool.pk, name=tool.name)
        if tool is not None
        else Ref(id=None, name=str(request.tool_id)),
        definition_hash=tool.definition_hash if tool is not None else "",
        annotations=tool.typed_annotations.as_json() if tool is not None else None,
        arguments=arguments,
        details=details_of(tool, request.arguments) or None,
    )


def told(approval: Approval | None) -> Mapping[str, object] | None:
    if approval is None:
        return None
    return {
        "id": str(approval.pk),
        "approver": approval.approver_label,
        "granted_at": approval.created_at.isoformat(),
    }
