"""The provider's services in the catalogue of servers: read from what is kept of its catalogue, never from the network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from mcp_servers.klavis import installing
from mcp_servers.klavis.asking import account_of
from mcp_servers.klavis.limits import count_hosted
from mcp_servers.klavis.models import HOST, InstanceState, KlavisInstance
from mcp_servers.klavis.rights import may_remove
from mcp_servers.models import McpServer
from mcp_servers.registry.bud_choices import WhereUsed
from mcp_servers.registry.catalogue.values import (
    AuthKind,
    CatalogueEntry,
    InstalledServer,
    Installing,
)
from workspaces.actors import Actor
from workspaces.errors import Conflict, NotFound
from workspaces.models import Workspace

PROVIDER: Final = "Klavis"
CATEGORY: Final = gettext_noop("Hosted")


class KlavisSource:
    """What the workspace's account offers."""

    key = HOST

    def entries(self, *, workspace: Workspace, actor: Actor) -> Sequence[CatalogueEntry]:
        """Every service on offer; none where no account is set up."""
        account = account_of(workspace.pk)
        if account is None or not account.is_active:
            return []
        problem = account.problem
        if not account.api_key:
            problem = _("Klavis needs its API key first. An administrator can enter it.")
        mine = [
            row
            for row in KlavisInstance.objects.for_workspace(workspace).select_related(
                "server", "workspace"
            )
            if row.user_id in (None, actor.user_id)
        ]
        return [
            _entry(slug, offer, mine, actor, problem) for slug, offer in _by_slug(account.catalogue)
        ]

    def install(
        self,
        *,
        workspace: Workspace,
        entry: CatalogueEntry,
        actor: Actor,
        for_workspace: bool,
        secret: str,
        where: WhereUsed,
    ) -> Installing:
        """Have the service run; the page of its instance says how it goes on."""
        count_hosted(actor)
        account = account_of(workspace.pk)
        offers = dict(_by_slug(account.catalogue)) if account is not None else {}
        if entry.slug not in offers:
            raise NotFound
        instance = installing.install(
            workspace=workspace,
            server_name=offers[entry.slug]["name"],
            actor=actor,
            for_workspace=for_workspace,
            where=where,
        )
        url = reverse("mcp_servers:klavis_instance", args=[workspace.slug, instance.pk])
        return Installing(server=instance.server, url=url)

    def uninstall(self, *, server: McpServer, entry: CatalogueEntry, actor: Actor) -> None:
        """Remove the server here at once, and have it deleted at the provider."""
        rows = KlavisInstance.objects.for_workspace(server.workspace_id)
        instance = rows.select_related("workspace").filter(server=server).first()
        if instance is None:
            raise Conflict(_("This server is not hosted by Klavis."))
        installing.uninstall(instance=instance, actor=actor)


def _by_slug(catalogue: Iterable[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Each service under a slug of its own."""
    found: dict[str, dict[str, Any]] = {}
    for offer in catalogue:
        name = str(offer["name"])
        slug = slugify(name)[:50].strip("-")
        if not slug or slug in found:
            slug = f"{slug[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".strip("-")
        found.setdefault(slug, offer)
    return list(found.items())


def _entry(
    slug: str, offer: dict[str, Any], rows: list[KlavisInstance], actor: Actor, problem: str
) -> CatalogueEntry:
    of_this = [row for row in rows if row.server_name == offer["name"]]
    is_waiting = any(row.state == InstanceState.WAITING_FOR_SIGN_IN for row in of_this)
    return CatalogueEntry(
        source=HOST,
        slug=slug,
        title=str(offer["name"]),
        description=str(offer.get("description", "")),
        categories=(CATEGORY,),
        transport_label=_("Hosted"),
        auth=AuthKind.OAUTH if offer.get("needs_sign_in") else AuthKind.NONE,
        provider=PROVIDER,
        notes=_("A sign-in to it is under way.") if is_waiting else "",
        problem=problem,
        installed=tuple(
            InstalledServer(
                id=row.server_id,
                name=row.server.name,
                is_own=row.user_id is not None,
                can_uninstall=may_remove(actor, row),
            )
            for row in of_this
            if row.server is not None and row.server_id is not None
        ),
    )
