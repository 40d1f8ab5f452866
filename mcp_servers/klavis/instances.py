"""Installing services that the provider hosts, and looking after them. Each function asks permission; none talks within a transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit.actions import Action
from mcp_servers.client.canonical import clean_text
from mcp_servers.client.transports import STREAMABLE_HTTP
from mcp_servers.klavis import instance_state, removals
from mcp_servers.klavis.asking import WAIT_SECONDS, ask, external_id_of, usable_account
from mcp_servers.klavis.entries import record_sign_in
from mcp_servers.klavis.errors import KlavisError, NotThere, Unreadable
from mcp_servers.klavis.models import HOST, InstanceKind, InstanceState, KlavisInstance
from mcp_servers.klavis.rights import require_to_manage, require_to_remove
from mcp_servers.models import McpServer, ServerScope, ServerState
from mcp_servers.models.servers import MAX_NAME_LENGTH
from mcp_servers.registry.bud_choices import (
    EVERYWHERE,
    WhereUsed,
    buds_of,
    check_buds,
    give_to_buds,
)
from mcp_servers.registry.rights import require_to_own
from mcp_servers.registry.services import ServerDraft, update_server
from mcp_servers.registry.services.servers import MAX_PERSONAL_SERVERS
from workspaces import outbound
from workspaces.changes import record_created, tracked_change
from workspaces.errors import Conflict, DomainError, InvalidEndpoint, InvalidInput
from workspaces.holding import take_room
from workspaces.outbox import claim_until
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from mcp_servers.klavis.client import KlavisApi
    from mcp_servers.klavis.models import HOST, KlavisAccount
    from mcp_servers.klavis.shapes import Instance
    from workspaces.actors import Actor
    from workspaces.models import Workspace

SIGN_IN_MINUTES: Final = 15
FIRST_POLL: Final = timedelta(seconds=3)
MAX_WINDOW_URL: Final = 8192
STRATA_NAME: Final = "strata"
MAX_SERVICES: Final = 50
MAX_CREDENTIAL: Final = 8000
MAX_INSTANCES: Final = 200
"""Of one workspace, its people's included."""
_SAVING_SECONDS: Final = 15.0
"""For what comes after the provider's answer."""
_BUSY = gettext_lazy(
    "Somebody else is changing this server right now. Nothing was changed. Wait a moment, look what they did, and try again."
)
_OVERTAKEN = gettext_lazy(
    "Somebody else changed this server in the meantime. Nothing was changed. Look what they did, and try again."
)


def install(
    *,
    workspace: Workspace,
    server_name: str,
    actor: Actor,
    for_workspace: bool,
    is_read_only: bool = False,
    services: Sequence[str] = (),
    where: WhereUsed = EVERYWHERE,
) -> KlavisInstance:
    """Have a service run for the workspace or for the actor. What came of it stands in the row, also a failure.

    Args:
        server_name: as the provider's catalogue names it.
        where: where its server is used, as soon as it is there.
        services: several names, to have them all behind one server; then `server_name` is not looked at.

    Raises:
        PermissionDenied: the actor may not install that.
        NotSetUp: the workspace has no account that works.
        Conflict: it is installed already, or there are too many.
        InvalidInput: the provider's catalogue has no such service, or a bud is not there.
    """
    if for_workspace:
        require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
    else:
        require_to_own(actor, workspace)
    check_buds(workspace.pk, where.bud_ids)
    account = usable_account(workspace.pk)
    names = _known_names(account, services or [server_name])
    user_id = None if for_workspace else actor.user_id
    instance = _take_up(workspace, names, user_id, actor, where, is_strata=bool(services))
    if is_read_only:
        instance.is_read_only = True
        instance.save(update_fields=["is_read_only"])
    return _make(instance, account, actor)


def begin_again(*, instance: KlavisInstance, actor: Actor) -> KlavisInstance:
    """Try a failed installation once more, or sign in anew; what is signed in now is signed out first.

    Raises:
        PermissionDenied: it is not the actor's to do.
        NotSetUp: the workspace has no account that works.
    """
    require_to_manage(actor, instance)
    account = usable_account(instance.workspace_id)
    if instance.instance_id and instance.kind == InstanceKind.SINGLE:
        remote_id = instance.instance_id.reveal("signing out at the hosted MCP provider")
        try:
            ask(account, lambda api: api.delete_credential(remote_id))
        except NotThere:
            pass  # it is made anew
        except KlavisError as error:
            record_sign_in(instance, Action.GRANT_FAILED, actor, reason=error.code)
            return _failed(instance, error)
    with transaction.atomic():
        instance = _locked(instance)
        if instance.server_id is not None and instance.kind == InstanceKind.SINGLE:
            record_sign_in(instance, Action.GRANT_REVOKED, actor, reason="signs in anew")
        instance.begun_by_id = actor.user_id
        instance.oauth_urls = None
        instance_state.set_state(instance, InstanceState.CREATING)
    return _make(instance, account, actor)


