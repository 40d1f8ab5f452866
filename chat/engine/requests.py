"""What the gate is told of a turn's call: for whom, with which rights, and where it goes on."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext_noop as _

from audit.services import Ref
from chat.engine.trust import known_destinations
from chat.engine.turn_cache import RecentPath
from chat.models import Bud, ToolCall, Turn
from chat.tools.builtin import on_demand
from chat.tools.builtin.files import SPEC_OF
from chat.values import ToolExposure
from mcp_servers.client.values import ToolCallRequest
from mcp_servers.gate import BuiltinRequest
from workspaces.actors import Actor, Role, Source
from workspaces.errors import PermissionDenied
from workspaces.middleware import MemberRole, actor_for
from workspaces.models import ApiToken

_SPECS = {**SPEC_OF, **on_demand.SPEC_OF}


def is_offered(builtin: str, bud: Bud) -> bool:
    """Whether a bud is offered this built-in tool, as it is set up now."""
    if builtin in on_demand.SPEC_OF:
        return bud.mcp.tool_exposure is ToolExposure.ON_DEMAND
    return bud.makes_artifacts or SPEC_OF[builtin].only_reads


def request_of(call: ToolCall, turn: Turn, bud: Bud, actor: Actor) -> ToolCallRequest:
    """The request for a call of a known tool, from its beginning or from its checkpoint."""
    assert call.tool_id is not None
    return ToolCallRequest(
        call_id=call.pk,
        workspace_id=call.workspace_id,
        tool_id=call.tool_id,
        arguments=call.arguments,
        actor=actor,
        approval_id=call.approval_id,
        can_ask=not bud.is_sandboxed,
        bud=Ref(id=bud.pk, name=bud.name),
        conversation_id=turn.conversation_id,
        turn_id=turn.pk,
        model=turn.model,
        offered_definition_hash=call.definition_hash,
        has_read_untrusted=turn.has_read_untrusted,
        untrusted_source=turn.untrusted_source,
        can_wait_elsewhere=not bud.is_sandboxed,
        checkpoint=checkpoint_of(call),
        reads_only=bud.is_sandboxed,
    )


def request_to_send(
    call: ToolCall, turn: Turn, bud: Bud, actor: Actor, *, past: RecentPath | None = None
) -> ToolCallRequest:
    """The same for a call that is about to be made, with where it may carry data.

    Args:
        past: what was said in the conversation before, if it is at hand.
    """
    request = request_of(call, turn, bud, actor)
    if not turn.has_read_untrusted:
        return request
    return replace(request, known_destinations=known_destinations(call, turn, bud, past))


def builtin_request(call: ToolCall, turn: Turn, bud: Bud, actor: Actor) -> BuiltinRequest:
    """The request for a call of a built-in tool."""
    return BuiltinRequest(
        call_id=call.pk,
        workspace_id=call.workspace_id,
        name=call.builtin,
        arguments=call.arguments,
        input_schema=_SPECS[call.builtin].input_schema,
        actor=actor,
        is_enabled=is_offered(call.builtin, bud),
        bud=Ref(id=bud.pk, name=bud.name),
        conversation_id=turn.conversation_id,
        turn_id=turn.pk,
        model=turn.model,
    )


def checkpoint_of(call: ToolCall) -> str | None:
    """Where the gate goes on with a call that stopped; None: from its beginning."""
    if call.checkpoint is None:
        return None
    return str(call.checkpoint.reveal("going on with a call", is_credential=False))


def actor_of(turn: Turn, role: MemberRole | None = None) -> Actor:
    """The person who asked, with the rights of this moment and not of then.

    Somebody who may not enter any more is nobody, for whom the log still says on whose behalf it was.

    Args:
        role: their membership, if it was read with the turn.

    Raises:
        PermissionDenied: their API token has been revoked, or has run out.
    """
    token = None
    if turn.token_id is not None:
        tokens = ApiToken.objects.for_workspace(turn.workspace_id)
        token = tokens.living().find(turn.token_id)
        if token is None:
            raise PermissionDenied(
                _("The API token that started this turn has been revoked, or has expired.")
            )
    is_welcome = turn.asked_by.is_active and turn.workspace.is_active
    actor = actor_for(
        turn.asked_by if is_welcome else None,
        turn.workspace,
        source=_source_of(Source(turn.source)),
        ip_address=turn.ip_address,
        request_id=turn.request_id,
        token=token,
        known=role,
    )
    return actor if is_welcome else replace(actor, on_behalf_of=turn.asked_by.email)


def as_of_turn(actor: Actor, role: MemberRole) -> Actor:
    """The person whose message was just stored, as they act in its turn."""
    return replace(
        actor,
        source=_source_of(actor.source),
        role=Role(role.role) if role.role else None,
        is_auditor=role.is_auditor,
    )


def _source_of(source: Source) -> Source:
    return Source.CHAT if source is Source.WEB else source


def actor_for_log(turn: Turn) -> Actor:
    """The person who asked; or the platform for them, once their API token has ended."""
    try:
        return actor_of(turn)
    except PermissionDenied:
        return Actor.system(
            label="turns",
            source=Source.TASK,
            workspace_id=turn.workspace_id,
            on_behalf_of=turn.asked_by.email,
        )
