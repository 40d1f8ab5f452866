"""Connecting accounts at servers, and disconnecting them: what pages, programs and tasks call.

Functions that talk to issuers do so outside of any transaction.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.actions import Action
from mcp_servers.client.connections import runtime
from mcp_servers.client.errors import ConnectionFailed
from mcp_servers.models import (
    AuthType,
    ClientKind,
    McpServer,
    OAuthAttempt,
    OAuthGrant,
    ToolSighting,
)
from mcp_servers.oauth import attempts, discovery, identity, revoking, tokens
from mcp_servers.oauth.clients import (
    check_issuer_of_entered,
    forget_registration,
    identity_of,
    issuer_of,
    known_client,
    save_client,
)
from mcp_servers.oauth.entries import record_grant, record_sign_in
from mcp_servers.oauth.grants import (
    Holder,
    find_grant,
    person_of,
    principal_of,
    uses_own_accounts,
)
from mcp_servers.oauth.probing import ask_challenge
from mcp_servers.oauth.reasons import Reason, SignInFailed
from mcp_servers.oauth.registered_client import entered_client
from mcp_servers.oauth.values import (
    StartedSignIn,
    TokenResponse,
    joined,
    scopes_of,
)
from workspaces import outbound
from workspaces.database import database_now
from workspaces.errors import PermissionDenied
from workspaces.models import User
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from mcp_servers.models import OAuthClient
    from mcp_servers.oauth.identity import Identity
    from mcp_servers.oauth.values import Discovery
    from workspaces.actors import Actor


T = TypeVar("T")

SECONDS: Final = 40.0
"""For all requests to a server and its issuer within one of ours."""


def start_sign_in(
    *,
    server: McpServer,
    actor: Actor,
    session_key: str,
    origin: str,
    registers_again: bool = False,
) -> StartedSignIn:
    """Begin to connect an account: the person's own, or the workspace's where the server uses one for everybody.

    Args:
        session_key: of the browser; only the same one can end it.
        origin: the public origin under which that browser reaches us.
        registers_again: the issuer showed the person that it does not know us. What others have connected ends with it.

    Raises:
        PermissionDenied: the actor may not use this server, not connect the workspace's account, or not register again.
        SignInFailed: it cannot be begun; why.
    """
    _require_to_sign_in(actor, server)
    if registers_again and server.owner_id is None:
        require(actor, Permission.MANAGE_SERVERS, workspace_id=server.workspace_id)
    try:
        return _start(server, actor, session_key, origin, registers_again=registers_again)
    except SignInFailed as error:
        _record_failure(server, actor, error)
        raise


def end_sign_in(
    *, server: McpServer, params: Mapping[str, str], actor: Actor, session_key: str
) -> OAuthGrant:
    """End a sign-in with what the issuer's redirect carried, and store the grant.

    Raises:
        PermissionDenied: the actor may no longer.
        SignInFailed: nothing was connected; why.
    """
    try:
        _require_to_sign_in(actor, server)
        attempt = attempts.take(
            server=server, params=params, user_id=person_of(actor), session_key=session_key
        )
        return _finish(server, attempt, params, actor)
    except SignInFailed as error:
        _record_failure(server, actor, error)
        raise


def server_for_callback(server_id: UUID, user: User) -> McpServer:
    """The server that a redirect names, if this person may know it.

    Raises:
        SignInFailed: unknown_state.
    """
    server = McpServer.objects.visible_to(user).select_related("workspace").find(server_id)
    if server is None:
        raise SignInFailed(Reason.UNKNOWN_STATE)
    return server


@transaction.atomic
def revoke_grant(*, grant: OAuthGrant, actor: Actor) -> None:
    """Disconnect an account: its tokens are gone at once, and the issuer is told where it takes that.

    Raises:
        PermissionDenied: it is neither the actor's own nor at a server that the actor manages.
    """
    require(actor, Permission.USE_CHAT, workspace_id=grant.workspace_id)
    if grant.user_id is None or grant.user_id != person_of(actor):
        require(actor, Permission.MANAGE_SERVERS, workspace_id=grant.workspace_id)
    revoking.remove_grant(grant, actor)


def _require_to_sign_in(actor: Actor, server: McpServer) -> None:
    if server.auth_type != AuthType.OAUTH:
        raise SignInFailed(Reason.NOT_NEEDED)
    if person_of(actor) is None or server.owner_id not in (None, actor.user_id):
        raise PermissionDenied
    if uses_own_accounts(server):
        if not has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=server.workspace_id):
            require(actor, Permission.USE_CHAT, workspace_id=server.workspace_id)
    else:
        require(actor, Permission.MANAGE_SERVERS, workspace_id=server.workspace_id)
    if not server.is_active:
        raise SignInFailed(Reason.SWITCHED_OFF)


def _start(
    server: McpServer, actor: Actor, session_key: str, origin: str, *, registers_again: bool
) -> StartedSignIn:
    user_id = person_of(actor)
    assert user_id is not None
    if not session_key or origin not in settings.TRELLIS.public_origins:
        raise SignInFailed(Reason.OTHER_BROWSER)
    for_workspace = not uses_own_accounts(server)
    before = find_grant(_holder(server, None if for_workspace else user_id))
    found = _run(_discover(server, before.issuer if before is not None else ""))
    discovery.check_can_sign_in(found.issuer)
    scopes = _scopes(server, found, before)
    if registers_again:
        _forget_client(server, found.issuer.issuer)
    client = _client(server, found)
    with transaction.atomic():
        begun = attempts.begin(
            server=server,
            client=client,
            issuer=found.issuer,
            user_id=user_id,
            session_key=session_key,
            redirect_uri=f"{origin}{identity.callback_path(server.pk)}",
            scope=" ".join(scopes),
            for_workspace_account=for_workspace,
        )
        record_sign_in(
            server,
            Action.GRANT_REQUESTED,
            actor,
            details={
                "account": "workspace" if for_workspace else f"user:{user_id}",
                "issuer": found.issuer.issuer,
                "scope": " ".join(scopes),
                **({"registered_again": True} if registers_again else {}),
            },
        )
    return StartedSignIn(
        url=begun.url,
        host=urlsplit(found.issuer.authorization_endpoint).netloc,
        scopes=scopes,
        expires_at=begun.attempt.expires_at,
    )


async def _discover(server: McpServer, preferred_issuer: str) -> Discovery:
    try:
        challenge = await ask_challenge(server)
    except ConnectionFailed as error:
        raise SignInFailed(Reason.UNREACHABLE) from error
    return await discovery.discover(
        outbound.parse_endpoint(server.url), challenge, preferred_issuer=preferred_issuer
    )


def _scopes(server: McpServer, found: Discovery, before: OAuthGrant | None) -> tuple[str, ...]:
    """What to ask for: what an administrator set, else what the server says; and all that it asked for since."""
    usual = scopes_of(server.oauth_scope) or found.scopes
    if before is None or not before.wanted_scope:
        return usual
    return joined(usual, scopes_of(before.scope), scopes_of(before.wanted_scope))


def _client(server: McpServer, found: Discovery) -> OAuthClient:
    """As whom we are known at the issuer; if need be, become known there first."""
    issuer = found.issuer.issuer
    credentials = entered_client(server, "beginning a sign-in")
    if credentials:
        with transaction.atomic():
            _lock(server)
            check_issuer_of_entered(server, issuer)
            return save_client(server, identity.entered(credentials, found.issuer), found)
    known = known_client(server, issuer)
    introduced = None if known is not None else _run(identity.introduce(server.pk, found))
    with transaction.atomic():
        _lock(server)
        # Somebody else may have begun at the same moment; their sign-in goes by the client that is stored. Where a
        # renewal had it forgotten just now, the issuer refuses it once more.
        known = known_client(server, issuer) or known
        known_as = introduced if known is None else identity_of(known, server)
        assert known_as is not None
        return save_client(server, known_as, found)


def _forget_client(server: McpServer, issuer: str) -> None:
    """Have this sign-in register anew.

    Raises:
        SignInFailed: registration_unknown; that did not help today.
    """
    known = known_client(server, issuer)
    if known is None or known.kind != ClientKind.DYNAMIC:
        return
    if not forget_registration(server.pk, server.workspace_id, identity_of(known, server)):
        raise SignInFailed(Reason.REGISTRATION_UNKNOWN)


def _finish(
    server: McpServer, attempt: OAuthAttempt, params: Mapping[str, str], actor: Actor
) -> OAuthGrant:
    issuer = issuer_of(attempt.client)
    if attempt.endpoint != server.url or issuer.issuer != attempt.issuer:
        raise SignInFailed(Reason.CHANGED)
    attempts.check_issuer_of_answer(
        attempt, params, issuer.authorization_response_iss_parameter_supported
    )
    if "error" in params:
        raise SignInFailed(_reason_of_redirect(params["error"]))
    code = params.get("code", "")
    if not code or len(code) > outbound.MAX_URL_LENGTH:
        raise SignInFailed(Reason.NO_CODE)
    known_as: Identity = identity_of(attempt.client, server)
    verifier = attempt.verifier
    assert verifier is not None
    try:
        given = _run(
            tokens.exchange_code(
                workspace_id=server.workspace_id,
                token_endpoint=attempt.token_endpoint,
                issuer=issuer,
                identity=known_as,
                code=code,
                verifier=verifier.reveal("ending a sign-in"),
                redirect_uri=attempt.redirect_uri,
                resource=attempt.resource,
            )
        )
    except SignInFailed as error:
        if error.reason is not Reason.CLIENT_REFUSED or known_as.kind is not ClientKind.DYNAMIC:
            raise
        is_made_anew = forget_registration(server.pk, server.workspace_id, known_as)
        reason = Reason.TOKEN_REFUSED if is_made_anew else Reason.REGISTRATION_UNKNOWN
        raise SignInFailed(reason) from error
    return _store_grant(server, attempt, given, actor)


def _reason_of_redirect(error: str) -> Reason:
    if error == "access_denied":
        return Reason.CANCELLED
    reason = tokens.reason_of(error)
    return Reason.REFUSED if reason is Reason.TOKEN_REFUSED else reason


@transaction.atomic
def _store_grant(
    server: McpServer, attempt: OAuthAttempt, given: TokenResponse, actor: Actor
) -> OAuthGrant:
    current = _lock(server)
    under_way = OAuthAttempt.objects.for_workspace(server.workspace_id).filter(
        pk=attempt.pk, client=attempt.client
    )
    is_same = current.auth_type == AuthType.OAUTH and current.url == attempt.endpoint
    is_same = is_same and under_way.exists()
    if not is_same or attempt.for_workspace_account == uses_own_accounts(current):
        raise SignInFailed(Reason.CHANGED)
    holder = _holder(server, None if attempt.for_workspace_account else attempt.user_id)
    # A renewal at this moment must not count as one of the tokens that come now.
    grant = find_grant(holder, is_locked=True) or OAuthGrant(
        workspace_id=server.workspace_id, server=server, user_id=holder.user_id
    )
    now = database_now()
    grant.granted_by_id = attempt.user_id
    grant.client = attempt.client
    grant.issuer, grant.token_endpoint = attempt.issuer, attempt.token_endpoint
    grant.endpoint, grant.resource = attempt.endpoint, attempt.resource
    grant.tokens = given.as_stored()
    grant.account = given.account
    grant.scope = given.scope if given.scope is not None else attempt.scope
    grant.wanted_scope = ""
    grant.granted_at, grant.refreshed_at, grant.refreshing_until = now, None, None
    grant.expires_at = now + timedelta(seconds=given.expires_in) if given.expires_in else None
    grant.generation += 1
    grant.lost_reason = ""
    # It may be another account, which is shown other tools.
    grant.looked_at = None
    if holder.user_id is not None:
        sightings = ToolSighting.objects.for_workspace(server.workspace_id)
        sightings.filter(server=server, user_id=holder.user_id).delete()
    grant.save()
    record_grant(grant, Action.GRANT_GIVEN, actor)
    principal = principal_of(current, holder.user_id)
    transaction.on_commit(lambda: revoking.close_connections(server.pk, principal))
    return grant


def _record_failure(server: McpServer, actor: Actor, error: SignInFailed) -> None:
    record_sign_in(server, Action.GRANT_FAILED, actor, details={"reason": error.reason.value})


def _holder(server: McpServer, user_id: UUID | None) -> Holder:
    return Holder(workspace_id=server.workspace_id, server_id=server.pk, user_id=user_id)


def _lock(server: McpServer) -> McpServer:
    rows = McpServer.objects.for_workspace(server.workspace_id)
    return rows.select_for_update(of=("self",)).fetch(server.pk)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await requests to an issuer from a thread without a loop.

    Raises:
        SignInFailed: unreachable, if it takes too long.
    """
    try:
        return runtime.run_sync(coroutine, SECONDS)
    except TimeoutError as error:
        raise SignInFailed(Reason.UNREACHABLE) from error