def make_again(instance: KlavisInstance, account: KlavisAccount) -> KlavisInstance:
    """Go on with an installation that stopped half way."""
    return _make(instance, account, instance_state.actor_for(instance))


def set_read_only(*, instance: KlavisInstance, is_read_only: bool, actor: Actor) -> KlavisInstance:
    """Have the provider offer only what reads, or everything.

    Raises:
        PermissionDenied: it is not the actor's to do.
        Conflict: somebody else was faster; nothing changed.
        KlavisError: the provider did not do it; nothing changed.
    """
    require_to_manage(actor, instance)
    account = usable_account(instance.workspace_id)
    remote_id = _remote_id(instance)
    if instance.kind == InstanceKind.STRATA:
        raise Conflict(_("A server with several services can't be made read-only."))
    with _claimed(instance, "is_read_only"):
        ask(account, lambda api: api.set_read_only(remote_id, is_read_only=is_read_only))
        with transaction.atomic():
            instance = _locked(instance)
            with tracked_change(instance, actor=actor):
                instance.is_read_only = is_read_only
                instance.save(update_fields=["is_read_only", "updated_at"])
            instance_state.tell_instance(instance)
    _look(instance)
    return instance


@transaction.atomic
def set_uses_rest(*, instance: KlavisInstance, uses_rest: bool, actor: Actor) -> KlavisInstance:
    """Reach it over the provider's API instead of directly, or directly again.

    Raises:
        PermissionDenied: it is not the actor's to do.
    """
    require_to_manage(actor, instance)
    instance = _locked(instance)
    with tracked_change(instance, actor=actor):
        instance.uses_rest = uses_rest
        instance.save(update_fields=["uses_rest", "updated_at"])
    if instance.server_id is not None:
        states = ServerState.objects.for_workspace(instance.workspace_id)
        states.filter(pk=instance.server_id).update(resolved_transport="", next_check_at=None)
        instance_state.refresh_connection(instance.workspace_id, instance.server_id)
    instance_state.tell_instance(instance)
    return instance


def set_credential(*, instance: KlavisInstance, secret: str, actor: Actor) -> KlavisInstance:
    """Give a service its API key. It goes to the provider, and is kept nowhere here.

    Raises:
        PermissionDenied: it is not the actor's to do.
        InvalidInput: it is no key.
        KlavisError: the provider did not take it.
    """
    require_to_manage(actor, instance)
    key = secret.strip()
    if not key or len(key) > MAX_CREDENTIAL or not key.isprintable():
        raise InvalidInput(fields={"secret": [_("This is not a valid key.")]})
    account = usable_account(instance.workspace_id)
    remote_id = _remote_id(instance)

    async def give(api: KlavisApi) -> bool:
        await api.set_credential(remote_id, {"api_key": key})
        return (await api.get_instance(remote_id)).may_be_used

    record_sign_in(instance, Action.GRANT_REQUESTED, actor, by="api_key")
    try:
        may_be_used = ask(account, give)
    except KlavisError as error:
        record_sign_in(instance, Action.GRANT_FAILED, actor, by="api_key", reason=error.code)
        raise
    record_sign_in(instance, Action.GRANT_GIVEN, actor, by="api_key")
    return make_ready(instance) if may_be_used else instance


