"""Whether a resource may be read or a prompt fetched: everything that needs no network, each refusal an entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from audit.actions import Action, RefusedBy
from audit.services import EntryDraft, Ref, record
from mcp_servers.client.canonical import as_sent, canonical_json, clean_text
from mcp_servers.client.connections import calls
from mcp_servers.client.errors import CallRefused, InvalidArguments, ToolNotFound
from mcp_servers.client.inputs import CallLimits
from mcp_servers.client.values import PromptRequest, ResourceRequest
from mcp_servers.gate.admission import check_actor, limits_of, why_left_alone
from mcp_servers.models import McpPrompt, McpServer
from mcp_servers.oauth.grants import person_of
from mcp_servers.registry.specs import connection_spec
from workspaces.errors import DomainError, PermissionDenied

if TYPE_CHECKING:
    from mcp_servers.client.spec import ConnectionSpec

MAX_URI_LENGTH: Final = 2048
MAX_ARGUMENT_LENGTH: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadKind:
    """What tells the two apart in the log."""

    requested: Action
    finished: Action
    refused: Action


RESOURCE: Final = ReadKind(
    requested=Action.RESOURCE_READ_REQUESTED,
    finished=Action.RESOURCE_READ_FINISHED,
    refused=Action.RESOURCE_READ_REFUSED,
)
PROMPT: Final = ReadKind(
    requested=Action.PROMPT_GET_REQUESTED,
    finished=Action.PROMPT_GET_FINISHED,
    refused=Action.PROMPT_GET_REFUSED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """A read that was let through, and all that is needed to make it."""

    kind: ReadKind
    request: ResourceRequest | PromptRequest
    server: McpServer
    name: str
    """The resource's address or the prompt's name."""
    arguments: bytes
    spec: ConnectionSpec
    limits: CallLimits


def plan_resource(request: ResourceRequest) -> ReadPlan:
    uri = clean_text(request.uri)
    server = _server_of(RESOURCE, request, uri)
    if not uri.strip() or len(uri) > MAX_URI_LENGTH or any(character < " " for character in uri):
        error = InvalidArguments("This is no sound address of a resource.")
        refuse_read(
            RESOURCE, request, server, uri, error, layer=RefusedBy.ARGUMENTS, rule="resource.uri"
        )
        raise error
    return _plan(RESOURCE, request, server, uri, canonical_json({"uri": uri}))


def plan_prompt(request: PromptRequest) -> ReadPlan:
    prompts = McpPrompt.objects.for_workspace(request.workspace_id)
    prompt = cast("McpPrompt | None", prompts.find(request.prompt_id))
    if prompt is None or prompt.removed_at is not None or not prompt.is_enabled:
        error = ToolNotFound("This prompt is not available.")
        refuse_read(
            PROMPT,
            request,
            None,
            str(request.prompt_id),
            error,
            layer=RefusedBy.NOT_FOUND,
            rule="prompt.not_found",
        )
        raise error
    server = _server_of(PROMPT, request, prompt.name, prompt.server_id)
    fault = _argument_fault(prompt, request.arguments)
    if fault:
        invalid = InvalidArguments(fault)
        refuse_read(
            PROMPT,
            request,
            server,
            prompt.name,
            invalid,
            layer=RefusedBy.ARGUMENTS,
            rule="prompt.arguments",
        )
        raise invalid
    return _plan(PROMPT, request, server, prompt.name, canonical_json(dict(request.arguments)))


def _argument_fault(prompt: McpPrompt, arguments: Mapping[str, str]) -> str:
    known = {str(argument.get("name")) for argument in prompt.arguments}
    required = {str(a.get("name")) for a in prompt.arguments if a.get("required") is True}
    if unknown := sorted(set(arguments) - known):
        return f"This prompt has no argument named {unknown[0]!r}."
    if missing := sorted(name for name in required if not arguments.get(name)):
        return f"Please fill in {', '.join(missing)}."
    if any(len(value) > MAX_ARGUMENT_LENGTH for value in arguments.values()):
        return f"At most {MAX_ARGUMENT_LENGTH} characters for an argument."
    return ""


def _server_of(
    kind: ReadKind, request: ResourceRequest | PromptRequest, name: str, server_id: Any = None
) -> McpServer:
    wanted = server_id or (request.server_id if isinstance(request, ResourceRequest) else None)
    try:
        check_actor(request.actor, request.workspace_id)
    except PermissionDenied as error:
        refuse_read(
            kind, request, None, name, error, layer=RefusedBy.PERMISSION, rule="actor.forbidden"
        )
        raise
    servers = McpServer.objects.for_workspace(request.workspace_id)
    server = servers.select_related("workspace", "program", "global_server").find(wanted)
    if server is None or server.owner_id not in (None, request.actor.user_id):
        missing = ToolNotFound("This server is not available.")
        refuse_read(
            kind, request, None, name, missing, layer=RefusedBy.NOT_FOUND, rule="server.not_found"
        )
        raise missing
    if not server.is_active:
        _refuse_because(
            kind,
            request,
            server,
            name,
            layer=RefusedBy.DISABLED,
            rule="server.inactive",
            reason="The server is switched off.",
        )
    return server


def _plan(
    kind: ReadKind,
    request: ResourceRequest | PromptRequest,
    server: McpServer,
    name: str,
    arguments: bytes,
) -> ReadPlan:
    try:
        spec = connection_spec(server, user_id=person_of(request.actor))
    except DomainError as error:
        _refuse_because(
            kind,
            request,
            server,
            name,
            layer=RefusedBy.POLICY,
            rule="server.misconfigured",
            reason=error.message,
        )
    wait = 0.0 if spec.needs_sign_in else calls.wait_seconds(spec)
    if wait > 0:
        reason = why_left_alone(server, wait)
        _refuse_because(
            kind,
            request,
            server,
            name,
            layer=RefusedBy.BREAKER,
            rule="server.backing_off",
            reason=reason,
        )
    return ReadPlan(
        kind=kind,
        request=request,
        server=server,
        name=name,
        arguments=arguments,
        spec=spec,
        limits=limits_of(server),
    )


def _refuse_because(
    kind: ReadKind,
    request: ResourceRequest | PromptRequest,
    server: McpServer,
    name: str,
    *,
    layer: RefusedBy,
    rule: str,
    reason: str,
) -> NoReturn:
    error = CallRefused(reason, rule=rule, refused_by=layer)
    refuse_read(kind, request, server, name, error, layer=layer, rule=rule)
    raise error


def refuse_read(
    kind: ReadKind,
    request: ResourceRequest | PromptRequest,
    server: McpServer | None,
    name: str,
    error: DomainError,
    *,
    layer: RefusedBy,
    rule: str,
) -> None:
    details = {"reason": error.message}
    record(
        draft_read(
            kind.refused,
            request,
            server,
            name,
            sent_of(request),
            refused_by=layer,
            rule=rule,
            details=details,
        )
    )


def sent_of(request: ResourceRequest | PromptRequest) -> bytes:
    """What was asked for, as it came."""
    if isinstance(request, ResourceRequest):
        return as_sent({"uri": request.uri})
    return as_sent(dict(request.arguments))


def draft_read(
    action: Action,
    request: ResourceRequest | PromptRequest,
    server: McpServer | None,
    name: str,
    arguments: bytes | None,
    **more: Any,
) -> EntryDraft:
    return EntryDraft(
        action=action,
        actor=request.actor,
        workspace_id=request.workspace_id,
        call_id=request.call_id,
        bud=request.bud,
        conversation_id=request.conversation_id,
        turn_id=request.turn_id,
        server=Ref(id=server.pk, name=server.name) if server is not None else None,
        transport=server.known_transport if server is not None else "",
        protocol_revision=server.protocol_revision if server is not None else "",
        tool=Ref(id=None, name=name[:256]),
        arguments=arguments,
        **more,
    )
