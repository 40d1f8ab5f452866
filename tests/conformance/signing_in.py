"""Plays the scenarios of authorization with the product's own services: a server's row, a person who signs in, the gate.

The suite's issuers redirect at once, as if somebody had agreed, so the person here only follows the address and brings
back what it led to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import httpx2
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connections
from uuid_utils.compat import uuid7

from mcp_servers.client.inputs import InputKind
from mcp_servers.client.values import ToolCallRequest
from mcp_servers.gate import call_tool
from mcp_servers.models import AuthType, InputRequest, InputStatus, McpServer, McpTool
from mcp_servers.oauth.reasons import SignInFailed
from mcp_servers.oauth.services import start_sign_in
from mcp_servers.registry import services
from mcp_servers.registry.services import ServerDraft
from mcp_servers.registry.services.sign_ins import FinishedSignIn, finish_sign_in
from tests.conformance.connecting import calls_for
from tests.patience import PATIENCE
from workspaces.actors import Actor, Source
from workspaces.errors import DomainError
from workspaces.middleware import actor_for
from workspaces.models import Membership, User, Workspace
from workspaces.roles import Role

Say = Callable[[str], object]

SESSION: Final = "conformance"
MOST_SIGN_INS: Final = 3


def play(url: str, context: Mapping[str, Any], say: Say) -> None:
    """Add the server, sign in, call what the scenario wants called, and sign in again where a call needs it."""
    actor = _somebody()
    draft = ServerDraft(name="conformance", url=url, **_client_of(context))
    server = services.add_server(workspace_id=_workspace_of(actor), draft=draft, actor=actor)
    if server.auth_type == AuthType.OAUTH:
        # A server that shows nothing yet wants more than it said at first.
        for _ in range(MOST_SIGN_INS):
            done = sign_in(server, actor, say)
            if done is None:
                return
            if done.tools_found is not None:
                break
    else:
        report = services.test_connection(server=server, actor=actor)
        say(f"{report.status}: {report.message}\n")
    with _signing_in_when_asked(server, actor, say):
        _call_everything(server, actor, context, say)


def sign_in(server: McpServer, actor: Actor, say: Say) -> FinishedSignIn | None:
    """Start, follow, finish; None if that did not go well."""
    origin = settings.TRELLIS.public_origins[0]
    try:
        started = start_sign_in(server=server, actor=actor, session_key=SESSION, origin=origin)
        with httpx2.Client(trust_env=False) as browser:
            answer = browser.get(started.url, timeout=15)
        params = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
        return finish_sign_in(server=server, params=params, actor=actor, session_key=SESSION)
    except SignInFailed as error:
        say(f"{error.reason.value}: {error.message}\n")
        return None


def _call_everything(server: McpServer, actor: Actor, context: Mapping[str, Any], say: Say) -> None:
    tools = McpTool.objects.for_workspace(server.workspace_id).filter(server=server)
    tools.update(approval_override="auto")
    known = {tool.name: tool for tool in tools}
    for name, arguments in calls_for([(t.name, t.input_schema) for t in tools], context):
        request = ToolCallRequest(
            call_id=uuid7(),
            workspace_id=server.workspace_id,
            tool_id=known[name].pk,
            arguments=arguments,
            actor=actor,
            can_ask=True,
        )
        try:
            outcome = async_to_sync(call_tool)(request)
        except DomainError as error:
            say(f"{name}: {error.message}\n")
        else:
            say(f"{name}: {outcome.outcome.value} {outcome.message}\n")


@contextmanager
def _signing_in_when_asked(server: McpServer, actor: Actor, say: Say) -> Iterator[None]:
    """The person at the page, who signs in whenever a call asks for it, and gives up after a while."""
    is_over = threading.Event()

    def watch() -> None:
        done = 0
        rows = InputRequest.objects.for_workspace(server.workspace_id)
        asked = rows.filter(kind=InputKind.SIGN_IN.value, status=InputStatus.PENDING)
        try:
            while not is_over.wait(0.02):
                row = asked.filter(server_id=server.pk).first()
                if row is None:
                    continue
                done += 1
                if done > MOST_SIGN_INS or sign_in(server, actor, say) is None:
                    _decline(row, actor)
        finally:
            connections.close_all()

    thread = threading.Thread(target=watch, name="person", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(PATIENCE)


def _decline(row: InputRequest, actor: Actor) -> None:
    from mcp_servers.client.inputs import InputAction
    from mcp_servers.registry.elicitation import answer_input

    answer_input(input_request=row, action=InputAction.DECLINE, actor=actor)


def _client_of(context: Mapping[str, Any]) -> dict[str, Any]:
    """How one signs in to the scenario's server: with a client that it gives, or as a person without one."""
    client = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    if "private_key_pem" in context:
        client["private_key"] = context["private_key_pem"]
    is_robot = "client-credentials" in str(context.get("name", ""))
    auth_type = AuthType.OAUTH_CLIENT if is_robot else AuthType.OAUTH
    return {"auth_type": auth_type, "auth": client or None}


def _somebody() -> Actor:
    """An administrator of a workspace of their own."""
    name = f"w{uuid7().hex}"
    workspace = Workspace.objects.create(slug=name[:40], name=name[:40])
    user = User.objects.create_user(email=f"{name}@example.org", password=None)
    Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER.value)
    return actor_for(user, workspace, source=Source.WEB)


def _workspace_of(actor: Actor) -> Any:
    assert actor.workspace_id is not None
    return actor.workspace_id
