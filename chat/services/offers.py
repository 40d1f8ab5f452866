"""What a conversation's servers offer besides tools: resources to attach, prompts to begin with, suggestions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Literal
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from audit.services import Ref
from chat.models import Bud, Conversation
from chat.tools.usable_servers import servers_of, usable_server
from chat.values import McpConfigOverrides
from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.completion import complete
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.values import PromptOutcome, PromptRequest
from mcp_servers.gate import get_prompt
from mcp_servers.models import McpPrompt, McpResource
from mcp_servers.registry.scopes.effective import EffectiveServer, usable_ids
from mcp_servers.registry.services.personal_lists import look_again_if_old
from mcp_servers.registry.specs import connection_spec
from workspaces.actors import Actor
from workspaces.database import wait_for
from workspaces.errors import DomainError, InvalidInput, NotFound
from workspaces.roles import Permission, require

logger = logging.getLogger(__name__)

MOST_RESOURCES = 200
MOST_PROMPTS = 200


def resources_of(conversation: Conversation, search: str = "") -> list[McpResource]:
    """Resources and templates of the servers that the conversation may use. Needs `bud` loaded."""
    servers = servers_of(conversation.bud, conversation)
    return _resources(conversation.workspace_id, servers, search)


def resources_ahead(
    bud: Bud, overrides: McpConfigOverrides, *, user_id: UUID, search: str = ""
) -> list[McpResource]:
    """Those that a person's next conversation with this bud could use, if it begins with these changes."""
    servers = servers_of(bud, user_id=user_id, overrides=overrides)
    return _resources(bud.workspace_id, servers, search)


def _resources(
    workspace_id: UUID, servers: Iterable[EffectiveServer], search: str
) -> list[McpResource]:
    rows: Any = McpResource.objects.for_workspace(workspace_id).usable()
    rows = rows.filter(server_id__in=usable_ids(servers))
    for word in search.split()[:5]:
        rows = rows.filter(
            Q(name__icontains=word)
            | Q(title__icontains=word)
            | Q(uri__icontains=word)
            | Q(description__icontains=word)
        )
    ordered = rows.select_related("server").order_by("server__name", "is_template", "name", "id")
    return list(ordered[:MOST_RESOURCES])


def prompts_of(conversation: Conversation, search: str = "") -> list[McpPrompt]:
    """The first prompts, with these words, of the servers that the conversation may use. Needs `bud` loaded."""
    rows = _prompts(conversation)
    for word in search.split()[:5]:
        rows = rows.filter(
            Q(name__icontains=word) | Q(title__icontains=word) | Q(server__name__icontains=word)
        )
    return list(rows.select_related("server").order_by("server__name", "name", "id")[:MOST_PROMPTS])


def _prompts(conversation: Conversation) -> QuerySet[McpPrompt]:
    rows: Any = McpPrompt.objects.for_workspace(conversation.workspace_id).usable()
    found: QuerySet[McpPrompt] = rows.filter(
        server_id__in=usable_ids(servers_of(conversation.bud, conversation))
    )
    return found


def fetch_prompt(
    *, conversation: Conversation, prompt_id: UUID, arguments: Mapping[str, str], actor: Actor
) -> PromptOutcome:
    """A prompt filled in by its server, through the gate.

    Raises:
        NotFound: no such prompt in this conversation.
        And whatever the gate raises.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    if not _prompts(conversation).filter(pk=prompt_id).exists():
        raise NotFound(_("This prompt is not available in this chat."))
    request = PromptRequest(
        call_id=uuid7(),
        workspace_id=conversation.workspace_id,
        prompt_id=prompt_id,
        arguments=dict(arguments),
        actor=actor,
        bud=Ref(id=conversation.bud.pk, name=conversation.bud.name),
        conversation_id=conversation.pk,
    )
    return wait_for(get_prompt, request)


def suggest(
    *,
    conversation: Conversation,
    kind: Literal["prompt", "resource"],
    row_id: UUID,
    argument: str,
    value: str,
    context: Mapping[str, str] | None = None,
) -> list[str]:
    """What a server suggests for an argument of a prompt or template; nothing where it cannot be asked.

    Raises:
        NotFound: no such prompt or template in this conversation.
        InvalidInput: it has no such argument.
    """
    model: Any = McpPrompt if kind == "prompt" else McpResource
    row = model.objects.for_workspace(conversation.workspace_id).usable().fetch(row_id)
    server = usable_server(conversation, row.server_id).server
    assert server is not None
    if kind == "prompt" and argument not in {one.get("name") for one in row.arguments}:
        raise InvalidInput(fields={"argument": [_("This prompt has no such argument.")]})
    try:
        return runtime.run_sync(
            complete(
                connection_spec(server, user_id=conversation.owner_id),
                ref=kind,
                name=row.name if kind == "prompt" else row.uri,
                argument=argument,
                value=value,
                context=dict(context or {}),
            ),
            timeout_seconds=6.0,
        )
    except (DomainError, TimeoutError) as error:
        # Suggestions are a help and no more: without them one types.
        logger.info("no_suggestions", extra={"server": str(server.pk), "reason": str(error)[:200]})
        return []


def warm_up(conversation: Conversation) -> None:
    """Open the connections of the conversation's servers in the background, so that the first call need not wait."""
    specs = []
    for one in servers_of(conversation.bud, conversation):
        if one.is_usable and one.server is not None and not one.code:
            try:
                spec = connection_spec(one.server, user_id=conversation.owner_id)
            except DomainError:
                continue  # misconfigured: the call itself says so
            if not spec.needs_sign_in:
                specs.append(spec)
                look_again_if_old(one.server, conversation.owner_id)
    if specs:
        loop = runtime.current().loop
        asyncio.run_coroutine_threadsafe(_warm(specs), loop)


async def _warm(specs: list[Any]) -> None:
    try:
        await pool.warm_up(specs)
    except Exception:
        logger.info("warm_up_failed", exc_info=True)