def change_services(
    *,
    instance: KlavisInstance,
    services: Sequence[str],
    actor: Actor,
    seen: Sequence[str] | None = None,
) -> KlavisInstance:
    """Have other services behind the one server.

    Args:
        seen: those that the actor was shown, if any were: what somebody has added since is not removed.

    Raises:
        PermissionDenied: it is not the actor's to do.
        Conflict: somebody else was faster; nothing changed.
        InvalidInput: a name is not in the provider's catalogue, or there is none.
        KlavisError: the provider did not do it.
    """
    require_to_manage(actor, instance)
    if instance.kind != InstanceKind.STRATA:
        raise Conflict(_("This server has one service only."))
    account = usable_account(instance.workspace_id)
    wanted = _known_names(account, services)
    remote_id = _remote_id(instance)
    before = list(instance.services)
    if seen is not None and list(seen) != before:
        raise Conflict(_OVERTAKEN)
    more = [name for name in wanted if name not in before]
    fewer = [name for name in before if name not in wanted]

    async def change(api: KlavisApi) -> dict[str, str]:
        if more:
            await api.add_to_strata(remote_id, more)
        if fewer:
            await api.remove_from_strata(remote_id, fewer)
        return (await api.get_strata(remote_id)).oauth_urls

    with _claimed(instance, "services"):
        windows = ask(account, change)
        with transaction.atomic():
            instance = _locked(instance)
            with tracked_change(instance, actor=actor):
                instance.services = wanted
                instance.begun_by_id = actor.user_id
                _await_sign_in(instance, windows, actor)
                instance_state.set_state(instance, InstanceState.READY)
    _look(instance)
    return instance


@transaction.atomic
def uninstall(*, instance: KlavisInstance, actor: Actor) -> None:
    """Delete it here at once, with its server and tools; at the provider too, however often that takes.

    Raises:
        PermissionDenied: it is not the actor's to remove.
    """
    require_to_remove(actor, instance)
    instance_state.let_go(instance, actor=actor)


def make_ready(instance: KlavisInstance, *, signed_in_by: Actor | None = None) -> KlavisInstance:
    """Nobody has to sign in any more: the server is there from now on, with its tools; unless it is begun anew by now.

    Args:
        signed_in_by: who connected an account; none: nobody had to, or it is on record already.
    """
    reason = ""
    with transaction.atomic():
        rows = KlavisInstance.objects.for_workspace(instance.workspace_id)
        row = rows.select_for_update(of=("self",)).filter(pk=instance.pk).first()
        if row is None or (row.state, row.poll_until) != (instance.state, instance.poll_until):
            return (
                row or instance
            )  # uninstalled, or begun anew: what was seen is of the time before
        instance = row
        if instance.server_id is None:
            instance.server = _add_server(instance)
            reason = _give_to_buds(instance.server, instance)
        if signed_in_by is not None:
            record_sign_in(instance, Action.GRANT_GIVEN, signed_in_by)
        instance_state.set_state(instance, InstanceState.READY, reason)
    _look(instance)
    return instance


def _look(instance: KlavisInstance) -> None:
    """Read what it offers now, for who installed it: of a server that is new, what is seen is accepted."""
    from mcp_servers.registry.services.inspection import look_as

    server = McpServer.objects.for_workspace(instance.workspace_id).find(instance.server_id)
    if server is not None:
        look_as(server=server, actor=instance_state.who_began(instance))


def _known_names(account: KlavisAccount, names: Sequence[str]) -> list[str]:
    """As the catalogue spells them, each once."""
    catalogue = {str(entry["name"]).casefold(): str(entry["name"]) for entry in account.catalogue}
    found = [catalogue.get(name.strip().casefold()) for name in names]
    known = list(dict.fromkeys(name for name in found if name is not None))
    if None in found or not known:
        raise InvalidInput(fields={"service": [_("The catalogue of Klavis has no such service.")]})
    if len(known) > MAX_SERVICES:
        raise InvalidInput(
            fields={"service": [_("At most %(most)s services.") % {"most": MAX_SERVICES}]}
        )
    return known


@transaction.atomic
def _take_up(
    workspace: Workspace,
    names: list[str],
    user_id: UUID | None,
    actor: Actor,
    where: WhereUsed,
    *,
    is_strata: bool,
) -> KlavisInstance:
    """The row of a new installation, or of one that stopped."""
    name = STRATA_NAME if is_strata else names[0]
    rows = KlavisInstance.objects.for_workspace(workspace)
    mine = rows.filter(user_id=user_id) if user_id else rows.filter(user__isnull=True)
    instance = mine.select_for_update(of=("self",)).filter(server_name=name).first()
    if instance is not None:
        if instance.state == InstanceState.READY:
            raise Conflict(_("This service is installed already."))
        instance.begun_by_id = actor.user_id
        _note_where(instance, where)
        if instance.server is not None and where != EVERYWHERE:
            draft = ServerDraft().used(where)  # it is there from before, with the choice of then
            update_server(server=instance.server, draft=draft, actor=actor)
        if is_strata:
            instance.services = names
        instance_state.set_state(instance, InstanceState.CREATING)
        return instance
    told = _("A workspace may have %(most)s hosted servers.")
    take_room(
        rows,
        most=MAX_INSTANCES,
        refusal=Conflict(told % {"most": MAX_INSTANCES}),
        workspace_id=workspace.pk,
    )
    if user_id is not None and mine.count() >= MAX_PERSONAL_SERVERS:
        raise Conflict(
            _("One person may have %(most)s servers of their own.") % {"most": MAX_PERSONAL_SERVERS}
        )
    instance = KlavisInstance(
        workspace=workspace,
        user_id=user_id,
        begun_by_id=actor.user_id,
        server_name=name,
        title="Strata" if is_strata else clean_text(name)[:MAX_NAME_LENGTH],
        kind=InstanceKind.STRATA if is_strata else InstanceKind.SINGLE,
        services=names if is_strata else [],
    )
    _note_where(instance, where)
    try:
        with transaction.atomic():
            instance.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(
            _("Someone else is installing this service right now. Try again in a moment.")
        ) from error
    record_created(instance, actor=actor)
    instance_state.tell_instance(instance)
    return instance


