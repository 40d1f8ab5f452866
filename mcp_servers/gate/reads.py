"""Reading a resource and fetching a prompt, through the gate: the same rights, limits and entries as for a tool."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, cast

from django.utils.translation import gettext_noop as _

from audit.actions import Action, Outcome, RefusedBy
from mcp_servers.client import results
from mcp_servers.client.canonical import clean_text
from mcp_servers.client.connections import calls
from mcp_servers.client.errors import InvalidArguments, ToolNotFound
from mcp_servers.client.resource_addresses import may_be, without_query
from mcp_servers.client.values import PromptOutcome, PromptRequest, ResourceOutcome, ResourceRequest
from mcp_servers.gate.caller import Caller
from mcp_servers.gate.operation import Out, ServerOperation
from mcp_servers.gate.passing import pass_through
from mcp_servers.gate.sending import exchange
from mcp_servers.models import McpPrompt, McpResource, McpServer
from mcp_servers.oauth.grants import person_of
from mcp_servers.registry.specs import connection_spec
from workspaces.redaction import redact_known

if TYPE_CHECKING:
    from uuid import UUID

    import mcp_types

    from mcp_servers.client.inputs import CallListener, InputAnswers, InputRequired
    from mcp_servers.client.spec import ConnectionSpec

MAX_URI_LENGTH: Final = 2048
MAX_ARGUMENT_LENGTH: Final = 100_000
_LONGEST_DESCRIPTION: Final = 2000


async def read_resource(
    request: ResourceRequest, *, caller: Caller | None = None
) -> ResourceOutcome:
    """Read one resource of one MCP server, for whoever asks.

    Raises:
        ToolNotFound: no such server here.
        PermissionDenied: the actor may not use it.
        CallRefused: the server is switched off, or left alone after failures.
        InvalidArguments: no sound address.
        Busy: no free slot in time.
        AuditUnavailable: it could not be recorded; nothing was sent, or nothing is given away.
    Source: MCP specification, "Resources": Reading Resources.
    """
    reading = ResourceRead(request)
    reading.begin(caller)
    return await pass_through(reading, partial(exchange, reading))


async def get_prompt(request: PromptRequest, *, caller: Caller | None = None) -> PromptOutcome:
    """Fetch one prompt of one MCP server, filled in with arguments, for whoever asks.

    Raises:
        As read_resource(); InvalidArguments also for a missing or unknown argument.
    Source: MCP specification, "Prompts": Getting a Prompt.
    """
    fetching = PromptFetch(request)
    fetching.begin(caller)
    return await pass_through(fetching, partial(exchange, fetching))


class _Read(ServerOperation[Out]):
    """What changes nothing at the server, so that doing it twice does no more than doing it once."""

    word = "request"
    may_repeat: ClassVar = True

    def begin(self, caller: Caller | None) -> None:
        super().begin(caller)
        self.can_ask = caller is not None

    def has_ended(self) -> bool:
        return self._is_recorded(self.finished)

    def reach(self, server_id: UUID) -> None:
        """Find the server, if it may be used here and now."""
        servers = McpServer.objects.for_workspace(self.request.workspace_id)
        server = servers.select_related("workspace", "program", "global_server").find(server_id)
        if server is None or server.owner_id not in (None, self.request.actor.user_id):
            missing = ToolNotFound(_("This server is not available."))
            self.refuse(missing, RefusedBy.NOT_FOUND, "server.not_found")
        self.found = server
        if not server.is_active:
            reason = _("The server is switched off.")
            self.refuse_because(RefusedBy.DISABLED, "server.inactive", reason)

    def get_ready(self) -> None:
        """What it takes to send it."""
        self.canonicalize()
        self.connect(lambda: connection_spec(self.server, user_id=person_of(self.request.actor)))
        self.check_breaker()


class ResourceRead(_Read[ResourceOutcome]):
    """Reading one resource."""

    outcome_type = ResourceOutcome
    requested = Action.RESOURCE_READ_REQUESTED
    finished = Action.RESOURCE_READ_FINISHED
    refused = Action.RESOURCE_READ_REFUSED
    request: ResourceRequest

    def __init__(self, request: ResourceRequest) -> None:
        super().__init__(request, clean_text(request.uri), {"uri": request.uri})

    def admit(self) -> None:
        self.check_actor()
        self.reach(self.request.server_id)
        uri = self.name
        is_sound = uri == self.request.uri and not any(sign < " " for sign in uri)
        if not uri.strip() or len(uri) > MAX_URI_LENGTH or not is_sound:
            error = InvalidArguments(_("This is not a valid address of a resource."))
            self.refuse(error, RefusedBy.ARGUMENTS, "resource.uri")
        self._values = {"uri": uri}
        self._check_switched_on()
        self.get_ready()

    def _check_switched_on(self) -> None:
        """Refuse what an administrator switched off: a resource, in whatever spelling, and what a template leads to."""
        rows = McpResource.objects.for_workspace(self.request.workspace_id).filter(
            server=self.server
        )
        off = rows.filter(is_enabled=False).order_by().values_list("uri", "is_template")
        listed = rows.filter(uri=self.name, is_template=False, is_enabled=True, removed_at=None)
        names = {self.name, without_query(self.name)}
        if len(names) > 1 and listed.exists():
            names = {self.name}  # the server tells it from the one without
        meant = {
            is_template
            for known, is_template in off
            if any(may_be(name, known, is_template=is_template) for name in names)
        }
        # What a template leads to may be listed by itself, and be on.
        is_listed = meant == {True} and listed.exists()
        if meant and not is_listed:
            reason = _("An administrator has switched this resource off.")
            self.refuse_because(RefusedBy.DISABLED, "resource.disabled", reason)

    def renew(self) -> ConnectionSpec:
        today = ResourceRead(self.request)
        today.admit()
        return today.spec

    async def send(
        self, spec: ConnectionSpec, answers: InputAnswers | None, listener: CallListener
    ) -> mcp_types.ReadResourceResult | InputRequired:
        return await calls.read_resource(
            spec,
            self.request.uri,
            call_id=self.request.call_id,
            user_id=self.request.actor.user_id,
            limits=self.limits,
            listener=listener,
            answers=answers,
        )

    async def read(self, result: mcp_types.ReadResourceResult) -> ResourceOutcome:
        parts, truncated = await asyncio.to_thread(
            results.read_contents,
            result,
            workspace_id=self.request.workspace_id,
            limit_bytes=self.server.config.result_bytes,
        )
        return ResourceOutcome(outcome=Outcome.OK, content=parts, truncated=truncated)


class PromptFetch(_Read[PromptOutcome]):
    """Fetching one prompt."""

    outcome_type = PromptOutcome
    requested = Action.PROMPT_GET_REQUESTED
    finished = Action.PROMPT_GET_FINISHED
    refused = Action.PROMPT_GET_REFUSED
    request: PromptRequest

    def __init__(self, request: PromptRequest) -> None:
        super().__init__(request, str(request.prompt_id), request.arguments)

    def admit(self) -> None:
        prompts = McpPrompt.objects.for_workspace(self.request.workspace_id)
        prompt = cast("McpPrompt | None", prompts.find(self.request.prompt_id))
        if prompt is None or prompt.removed_at is not None or not prompt.is_enabled:
            missing = ToolNotFound(_("This prompt is not available."))
            self.refuse(missing, RefusedBy.NOT_FOUND, "prompt.not_found")
        self.name = prompt.name
        self.check_actor()
        self.reach(prompt.server_id)
        fault = _argument_fault(prompt, self.request.arguments)
        if fault:
            self.refuse(InvalidArguments(fault), RefusedBy.ARGUMENTS, "prompt.arguments")
        self.get_ready()

    def renew(self) -> ConnectionSpec:
        today = PromptFetch(self.request)
        today.admit()
        return today.spec

    async def send(
        self, spec: ConnectionSpec, answers: InputAnswers | None, listener: CallListener
    ) -> mcp_types.GetPromptResult | InputRequired:
        return await calls.get_prompt(
            spec,
            self.name,
            dict(self.request.arguments),
            call_id=self.request.call_id,
            user_id=self.request.actor.user_id,
            limits=self.limits,
            listener=listener,
            answers=answers,
        )

    async def read(self, result: mcp_types.GetPromptResult) -> PromptOutcome:
        messages, truncated = await asyncio.to_thread(
            results.read_prompt,
            result,
            workspace_id=self.request.workspace_id,
            limit_bytes=self.server.config.result_bytes,
        )
        text = redact_known(result.description or "", workspace_id=self.request.workspace_id)
        description = clean_text(text)[:_LONGEST_DESCRIPTION]
        return PromptOutcome(
            outcome=Outcome.OK, description=description, messages=messages, truncated=truncated
        )


def _argument_fault(prompt: McpPrompt, arguments: Mapping[str, str]) -> str:
    known = {str(argument.get("name")) for argument in prompt.arguments}
    required = {str(a.get("name")) for a in prompt.arguments if a.get("required") is True}
    if unknown := sorted(set(arguments) - known):
        return _("This prompt has no argument named %(unknown)s.") % {"unknown": f"{unknown[0]!r}"}
    if missing := sorted(name for name in required if not arguments.get(name)):
        return _("Please fill in %(missing)s.") % {"missing": ", ".join(missing)}
    if any(len(value) > MAX_ARGUMENT_LENGTH for value in arguments.values()):
        return _("At most %(most)s characters for an argument.") % {"most": MAX_ARGUMENT_LENGTH}
    return ""
