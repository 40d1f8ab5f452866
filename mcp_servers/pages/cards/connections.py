"""Who is connected to which server, as pages and programs are told of it; never a token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy

from mcp_servers.models import AuthType, McpServer, OAuthGrant, ServerStatus
from mcp_servers.oauth.grants import has_usable_tokens, uses_own_accounts
from mcp_servers.registry.rights import may_manage, may_sign_in
from mcp_servers.registry.specs import target_label

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.models import User, Workspace

_MOVED = gettext_lazy("The server has another address now.")

State = Literal["connected", "lost", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedAccount:
    """One account at one server, or the lack of it."""

    server_id: UUID
    server_name: str
    host: str
    is_shared: bool
    """The workspace's account, and nobody's own."""
    state: State
    reason: str = ""
    """Why it no longer serves."""
    can_sign_in: bool = False
    grant_id: UUID | None = None
    person: str = ""
    """Whose it is, by e-mail address; the workspace's: who connected it."""
    account: str = ""
    """Who that is over there."""
    scopes: tuple[str, ...] = ()
    granted_at: datetime | None = None
    last_used_at: datetime | None = None
    expires_at: datetime | None = None


def accounts_of(*, workspace: Workspace, user: User, actor: Actor) -> list[ConnectedAccount]:
    """The reader's own accounts, for whoever manages servers also the workspace's, and the sign-ins that are missing."""
    servers = (
        McpServer.objects.for_workspace(workspace)
        .visible_to(user)
        .filter(auth_type=AuthType.OAUTH)
        .select_related("workspace", "program", "global_server")
    )
    grants = {
        (grant.server_id, grant.user_id): grant
        for grant in OAuthGrant.objects.for_workspace(workspace)
        .filter(Q(user=user) | Q(user__isnull=True))
        .select_related("server", "user", "granted_by")
    }
    found = []
    for server in servers:
        is_own = uses_own_accounts(server)
        if not is_own and not may_manage(actor, server):
            continue
        grant = grants.get((server.pk, user.pk if is_own else None))
        if grant is not None or server.is_active:
            found.append(_account(server, grant, is_shared=not is_own, can_sign_in=True))
    return found


def people_of(server: McpServer) -> list[ConnectedAccount]:
    """Everybody who is connected to a server."""
    grants: Iterable[OAuthGrant] = (
        OAuthGrant.objects.for_workspace(server.workspace_id)
        .filter(server=server)
        .select_related("server", "user", "granted_by")
        .order_by("user__email")
    )
    return [
        _account(server, grant, is_shared=grant.user_id is None, can_sign_in=False)
        for grant in grants
    ]


def missing_sign_ins(servers: Iterable[McpServer], user_id: UUID | None) -> set[UUID]:
    """Those of these servers that this person cannot use before somebody signs in. One query for all."""
    listed = list(servers)
    hosted = {
        server.pk
        for server in listed
        if server.hosted_by and server.state.status == ServerStatus.AUTH_REQUIRED
    }
    asked = {server.pk: server for server in listed if server.auth_type == AuthType.OAUTH}
    if not asked:
        return hosted
    workspace_id = next(iter(asked.values())).workspace_id
    grants = (
        OAuthGrant.objects.for_workspace(workspace_id)
        .filter(Q(user_id=user_id) | Q(user__isnull=True), server__in=asked)
        .select_related("server")
    )
    holders = {(grant.server_id, grant.user_id) for grant in grants if has_usable_tokens(grant)}
    return hosted | {
        pk
        for pk, server in asked.items()
        if (pk, user_id if uses_own_accounts(server) else None) not in holders
    }


def sign_in_path(server: McpServer, actor: Actor) -> str | None:
    """The page on which the actor can connect this server's account; None if that is for somebody else to do."""
    if not may_sign_in(actor, server):
        return None
    return reverse("mcp_servers:sign_in", args=[server.workspace.slug, server.pk])


def host_of(server: McpServer) -> str:
    """Where a server is, for people."""
    return urlsplit(server.url).hostname or target_label(server)


def _account(
    server: McpServer, grant: OAuthGrant | None, *, is_shared: bool, can_sign_in: bool
) -> ConnectedAccount:
    if grant is None:
        return ConnectedAccount(
            server_id=server.pk,
            server_name=server.name,
            host=host_of(server),
            is_shared=is_shared,
            state="missing",
            can_sign_in=can_sign_in,
        )
    holder = grant.user or grant.granted_by
    return ConnectedAccount(
        server_id=server.pk,
        server_name=server.name,
        host=host_of(server),
        is_shared=is_shared,
        state="connected" if has_usable_tokens(grant) else "lost",
        reason="" if has_usable_tokens(grant) else grant.lost_reason or str(_MOVED),
        can_sign_in=can_sign_in and server.is_active,
        grant_id=grant.pk,
        person=holder.email if holder is not None else "",
        account=grant.account,
        scopes=tuple(grant.scope.split()),
        granted_at=grant.granted_at,
        last_used_at=grant.last_used_at,
        expires_at=grant.expires_at,
    )
