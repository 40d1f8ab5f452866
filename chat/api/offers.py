"""What a chat's servers offer, over REST: the servers and why, resources, prompts, suggestions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from typing import Any, ClassVar, Final
from uuid import UUID

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import AnnotationsOutput, ContentPartField, ServerName
from chat.services.offers import fetch_prompt, prompts_of, resources_of, suggest
from chat.tools.toolset import select_tools
from chat.tools.usable_servers import ChatSetting
from chat.values import McpConfigOverrides
from mcp_servers.client.hidden_text import find_hidden, show_hidden, strip_hidden
from mcp_servers.client.values import PromptOutcome, TextPart, ToolAnnotations
from mcp_servers.models import McpPrompt, McpResource, McpServer, McpTool, ServerStatus
from mcp_servers.oauth.grants import uses_own_accounts
from mcp_servers.pages.cards import missing_sign_ins, sign_in_path
from mcp_servers.registry.consent.call_rules import PersonRules, rules_for
from mcp_servers.registry.discovery import shown_to
from mcp_servers.registry.scopes.effective import EffectiveServer, ServerSource, usable_ids
from workspaces.actors import Actor
from workspaces.api import Scopes
from workspaces.errors import Conflict
from workspaces.models import User


class OfferedToolOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    description = serializers.CharField(allow_blank=True)
    annotations = AnnotationsOutput()
    is_on = serializers.BooleanField(
        help_text="False: the bud or this conversation left it out, or a call rule blocks it."
    )
    blocked_reason = serializers.CharField(
        allow_blank=True, help_text="Why a call rule lets no call of it run. Empty: none does."
    )


class EffectiveServerOutput(serializers.Serializer[Any]):
    """A server that is considered for a chat, and why it is or is not used."""

    id = serializers.UUIDField()
    name = serializers.CharField(allow_blank=True)
    scope = serializers.CharField(allow_null=True)
    source = serializers.ChoiceField([source.value for source in ServerSource])  # type: ignore[assignment]  # the name on the wire
    is_usable = serializers.BooleanField()
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    status = serializers.CharField(allow_null=True)
    transport = serializers.CharField(allow_null=True)
    sign_in_url = serializers.CharField(
        allow_null=True, help_text="The page on which the person can sign in, if that is missing."
    )
    tools = OfferedToolOutput(many=True)


class AddableServerOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    scope = serializers.CharField()
    status = serializers.CharField()


@extend_schema_field(McpConfigOverrides)  # type: ignore[arg-type]  # an extension of the library reads it
class OverridesField(serializers.DictField):
    """A conversation's changes of its bud's configuration."""


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "enum": ["auto", "none", "required"]},
            {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ["function"]},
                    "function": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}},
                        "required": ["name"],
                    },
                },
                "required": ["type", "function"],
            },
        ]
    }
)
class ToolChoiceField(serializers.JSONField):
    """Which tool the model has to call; null: the bud's own choice counts."""


class ServersOutput(serializers.Serializer[Any]):
    servers = EffectiveServerOutput(many=True)
    addable = AddableServerOutput(many=True)
    overrides = OverridesField(help_text="What this chat changes of its bud.")


class ResourceOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    server = ServerName()
    uri = serializers.CharField()
    is_template = serializers.BooleanField()
    name = serializers.CharField(allow_blank=True)
    title = serializers.CharField(allow_blank=True)
    description = serializers.CharField(allow_blank=True)
    mime_type = serializers.CharField(allow_blank=True)
    size = serializers.IntegerField(allow_null=True)
    changed_at = serializers.DateTimeField(allow_null=True)