def _note_where(instance: KlavisInstance, where: WhereUsed) -> None:
    instance.is_used_everywhere = where.is_used_everywhere
    instance.bud_ids = [str(one) for one in where.bud_ids]


def _make(instance: KlavisInstance, account: KlavisAccount, actor: Actor) -> KlavisInstance:
    """Have it made at the provider, and keep what came of it."""
    user_id = external_id_of(account, instance)
    try:
        if instance.kind == InstanceKind.STRATA:
            return _make_strata(instance, account, user_id, actor)
        return _make_single(instance, account, user_id, actor)
    except DomainError as error:
        return _failed(instance, error)


def _make_single(
    instance: KlavisInstance, account: KlavisAccount, user_id: str, actor: Actor
) -> KlavisInstance:
    name, is_read_only = instance.server_name, instance.is_read_only

    async def make(api: KlavisApi) -> tuple[str, str, str, Instance]:
        made = await api.create_instance(
            server_name=name, user_id=user_id, is_read_only=is_read_only
        )
        _check_url(made.server_url)
        seen = await api.get_instance(made.instance_id)
        window = made.oauth_url or seen.oauth_url
        return made.instance_id, made.server_url, window, seen

    remote_id, url, window, seen = ask(account, make)
    windows = {name: window} if window and not seen.may_be_used else {}
    kept = _keep(instance, account, remote_id, url, windows, actor=actor)
    if kept is None:
        return instance
    if not seen.may_be_used:
        return kept
    return make_ready(kept, signed_in_by=actor if seen.is_authenticated else None)


def _make_strata(
    instance: KlavisInstance, account: KlavisAccount, user_id: str, actor: Actor
) -> KlavisInstance:
    names = list(instance.services)
    known_id = (
        instance.instance_id.reveal("asking the hosted MCP provider")
        if instance.instance_id
        else ""
    )

    async def make(api: KlavisApi) -> tuple[str, str, dict[str, str]]:
        if known_id:
            try:
                made = await api.get_strata(known_id)
            except NotThere:
                made = await api.create_strata(user_id=user_id, servers=names)
        else:
            made = await api.create_strata(user_id=user_id, servers=names)
        _check_url(made.strata_server_url)
        return made.strata_id or known_id, made.strata_server_url, made.oauth_urls

    remote_id, url, windows = ask(account, make)
    kept = _keep(instance, account, remote_id, url, windows, actor=actor)
    # Each of its services says by itself that it needs a sign-in; the others can be used.
    return make_ready(kept) if kept is not None else instance


def _keep(
    instance: KlavisInstance,
    account: KlavisAccount,
    remote_id: str,
    url: str,
    windows: Mapping[str, str],
    *,
    actor: Actor,
) -> KlavisInstance | None:
    """Keep what was made; None if it was uninstalled meanwhile, in which case it is deleted over there too."""
    with transaction.atomic():
        rows = KlavisInstance.objects.for_workspace(instance.workspace_id)
        row = rows.select_for_update(of=("self",)).filter(pk=instance.pk).first()
        if row is None:
            instance.instance_id = remote_id
            removals.note_instance(instance, account)
            return None
        removals.withdraw(row.workspace_id, {remote_id, external_id_of(account, row)})
        row.instance_id, row.server_url = remote_id, url
        _await_sign_in(row, windows, actor)
        needs_key = "" if windows or row.services else "It needs its API key."
        instance_state.set_state(row, InstanceState.WAITING_FOR_SIGN_IN, needs_key)
    return row


