"""Sign-ins under way: begun by one request, ended once, by the same person in the same browser, soon.

Source: RFC 6749, section 10.12; RFC 9700, section 4.7; MCP specification, "Authorization": Open Redirection.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from django.db import transaction

from mcp_servers.models import ClientKind, OAuthAttempt
from mcp_servers.oauth.reasons import Reason, SignInFailed
from workspaces.database import database_now

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.models import McpServer, OAuthClient
    from mcp_servers.oauth.values import IssuerMetadata

ATTEMPT_SECONDS: Final = 600
MOST_OPEN: Final = 5
"""Sign-ins that one person may have under way at one server; older ones are forgotten."""
_STATE_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunAttempt:
    """A row, and the address that it sends the browser to."""

    attempt: OAuthAttempt
    url: str


def begin(
    *,
    server: McpServer,
    client: OAuthClient,
    issuer: IssuerMetadata,
    user_id: UUID,
    session_key: str,
    redirect_uri: str,
    scope: str,
    for_workspace_account: bool,
) -> BegunAttempt:
    """Note a sign-in, in the caller's transaction."""
    from mcp.client.auth.oauth2 import PKCEParameters

    state, pkce = secrets.token_urlsafe(_STATE_BYTES), PKCEParameters.generate()
    rows = OAuthAttempt.objects.for_workspace(server.workspace_id)
    mine = rows.filter(server=server, user_id=user_id).order_by("-id")
    rows.filter(pk__in=list(mine.values_list("pk", flat=True)[MOST_OPEN - 1 :])).delete()
    attempt = OAuthAttempt.objects.create(
        workspace_id=server.workspace_id,
        server=server,
        client=client,
        user_id=user_id,
        for_workspace_account=for_workspace_account,
        state_hash=_hash(state),
        session_hash=_hash(session_key),
        verifier=pkce.code_verifier,
        issuer=issuer.issuer,
        token_endpoint=issuer.token_endpoint,
        endpoint=server.url,
        redirect_uri=redirect_uri,
        resource=client.resource,
        scope=scope,
        expires_at=database_now() + timedelta(seconds=ATTEMPT_SECONDS),
    )
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": "S256",
        "resource": client.resource,
        **({"scope": scope} if scope else {}),
        **({"prompt": "consent"} if "offline_access" in scope.split() else {}),
    }
    joint = "&" if "?" in issuer.authorization_endpoint else "?"
    return BegunAttempt(
        attempt=attempt, url=f"{issuer.authorization_endpoint}{joint}{urlencode(query)}"
    )


def has_not_come_back(server: McpServer, user_id: UUID) -> bool:
    """Whether the person has just been sent to an issuer where Trellis registered, and is not back.

    An issuer that does not know a client shows that to the person, and sends nobody back. Source: RFC 6749, 4.1.2.1.
    """
    rows = OAuthAttempt.objects.for_workspace(server.workspace_id)
    return rows.filter(
        server=server,
        user_id=user_id,
        client__kind=ClientKind.DYNAMIC,
        used_at__isnull=True,
        expires_at__gt=database_now(),
    ).exists()


def take(
    *, server: McpServer, params: Mapping[str, str], user_id: UUID | None, session_key: str
) -> OAuthAttempt:
    """The sign-in that a redirect ends; it cannot be ended again, whatever comes of it.

    One that belongs to somebody else or to another browser stays as it is, for them to end.

    Raises:
        SignInFailed: unknown_state, other_person, other_browser, expired.
    """
    found = _take(server, params.get("state", ""), user_id, session_key)
    if isinstance(found, Reason):
        raise SignInFailed(found)
    return found


@transaction.atomic
def _take(
    server: McpServer, state: str, user_id: UUID | None, session_key: str
) -> OAuthAttempt | Reason:
    rows = OAuthAttempt.objects.for_workspace(server.workspace_id)
    attempt: OAuthAttempt | None = (
        rows.select_for_update(of=("self",))
        .select_related("client")
        .filter(server=server, state_hash=_hash(state), used_at__isnull=True)
        .first()
    )
    if not state or attempt is None:
        return Reason.UNKNOWN_STATE
    if attempt.user_id != user_id:
        return Reason.OTHER_PERSON
    if not session_key or attempt.session_hash != _hash(session_key):
        return Reason.OTHER_BROWSER
    now = database_now()
    used = rows.filter(pk=attempt.pk, used_at__isnull=True).update(used_at=now)
    if used != 1:
        return Reason.UNKNOWN_STATE
    return Reason.EXPIRED if attempt.expires_at <= now else attempt


def check_issuer_of_answer(
    attempt: OAuthAttempt, params: Mapping[str, str], advertised: bool
) -> None:
    """Make sure that an answer, good or bad, comes from the issuer that was asked.

    Raises:
        SignInFailed: issuer_mismatch.
    Source: RFC 9207, section 2.4: compared character by character; it may only be missing if it was not announced.
    """
    issuer = params.get("iss")
    if issuer is None and not advertised:
        return
    if issuer != attempt.issuer:
        raise SignInFailed(Reason.ISSUER_MISMATCH)


def trim() -> int:
    """Forget sign-ins that are over; how many."""
    rows = OAuthAttempt.objects.across_workspaces()
    limit = database_now() - timedelta(seconds=ATTEMPT_SECONDS)
    removed, _ = rows.filter(expires_at__lt=limit).delete()
    return removed


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