class PromptArgument(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    description = serializers.CharField(allow_blank=True)
    required = serializers.BooleanField()  # type: ignore[assignment]  # the name on the wire


class PromptOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    server = ServerName()
    name = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    description = serializers.CharField(allow_blank=True)
    arguments = PromptArgument(many=True)


class PromptInput(serializers.Serializer[Any]):
    prompt_id = serializers.UUIDField()
    arguments = serializers.DictField(
        child=serializers.CharField(allow_blank=True, max_length=20_000), required=False
    )


class PromptMessageOutput(serializers.Serializer[Any]):
    role = serializers.CharField()
    content = ContentPartField()


class FilledPromptOutput(serializers.Serializer[Any]):
    """A prompt as its server filled it in; hidden characters are left out, and told of."""

    description = serializers.CharField(allow_blank=True)
    messages = PromptMessageOutput(many=True)
    warnings = serializers.ListField(child=serializers.CharField())


class SuggestionInput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(["prompt", "resource"])
    id = serializers.UUIDField(help_text="The prompt or the resource template.")
    argument = serializers.CharField(max_length=200)
    value = serializers.CharField(max_length=2_000, allow_blank=True, trim_whitespace=False)
    context = serializers.DictField(  # type: ignore[assignment]  # the name on the wire
        child=serializers.CharField(allow_blank=True, max_length=2_000), required=False
    )


class SuggestionOutput(serializers.Serializer[Any]):
    values = serializers.ListField(child=serializers.CharField())


OF_CHATS: Final = Scopes(read="chat", write="chat")
SEARCH: Final = OpenApiParameter("search", str, description="Words of its name or address.")


class OffersOfChat(ABC):
    """What the servers of a chat offer; mixed into the viewsets of conversations and, for chats to come, of buds."""

    offer_parameters: ClassVar[Any] = {"resources": ("search",), "prompts": ("search",)}
    """Which parameters its addresses know."""

    @abstractmethod
    def chat_setting(self, pk: str) -> ChatSetting:
        """Which servers the chat can use."""

    @extend_schema(responses=ServersOutput, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def servers(self: Any, request: Request, pk: str) -> Response:
        """The servers that the chat uses or could use, and why."""
        setting = self.chat_setting(pk)
        return Response(servers_json(setting, person=self.person, actor=self.actor))

    @extend_schema(parameters=[SEARCH], responses=ResourceOutput(many=True), filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def resources(self: Any, request: Request, pk: str) -> Response:
        """The first 200 resources and templates that a message can take along."""
        rows = resources_of(self.chat_setting(pk), _searched(request))
        return Response([_resource_json(row) for row in rows])

    @extend_schema(
        methods=["GET"], parameters=[SEARCH], responses=PromptOutput(many=True), filters=False
    )
    @extend_schema(methods=["POST"], request=PromptInput, responses=FilledPromptOutput)
    @action(detail=True, methods=["get", "post"], pagination_class=None, scopes=OF_CHATS)
    def prompts(self: Any, request: Request, pk: str) -> Response:
        """The first 200 prompts that can be used; or one of them, filled in by its server."""
        setting = self.chat_setting(pk)
        if request.method != "POST":
            return Response([_prompt_json(row) for row in prompts_of(setting, _searched(request))])
        values = self.read(PromptInput)
        outcome = fetch_prompt(
            setting=setting,
            prompt_id=values["prompt_id"],
            arguments=values.get("arguments", {}),
            actor=self.actor,
        )
        if outcome.is_error:
            raise Conflict(outcome.message or _("The server did not return this prompt."))
        return Response(_filled_json(outcome))

    @extend_schema(request=SuggestionInput, responses=SuggestionOutput)
    @action(detail=True, methods=["post"], scopes=OF_CHATS)
    def completions(self: Any, request: Request, pk: str) -> Response:
        """What a server suggests for an argument; an empty list where it suggests nothing."""
        values = self.read(SuggestionInput)
        found = suggest(
            setting=self.chat_setting(pk),
            kind=values["kind"],
            row_id=values["id"],
            argument=values["argument"],
            value=values["value"],
            context=values.get("context"),
        )
        return Response({"values": [strip_hidden(text) for text in found]})


def servers_json(setting: ChatSetting, *, person: User, actor: Actor) -> dict[str, Any]:
    """Give every server considered, with the tools that a turn could get; and those that could be added."""
    servers, bud, overrides = setting.servers(), setting.bud, setting.overrides
    seen = [one.server_id for one in servers if one.server is not None]
    tools = list(
        McpTool.objects.for_workspace(bud.workspace_id)
        .callable()
        .filter(shown_to(person.pk), server_id__in=seen)
        .select_related("server")
        .order_by("name")
    )
    usable = set(usable_ids(servers))
    on = {
        row.pk
        for row in select_tools(tools, config=bud.mcp, overrides=overrides)
        if row.server_id in usable
    }
    tools_by_server = _tools_json(tools, on, rules_for(bud.workspace_id, person.pk))
    named = {one.server_id for one in servers}
    addable = (
        McpServer.objects.for_workspace(bud.workspace_id)
        .visible_to(person)
        .filter(is_active=True)
        .exclude(pk__in=named)
    )
    if not bud.workspace.allows_personal_servers:
        addable = addable.filter(owner__isnull=True)
    missing = missing_sign_ins([one.server for one in servers if one.server], person.pk)
    return {
        "servers": [_server_json(one, tools_by_server, missing, actor) for one in servers],
        "addable": [
            {"id": str(row.pk), "name": row.name, "scope": row.scope, "status": row.state.status}
            for row in addable
        ],
        "overrides": overrides.model_dump(mode="json"),
    }


def _tools_json(
    tools: Iterable[McpTool], on: Set[UUID], rules: PersonRules
) -> dict[UUID, list[dict[str, Any]]]:
    """The tools of each server.

    Args:
        on: those that a turn could get, as far as the person's call rules allow it.
    """
    tools_by_server: defaultdict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in tools:
        why = rules.why_blocked(row)
        tools_by_server[row.server_id].append(
            {
                "id": str(row.pk),
                "name": show_hidden(row.name),
                "title": show_hidden(row.title),
                "description": show_hidden(row.description)[:2_000],
                "annotations": ToolAnnotations.from_wire(row.annotations).as_json(),
                "is_on": row.pk in on and not why,
                "blocked_reason": why,
            }
        )
    return tools_by_server


def _server_json(
    one: EffectiveServer,
    tools: Mapping[UUID, list[dict[str, Any]]],
    missing: Set[UUID],
    actor: Actor,
) -> dict[str, Any]:
    shown: dict[str, Any] = {**one.as_json(), "sign_in_url": None}
    if one.server is not None and one.is_usable and one.server_id in missing:
        shown |= {
            "status": ServerStatus.AUTH_REQUIRED.value,
            "code": "auth_required",
            "reason": "You have to sign in first."
            if uses_own_accounts(one.server)
            else "Its account for this workspace is not connected.",
            "sign_in_url": sign_in_path(one.server, actor),
        }
    return {**shown, "tools": tools.get(one.server_id, [])}


def _searched(request: Request) -> str:
    """The words that resources and prompts are looked for by."""
    return str(request.query_params.get("search", ""))[:200].replace("\x00", "")


def _resource_json(row: McpResource) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "server": {"id": str(row.server_id), "name": row.server.name},
        "uri": row.uri,
        "is_template": row.is_template,
        "name": show_hidden(row.name),
        "title": show_hidden(row.title),
        "description": show_hidden(row.description)[:1_000],
        "mime_type": row.mime_type,
        "size": row.size,
        "changed_at": row.changed_at.isoformat() if row.changed_at else None,
    }


def _prompt_json(row: McpPrompt) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "server": {"id": str(row.server_id), "name": row.server.name},
        "name": show_hidden(row.name),
        "title": show_hidden(row.title),
        "description": show_hidden(row.description)[:1_000],
        "arguments": [
            {
                "name": str(one.get("name", "")),
                "title": show_hidden(str(one.get("title") or "")),
                "description": show_hidden(str(one.get("description") or ""))[:500],
                "required": one.get("required") is True,
            }
            for one in row.arguments
        ],
    }


def _filled_json(outcome: PromptOutcome) -> dict[str, Any]:
    hidden: dict[str, None] = {}
    messages = []
    for message in outcome.messages:
        content = message.content.as_json()
        if isinstance(message.content, TextPart):
            hidden |= dict.fromkeys(find_hidden(message.content.text))
            content = {**content, "text": strip_hidden(message.content.text)}
        messages.append({"role": message.role, "content": content})
    return {
        "description": show_hidden(outcome.description),
        "messages": messages,
        "warnings": [
            _("The prompt contained %(kind)s. Trellis left them out.") % {"kind": kind}
            for kind in hidden
        ],
    }