def _await_sign_in(instance: KlavisInstance, windows: Mapping[str, str], actor: Actor) -> None:
    safe = {name: url for name, url in windows.items() if is_web_address(url)}
    if safe:
        record_sign_in(instance, Action.GRANT_REQUESTED, actor, services=safe)
    instance.oauth_urls = safe or None
    instance.polls = 0
    now = timezone.now()
    instance.next_poll_at = now + FIRST_POLL if safe or not instance.services else None
    instance.poll_until = now + timedelta(minutes=SIGN_IN_MINUTES)


def _failed(instance: KlavisInstance, error: DomainError) -> KlavisInstance:
    with transaction.atomic():
        rows = KlavisInstance.objects.for_workspace(instance.workspace_id)
        row = rows.select_for_update(of=("self",)).filter(pk=instance.pk).first()
        if row is None:
            return instance
        instance_state.set_state(row, InstanceState.FAILED, error.message)
    return row


def _add_server(instance: KlavisInstance) -> McpServer:
    """The server that stands for it, on record as made by who began it."""
    rows = McpServer.objects.for_workspace(instance.workspace_id)
    taken = set(rows.filter(owner_id=instance.user_id).values_list("name", flat=True))
    name, number = instance.title, 1
    while name in taken:
        number += 1
        name = f"{instance.title[: MAX_NAME_LENGTH - 4]} {number}"
    server = McpServer(
        is_used_everywhere=instance.is_used_everywhere,
        workspace_id=instance.workspace_id,
        name=name,
        scope=ServerScope.PERSONAL if instance.user_id else ServerScope.WORKSPACE,
        owner_id=instance.user_id,
        hosted_by=HOST,
        transport=STREAMABLE_HTTP,
    )
    server.check_values()
    server.save(force_insert=True)
    record_created(server, actor=instance_state.who_began(instance))
    instance_state.tell_server(server)
    return server


def _give_to_buds(server: McpServer, instance: KlavisInstance) -> str:
    """Put it into the buds that were chosen and are still there; give why that failed. Then none of them has it."""
    there = {str(bud.id) for bud in buds_of(instance.workspace_id)}
    chosen = [UUID(one) for one in instance.bud_ids if one in there]
    if not chosen:
        return ""
    try:
        with transaction.atomic():
            give_to_buds(server, chosen, instance_state.who_began(instance))
    except DomainError as error:
        return _("The buds that were chosen do not use it: %(reason)s") % {"reason": error.message}
    return ""


def _check_url(url: str) -> None:
    """The server's address is one that we would fetch."""
    try:
        outbound.parse_endpoint(url)
    except InvalidEndpoint:
        raise Unreadable(_("Klavis returned an address that is not a web address.")) from None


def is_web_address(url: str) -> bool:
    """Whether a browser may be sent there: plain http or https, and nothing that hides where it goes."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    is_clean = url.isascii() and url.isprintable() and not set(url) & set(" \\\"'<>`{}|^")
    return (
        is_clean
        and len(url) <= MAX_WINDOW_URL
        and parts.scheme in ("http", "https")
        and bool(host)
        and "@" not in parts.netloc
    )


def _remote_id(instance: KlavisInstance) -> str:
    if not instance.instance_id:
        raise Conflict(_("Klavis has not made this server yet."))
    remote_id: str = instance.instance_id.reveal("asking the hosted MCP provider")
    return remote_id


@contextmanager
def _claimed(instance: KlavisInstance, name: str) -> Iterator[None]:
    """Change it at the provider and here, alone. No transaction stays open while the provider is asked.

    Args:
        name: of the field that changes.

    Raises:
        Conflict: somebody else is changing it, or has changed the field since it was read.
    """
    rows = KlavisInstance.objects.for_workspace(instance.workspace_id).filter(pk=instance.pk)
    if not claim_until(rows, seconds=WAIT_SECONDS + _SAVING_SECONDS):
        raise Conflict(_BUSY)
    try:
        if rows.values_list(name, flat=True).first() != getattr(instance, name):
            raise Conflict(_OVERTAKEN)
        yield
    finally:
        rows.update(claimed_until=None)


def _locked(instance: KlavisInstance) -> KlavisInstance:
    rows = KlavisInstance.objects.for_workspace(instance.workspace_id)
    return rows.select_for_update(of=("self",)).select_related("workspace").fetch(instance.pk)
