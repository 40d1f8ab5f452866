"""Looking at servers: connect, read what they offer, keep what comes out. Outside of any transaction."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext_noop as _

from mcp_servers.client.canonical import clean_text
from mcp_servers.client.definitions import storable
from mcp_servers.client.errors import AuthenticationRequired, ConnectionFailed
from mcp_servers.client.hidden_text import strip_hidden
from mcp_servers.models import McpServer, ServerState, ServerStatus
from mcp_servers.oauth.grants import (
    has_usable_grant,
    note_refusal,
    person_of,
    uses_own_accounts,
)
from mcp_servers.oauth.probing import ask_challenge
from mcp_servers.registry import discovery, health
from mcp_servers.registry.icons import keep_icon
from mcp_servers.registry.rights import require_to_manage, require_to_own
from mcp_servers.registry.services.credentials import check_auth
from mcp_servers.registry.services.drafts import ServerDraft, apply_draft
from mcp_servers.registry.services.server_notices import drop_connections, tell
from mcp_servers.registry.services.servers import personal_row, refuse_program
from mcp_servers.registry.specs import connection_spec, home_of
from workspaces.actors import Actor, Source
from workspaces.errors import DomainError
from workspaces.process.shutdown import ShuttingDown
from workspaces.redaction import redact_text
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from mcp_servers.client.connections.facts import ServerFacts, ServerListing
    from mcp_servers.client.spec import ConnectionSpec
    from workspaces.models import Workspace

LOOK_SECONDS: Final = 75.0
"""Longest look at a server that somebody waits for: connect and list."""
MAX_INSTRUCTIONS: Final = 20_000
"""Characters of a server's own instructions."""
_WORDS_FOLLOW: Final = "\n\n"
MAX_SAID: Final = 1500
"""Characters of what a program last wrote to its error stream: a reason stands at the end."""
LEAST_TTL_SECONDS: Final = 60.0
MOST_TTL_SECONDS: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReport:
    """What came of a look at a server, for the person who asked."""

    ok: bool
    message: str
    status: ServerStatus
    protocol_revision: str = ""
    server_name: str = ""
    latency_ms: int | None = None
    tool_count: int | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    """Name, title and annotations of each tool, as the server says."""
    transport: str = ""
    """What works, where the choice was left to the platform."""
    resource_count: int | None = None
    prompt_count: int | None = None
    details: str = ""
    """What to do about a failure, and the end of what a program wrote to its error stream."""

    @property
    def advice(self) -> str:
        """What to do about a failure."""
        return advice_and_words(self.details)[0]

    @property
    def output(self) -> str:
        """What a program wrote last."""
        return advice_and_words(self.details)[1]


def test_connection(*, server: McpServer, actor: Actor) -> ConnectionReport:
    """Connect anew, list the tools, and keep what comes out: status, check, tools.

    Raises:
        PermissionDenied: the actor may not manage servers here.
    """
    require_to_manage(actor, server)
    return _look(server, actor=actor, is_asked_for=True)


test_connection.__test__ = False  # type: ignore[attr-defined]  # pytest takes functions of this name for tests


def refresh_tools(*, server: McpServer, actor: Actor) -> ConnectionReport:
    """Read the tool list again over the open connection, and keep it."""
    require_to_manage(actor, server)
    return _look(server, actor=actor, is_asked_for=True, anew=False)


