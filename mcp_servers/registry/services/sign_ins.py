"""Ending a sign-in at a server: what was granted is looked at, and what waited for it goes on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mcp_servers.oauth.services import end_sign_in
from mcp_servers.registry.elicitation import complete_sign_ins
from mcp_servers.registry.services.inspection import look_as

if TYPE_CHECKING:
    from mcp_servers.models import McpServer, OAuthGrant
    from workspaces.actors import Actor

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 12.0
"""For a first look at what an account is shown; a later one does it otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSignIn:
    """What came of a sign-in."""

    server: McpServer
    grant: OAuthGrant
    tools_found: int | None
    """None: the server could not be looked at yet."""


def finish_sign_in(
    *, server: McpServer, params: Mapping[str, str], actor: Actor, session_key: str
) -> FinishedSignIn:
    """End a sign-in with what the issuer's redirect carried: store the grant, look what the server offers, and let
    everything go on that waited for it.

    Raises:
        PermissionDenied: the actor may no longer.
        SignInFailed: nothing was connected; why.
    """
    grant = end_sign_in(server=server, params=params, actor=actor, session_key=session_key)
    found = _look_as(server, actor)
    complete_sign_ins(server.pk, grant.user_id, actor=actor)
    return FinishedSignIn(server=server, grant=grant, tools_found=found)


def _look_as(server: McpServer, actor: Actor) -> int | None:
    """Read what the server offers this account, so that it can be used at once; None if that did not work."""
    try:
        # None where the look failed, or took longer than somebody likes to wait for a page.
        return look_as(server=server, actor=actor, seconds=LOOK_SECONDS).tool_count
    except Exception:
        # The account is connected all the same, and what waits for it goes on.
        logger.warning("not_looked_at_after_sign_in", exc_info=True)
        return None
