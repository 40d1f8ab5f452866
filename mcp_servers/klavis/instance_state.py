"""How an instance's row changes, and who is told: open pages, connections, and the server that stands for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from mcp_servers.client.errors import AuthenticationRequired, ConnectionFailed
from mcp_servers.klavis import removals
from mcp_servers.klavis.asking import account_of
from mcp_servers.klavis.models import HOST, InstanceState, KlavisInstance
from mcp_servers.models import McpServer
from mcp_servers.registry import health
from mcp_servers.registry.elicitation.sign_ins import complete_sign_ins
from mcp_servers.registry.services.server_notices import drop_connections
from mcp_servers.registry.services.servers import remove_row
from workspaces.actors import Actor, Source
from workspaces.changes import ConfigurationChange, configuration_changed, record_deleted
from workspaces.delivery.announcements import Announcement, announce
from workspaces.middleware import actor_for as person_in
from workspaces.people.memberships import listen_to_leaving

if TYPE_CHECKING:
    from mcp_servers.klavis.models import HOST, KlavisAccount

CHANGED = "klavis.changed"


def listen_to_changes() -> None:
    """An instance goes with its server, and with the membership of whose it is. Called once at start."""
    listen_to_leaving(parted=_end_rows_of, claimed=_end_rows_of)
    configuration_changed.connect(
        _server_changed, sender=McpServer, dispatch_uid="mcp_servers.klavis.server"
    )


def set_state(instance: KlavisInstance, state: InstanceState, reason: str = "") -> None:
    """Keep a new state, in the caller's transaction; the server that stands for it shows it too."""
    instance.state, instance.reason = state, reason[:300]
    if state in (InstanceState.READY, InstanceState.FAILED) and not instance.services:
        instance.oauth_urls, instance.next_poll_at = None, None
    instance.last_checked_at = timezone.now()
    instance.save()
    tell_instance(instance)
    if instance.server_id is not None:
        refresh_connection(instance.workspace_id, instance.server_id)
        _show_on_server(instance)
        if state == InstanceState.READY:
            complete_sign_ins(instance.server_id, instance.user_id)


def _show_on_server(instance: KlavisInstance) -> None:
    error: ConnectionFailed | None = None
    if instance.state == InstanceState.WAITING_FOR_SIGN_IN:
        error = AuthenticationRequired(
            _("Someone has to sign in to %(title)s at Klavis.") % {"title": instance.title}
        )
    elif instance.state == InstanceState.FAILED:
        error = ConnectionFailed(instance.reason)
    server = McpServer.objects.for_workspace(instance.workspace_id).find(instance.server_id)
    if error is not None and server is not None:
        health.note_reading(server, health.HealthReading(error=error), is_asked_for=True)


def tell_instance(instance: KlavisInstance) -> None:
    """Tell open pages; of somebody's own only its owner."""
    whose = str(instance.user_id) if instance.user_id else None
    announce(instance.workspace_id, Announcement(kind=CHANGED, id=str(instance.pk), user_id=whose))


def tell_account(account: KlavisAccount) -> None:
    """Tell open pages."""
    announce(account.workspace_id, Announcement(kind=CHANGED, id=str(account.pk)))


def who_began(instance: KlavisInstance) -> Actor:
    """Whose installation or sign-in it is that is finished: with today's role, as long as they belong here."""
    person = instance.begun_by
    if person is not None and person.is_active:
        actor = person_in(person, instance.workspace, source=Source.TASK)
        if actor.role is not None or actor.is_superuser:
            return actor
    return actor_for(instance)


def actor_for(instance: KlavisInstance) -> Actor:
    """For what the platform notices by itself, on behalf of who began it."""
    person = instance.begun_by
    return Actor.system(
        label="klavis",
        source=Source.TASK,
        workspace_id=instance.workspace_id,
        on_behalf_of=person.email if person is not None else "",
    )


def refresh_connections(workspace_id: UUID) -> None:
    """What connections to hosted servers are made from has changed."""
    rows = McpServer.objects.for_workspace(workspace_id).filter(hosted_by=HOST)
    for server_id in list(rows.values_list("pk", flat=True)):
        refresh_connection(workspace_id, server_id)


def refresh_connection(workspace_id: UUID, server_id: UUID) -> None:
    """The same, of one server, which only the server's own row can show to other processes."""
    rows = McpServer.objects.for_workspace(workspace_id).filter(pk=server_id)
    rows.update(updated_at=timezone.now())
    transaction.on_commit(partial(drop_connections, server_id))


def let_go(instance: KlavisInstance, *, actor: Actor) -> None:
    """Delete an instance and its server here and now; at the provider as soon as that may be. Within a transaction."""
    server = None
    if instance.server_id is not None:
        rows = McpServer.objects.for_workspace(instance.workspace_id)
        server = rows.select_related("global_server").find(instance.server_id)
    if server is not None:
        remove_row(server, actor=actor)  # the instance goes with it
    else:
        _delete(instance, actor)


def _delete(instance: KlavisInstance, actor: Actor) -> None:
    record_deleted(instance, actor=actor)
    tell_instance(instance)
    instance.delete()


def _server_changed(sender: type[McpServer], change: ConfigurationChange, **_: Any) -> None:
    if change.verb != "deleted" or change.workspace_id is None:
        return
    rows = KlavisInstance.objects.for_workspace(change.workspace_id)
    instance = rows.filter(server=UUID(change.object_id)).first()
    if instance is not None:
        _delete(instance, change.actor)


def _end_rows_of(workspace_id: UUID, user_id: UUID, change: ConfigurationChange) -> None:
    instances = list(KlavisInstance.objects.for_workspace(workspace_id).filter(user=user_id))
    for instance in instances:
        let_go(instance, actor=change.actor)
    begun = KlavisInstance.objects.for_workspace(workspace_id).filter(begun_by_id=user_id)
    begun.update(begun_by=None)
    account = account_of(workspace_id)
    if account is not None and (instances or change.verb == "deleted"):
        removals.note_user(account, user_id, "A member's account")