def try_connection(*, workspace_id: UUID, draft: ServerDraft, actor: Actor) -> ConnectionReport:
    """Connect to a server that is not saved, and keep nothing.

    Raises:
        PermissionDenied, InvalidInput: as add_server().
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    return _try(McpServer(workspace_id=workspace_id), draft)


def try_personal_connection(
    *, workspace: Workspace, draft: ServerDraft, actor: Actor
) -> ConnectionReport:
    """Connect to a server that somebody is about to add for themselves, and keep nothing.

    Raises:
        PermissionDenied, InvalidInput: as add_personal_server().
    """
    require_to_own(actor, workspace)
    refuse_program(draft)
    return _try(personal_row(workspace, actor), draft)


def _try(server: McpServer, draft: ServerDraft) -> ConnectionReport:
    server.state = ServerState(workspace_id=server.workspace_id)
    apply_draft(server, draft)
    server.check_values()
    check_auth(server)
    stderr = ""
    try:
        spec = connection_spec(server, user_id=server.owner_id)
        try:
            listing = _list_offers(spec, anew=False)
        finally:
            stderr = _stderr_of(spec)
    except ConnectionFailed as error:
        return _report_failure(server, error, stderr)
    finally:
        drop_connections(server.pk)
        shutil.rmtree(home_of(server.pk), ignore_errors=True)
    return _report(listing)


def look_as(*, server: McpServer, actor: Actor, seconds: float = LOOK_SECONDS) -> ConnectionReport:
    """Read what a server offers this person's account, and keep it.

    Whoever may sign in may have it looked at: what comes of it is decided by the same rules as ever.
    """
    return _look(server, actor=actor, is_asked_for=False, anew=False, seconds=seconds)


def check_server(*, server: McpServer) -> None:
    """The regular check: connect if need be, read the tool list, keep what comes out. Never calls a tool."""
    actor = Actor.system(label="health", source=Source.TASK, workspace_id=server.workspace_id)
    _look(server, actor=actor, is_asked_for=False, anew=False, is_check=True)


def _look(
    server: McpServer,
    *,
    actor: Actor,
    is_asked_for: bool,
    anew: bool = True,
    seconds: float = LOOK_SECONDS,
    is_check: bool = False,
) -> ConnectionReport:
    server = (
        McpServer.objects.for_workspace(server.workspace_id)
        .select_related("program", "global_server", "workspace")
        .fetch(server.pk)
    )
    if not server.is_active:
        return ConnectionReport(
            ok=False, message="This server is switched off.", status=ServerStatus.DISCONNECTED
        )
    stderr = ""
    try:
        viewer = person_of(actor)
        spec = connection_spec(server, user_id=viewer)
        if spec.needs_sign_in and server.hosted_by:
            raise AuthenticationRequired(
                _("Someone has to sign in to %(name)s at its provider.") % {"name": server.name}
            )
        if spec.needs_sign_in:
            return _knock(server, actor, is_asked_for=is_asked_for)
        try:
            listing = _list_offers(spec, anew=anew, seconds=seconds, is_check=is_check)
        finally:
            stderr = _stderr_of(spec)
    except ConnectionFailed as error:
        if isinstance(error, AuthenticationRequired):
            note_refusal(server, viewer, error.challenge)
            if uses_own_accounts(server):
                return _report_failure(server, error)  # one account's trouble, and not the server's
        health.note_reading(
            server,
            health.HealthReading(error=error, details=_details_for_managers(server, error, stderr)),
            actor=actor,
            is_asked_for=is_asked_for,
        )
        return _report_failure(server, error, stderr)
    except ShuttingDown as error:
        return _report_failure(server, ConnectionFailed(error.message))  # not the server's doing
    except DomainError as error:
        # The row is not whole: a key is gone, or the catalogue changed under it.
        failure = ConnectionFailed(error.message)
        health.note_reading(
            server, health.HealthReading(error=failure), actor=actor, is_asked_for=is_asked_for
        )
        return _report_failure(server, failure)
    # Of a server that belongs to somebody, all that it says is for that person alone anyway.
    is_shared = server.owner_id is None
    viewer = viewer if uses_own_accounts(server) and is_shared else None
    _keep_facts(server, listing.facts, viewer)
    if _keep_lists(server, listing, actor, viewer):
        tell(server, kind="tools.changed")
    health.note_reading(
        server,
        health.HealthReading(latency_ms=listing.latency_ms, lists=_lists_of(listing)),
        actor=actor,
        is_asked_for=is_asked_for,
    )
    if viewer is None and keep_icon(server, listing.facts.icons, retries=is_asked_for):
        tell(server)
    return _report(listing)


def _knock(server: McpServer, actor: Actor, *, is_asked_for: bool) -> ConnectionReport:
    """Look at a server without an account: whether it is there, and asks for sign-in as it should."""
    from mcp_servers.client.connections import runtime

    try:
        runtime.run_sync(ask_challenge(server), LOOK_SECONDS)
    except (ConnectionFailed, TimeoutError) as error:
        failure = (
            error
            if isinstance(error, ConnectionFailed)
            else ConnectionFailed(_("The server did not answer in time."))
        )
        health.note_reading(
            server, health.HealthReading(error=failure), actor=actor, is_asked_for=is_asked_for
        )
        return _report_failure(server, failure)
    health.note_reading(
        server, health.HealthReading(waits_for_sign_in=not has_usable_grant(server)), actor=actor
    )
    return ConnectionReport(
        ok=False,
        message="It is there, and waits for you to sign in.",
        status=ServerStatus.AUTH_REQUIRED,
    )


def _keep_facts(server: McpServer, facts: ServerFacts, viewer: UUID | None) -> None:
    """Keep what a server says about itself, if that has changed."""
    state = server.state
    # What a server says to one person's account may be about that person.
    instructions = facts.instructions if viewer is None else ""
    found: dict[str, object] = {
        "server_info": {
            "name": clean_text(facts.name)[:200],
            "title": clean_text(facts.title)[:200],
            "version": clean_text(facts.version)[:100],
            **({"asks_back": True} if state.server_info.get("asks_back") else {}),
        },
        "protocol_revision": facts.protocol_revision[:20],
        "resolved_transport": facts.transport[:20],
        "capabilities": storable(facts.capabilities),
        "instructions": clean_text(instructions)[:MAX_INSTRUCTIONS],
    }
    if any(getattr(state, name) != value for name, value in found.items()):
        state.write(**found)


def _lists_of(listing: ServerListing) -> health.ListsRead:
    now = timezone.now()
    return health.ListsRead(at=now, stale_at=_stale_at(now, listing.ttl_seconds))


def _stale_at(now: datetime, ttl_seconds: float | None) -> datetime | None:
    """When the server's word on its lists runs out: never so soon that it would keep us busy, nor for ever.

    None: the regular checks are enough. A time of zero is what SDKs send by themselves. It lets clients keep nothing, and
    asks nobody to look again (MCP 2026-07-28, Caching).
    """
    if not ttl_seconds:
        return None
    return now + timedelta(seconds=min(max(ttl_seconds, LEAST_TTL_SECONDS), MOST_TTL_SECONDS))


def _keep_lists(
    server: McpServer, listing: ServerListing, actor: Actor, viewer: UUID | None
) -> bool:
    """Take over what the server offers; whether anything is new. What could not be read stays as it was.

    Args:
        viewer: whose own account was shown this; resources and prompts may be theirs alone, and are not kept.
    """
    found_tools = discovery.store_tools(
        server=server, raw_tools=listing.tools, actor=actor, viewer=viewer
    )
    if viewer is not None:
        return found_tools.has_news
    news = [found_tools.has_news]
    if "resources" not in listing.unread:
        found = discovery.store_resources(server=server, raw=listing.resources)
        news.append(found.has_news)
    if "resource_templates" not in listing.unread:
        found = discovery.store_resources(
            server=server, raw=listing.resource_templates, is_template=True
        )
        news.append(found.has_news)
    if "prompts" not in listing.unread:
        news.append(discovery.store_prompts(server=server, raw=listing.prompts).has_news)
    return any(news)


def _list_offers(
    spec: ConnectionSpec, *, anew: bool, seconds: float = LOOK_SECONDS, is_check: bool = False
) -> ServerListing:
    # Late: the SDK takes a second to import, and most commands never connect.
    from mcp_servers.client.connections import runtime
    from mcp_servers.client.connections.flights import CHECKING
    from mcp_servers.client.connections.pool import pool

    async def look() -> ServerListing:
        CHECKING.set(is_check)
        if anew:
            await pool.drop(spec.server_id, principal=spec.principal)
        return await pool.list_offers(spec, at_once=True)

    try:
        return runtime.run_sync(look(), seconds)
    except TimeoutError as error:
        raise ConnectionFailed(_("The server did not answer in time.")) from error


def _stderr_of(spec: ConnectionSpec) -> str:
    from mcp_servers.client.connections.pool import pool

    return pool.stderr_of(spec)


def _report(listing: ServerListing) -> ConnectionReport:
    facts = listing.facts
    return ConnectionReport(
        ok=True,
        message=" ".join(listing.warnings),
        status=ServerStatus.CONNECTED,
        protocol_revision=facts.protocol_revision,
        server_name=f"{facts.name} {facts.version}".strip(),
        latency_ms=listing.latency_ms,
        tool_count=len(listing.tools),
        tools=listing.tools,
        transport=facts.transport,
        resource_count=len(listing.resources) + len(listing.resource_templates),
        prompt_count=len(listing.prompts),
    )


def _report_failure(
    server: McpServer, error: ConnectionFailed, stderr: str = ""
) -> ConnectionReport:
    is_auth = isinstance(error, AuthenticationRequired)
    return ConnectionReport(
        ok=False,
        message=error.message,
        status=ServerStatus.AUTH_REQUIRED if is_auth else ServerStatus.ERROR,
        details=_details_for_managers(server, error, stderr),
    )


def _details_for_managers(server: McpServer, error: ConnectionFailed, stderr: str) -> str:
    """What those who may change the server read besides the reason."""
    # Masked before it is cut: half a secret would not be known as one.
    advice, words = (
        redact_text(text, workspace_id=server.workspace_id)
        for text in (error.advice, strip_hidden(stderr).strip())
    )
    return _WORDS_FOLLOW.join(part for part in (advice, words[-MAX_SAID:]) if part)


def advice_and_words(details: str) -> tuple[str, str]:
    """What to do about a failure, and what the program said, out of what was told of both."""
    advice, _line, words = details.partition(_WORDS_FOLLOW)
    return advice, words
