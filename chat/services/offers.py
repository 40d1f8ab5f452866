"""What a chat's servers offer besides tools: resources to attach, prompts to begin with, suggestions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from audit.services import Ref
from chat.models import Conversation
from chat.tools.usable_servers import ChatSetting
from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.completion import complete
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.values import PromptOutcome, PromptRequest
from mcp_servers.gate import get_prompt
from mcp_servers.gate.access import for_member
from mcp_servers.models import McpPrompt, McpResource
from mcp_servers.registry.scopes.effective import usable_ids
from mcp_servers.registry.services.personal_lists import look_again_if_old
from mcp_servers.registry.specs import connection_spec
from workspaces.actors import Actor
from workspaces.database import wait_for
from workspaces.errors import DomainError, InvalidInput, NotFound
from workspaces.roles import Permission, require

logger = logging.getLogger(__name__)

MOST_RESOURCES = 200
MOST_PROMPTS = 200


def resources_of(setting: ChatSetting, search: str = "") -> list[McpResource]:
    """The first resources and templates, with these words, of the servers that the chat may use."""
    rows: Any = McpResource.objects.for_workspace(setting.workspace_id).usable()
    rows = rows.filter(server_id__in=usable_ids(setting.servers()))
    for word in search.split()[:5]:
        rows = rows.filter(
            Q(name__icontains=word)
            | Q(title__icontains=word)
            | Q(uri__icontains=word)
            | Q(description__icontains=word)
        )
    ordered = rows.select_related("server").order_by("server__name", "is_template", "name", "id")
    return list(ordered[:MOST_RESOURCES])


def prompts_of(setting: ChatSetting, search: str = "") -> list[McpPrompt]:
    """The first prompts, with these words, of the servers that the chat may use."""
    rows = _prompts(setting)
    for word in search.split()[:5]:
        rows = rows.filter(
            Q(name__icontains=word) | Q(title__icontains=word) | Q(server__name__icontains=word)
        )
    return list(rows.select_related("server").order_by("server__name", "name", "id")[:MOST_PROMPTS])


def _prompts(setting: ChatSetting) -> QuerySet[McpPrompt]:
    rows: Any = McpPrompt.objects.for_workspace(setting.workspace_id).usable()
    found: QuerySet[McpPrompt] = rows.filter(server_id__in=usable_ids(setting.servers()))
    return found


def fetch_prompt(
    *, setting: ChatSetting, prompt_id: UUID, arguments: Mapping[str, str], actor: Actor
) -> PromptOutcome:
    """A prompt filled in by its server, through the gate.

    Raises:
        NotFound: no such prompt in this chat.
        AccessEnded: the person may not enter the workspace any more.
        And whatever the gate raises.
    """
    require(actor, Permission.USE_CHAT, workspace_id=setting.workspace_id)
    if not _prompts(setting).filter(pk=prompt_id).exists():
        raise NotFound(_("This prompt is not available in this chat."))
    request = PromptRequest(
        call_id=uuid7(),
        workspace_id=setting.workspace_id,
        prompt_id=prompt_id,
        arguments=dict(arguments),
        actor=actor,
        bud=Ref(id=setting.bud.pk, name=setting.bud.name),
        conversation_id=setting.conversation_id,
    )
    return wait_for(for_member, partial(get_prompt, request), actor)


def suggest(
    *,
    setting: ChatSetting,
    kind: Literal["prompt", "resource"],
    row_id: UUID,
    argument: str,
    value: str,
    context: Mapping[str, str] | None = None,
) -> list[str]:
    """What a server suggests for an argument of a prompt or template; nothing where it cannot be asked.

    Raises:
        NotFound: no such prompt or template in this chat.
        InvalidInput: it has no such argument.
    """
    model: Any = McpPrompt if kind == "prompt" else McpResource
    row = model.objects.for_workspace(setting.workspace_id).usable().fetch(row_id)
    server = setting.usable_server(row.server_id).server
    assert server is not None
    if kind == "prompt" and argument not in {one.get("name") for one in row.arguments}:
        raise InvalidInput(fields={"argument": [_("This prompt has no such argument.")]})
    try:
        return runtime.run_sync(
            complete(
                connection_spec(server, user_id=setting.user_id),
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
    for one in ChatSetting.of(conversation).servers():
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
