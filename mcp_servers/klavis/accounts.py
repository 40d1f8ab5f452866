"""A workspace's account at the provider: set up, tried, changed and taken away by its administrators."""

from __future__ import annotations

import secrets
from copy import copy
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from mcp_servers.client.canonical import clean_text
from mcp_servers.client.self_description import names_a_secret
from mcp_servers.klavis import instance_state, removals
from mcp_servers.klavis.asking import account_of, ask, note_problem, usable_account
from mcp_servers.klavis.errors import KeyRefused, KlavisError
from mcp_servers.klavis.models import (
    DEFAULT_BASE_URL,
    InstanceState,
    KlavisAccount,
    KlavisDialect,
    KlavisInstance,
)
from mcp_servers.klavis.shapes import KlavisServer
from workspaces import outbound
from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, InvalidEndpoint, InvalidInput, NotFound
from workspaces.redaction import redact_known
from workspaces.roles import Permission, require
from workspaces.secrets import Secret

MAX_KEY_LENGTH: Final = 1000
MAX_OFFERS: Final = 1000
KEY_CHANGED: Final = gettext_noop("The API key has changed. Try again.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountDraft:
    """The account as somebody wants it; None leaves a field as it is."""

    base_url: str | None = None
    api_key: str | None = None
    dialect: KlavisDialect | None = None
    is_active: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountReport:
    """What came of a try."""

    ok: bool
    message: str
    offers: int = 0


def try_new_key(*, workspace_id: UUID, draft: AccountDraft, actor: Actor) -> None:
    """Ask the provider with a key that would take the place of a stored one. Not within a transaction.

    Where the provider cannot be asked, nothing speaks against the key: the old one may have to go at once.

    Raises:
        PermissionDenied: the actor does not manage servers here.
        InvalidInput: the provider refuses it, at `api_key`.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    account, key = account_of(workspace_id), _read_key(draft.api_key)
    if account is None or not account.api_key or key is None:
        return
    if (_read_url(draft.base_url) or account.base_url) != account.base_url:
        return  # the stored key goes with its address
    tried = copy(account)
    tried.pk, tried.api_key = None, Secret(key)  # what comes of it is not noted on the stored one
    try:
        ask(tried, lambda api: api.catalogue())
    except KeyRefused as error:
        message = _(
            "Klavis refused this key, so the stored one stays. Check that you copied all of it."
        )
        raise InvalidInput(fields={"api_key": [message]}) from error
    except KlavisError:
        return


@transaction.atomic
def save_account(*, workspace_id: UUID, draft: AccountDraft, actor: Actor) -> KlavisAccount:
    """Set the account up or change it. At another base URL the stored key and the instances are no longer of use.

    Raises:
        PermissionDenied: the actor does not manage servers here.
        InvalidInput: names the fields that are wrong.
        Conflict: somebody else sets it up at this moment.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    base_url, api_key = _read_url(draft.base_url), _read_key(draft.api_key)
    rows = KlavisAccount.objects.for_workspace(workspace_id).select_for_update()
    account = rows.first()
    if account is None:
        account = KlavisAccount(
            workspace_id=workspace_id,
            base_url=base_url or DEFAULT_BASE_URL,
            user_key=secrets.token_hex(32),
        )
        _apply(account, draft, api_key)
        try:
            with transaction.atomic():
                account.save(force_insert=True)
        except IntegrityError as error:
            raise Conflict(
                _("Someone else is setting up Klavis right now. Try again in a moment.")
            ) from error
        record_created(account, actor=actor)
    else:
        with tracked_change(account, actor=actor):
            if base_url is not None and base_url != account.base_url:
                _leave_behind(account, actor)
                account.base_url, account.api_key = base_url, None
                account.found_dialect, account.catalogue = "", []
                account.catalogue_read_at = None
            _apply(account, draft, api_key)
            account.save()
    if api_key:
        _forget_refusals(workspace_id)
    instance_state.tell_account(account)
    instance_state.refresh_connections(workspace_id)
    return account


def _forget_refusals(workspace_id: UUID) -> None:
    """Say of what the former key could not do that it can be tried again."""
    rows = KlavisInstance.objects.for_workspace(workspace_id).select_for_update()
    refused = rows.filter(state=InstanceState.FAILED, reason=KeyRefused().message)
    for instance in refused:
        instance_state.set_state(instance, InstanceState.FAILED, KEY_CHANGED)


def try_account(*, workspace_id: UUID, actor: Actor) -> AccountReport:
    """Ask the provider for its catalogue, and keep it.

    Raises:
        PermissionDenied: the actor does not manage servers here.
        NotSetUp: there is nothing to try.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    account = usable_account(workspace_id)
    try:
        count = read_catalogue(account)
    except KlavisError as error:
        note_problem(account, error.message)
        instance_state.tell_account(account)
        return AccountReport(ok=False, message=error.message)
    return AccountReport(ok=True, message=f"Klavis offers {count} services.", offers=count)


def read_catalogue(account: KlavisAccount) -> int:
    """Keep what the provider offers now; how much that is.

    Raises:
        KlavisError: it could not be read; what was read before stays.
    """
    offers = ask(account, lambda api: api.catalogue())
    entries = [
        _entry(offer, account.workspace_id)
        for offer in offers[:MAX_OFFERS]
        if not names_a_secret(offer.name, account.workspace_id)
    ]
    now = timezone.now()
    KlavisAccount.objects.for_workspace(account.workspace_id).filter(pk=account.pk).update(
        catalogue=entries, catalogue_read_at=now, checked_at=now, problem=""
    )
    instance_state.tell_account(account)
    return len(entries)


@transaction.atomic
def remove_account(*, workspace_id: UUID, actor: Actor) -> None:
    """Take the account away, with every server that came from it. What is kept at the provider is deleted there.

    Raises:
        PermissionDenied: the actor does not manage servers here.
        NotFound: there is none.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    account = account_of(workspace_id)
    if account is None:
        raise NotFound(_("Klavis is not set up in this workspace."))
    users: set[UUID | None] = set()
    for instance in KlavisInstance.objects.for_workspace(workspace_id):
        users.add(instance.user_id)
        instance_state.let_go(instance, actor=actor)
    for user_id in users - {None}:
        removals.note_user(account, user_id, "An account")
    record_deleted(account, actor=actor)
    account.delete()
    instance_state.tell_account(account)


def _leave_behind(account: KlavisAccount, actor: Actor) -> None:
    """The instances are at the old base URL: have them deleted there, with the old key, and offer to make them anew."""
    users: set[UUID | None] = set()
    for instance in KlavisInstance.objects.for_workspace(account.workspace_id):
        removals.note_instance(instance, account)
        users.add(instance.user_id)
        instance.instance_id = instance.server_url = instance.oauth_urls = None
        instance.next_poll_at = None
        instance_state.set_state(
            instance,
            InstanceState.FAILED,
            "The address of Klavis changed in this workspace. Install it again.",
        )
    for user_id in users:
        removals.note_user(account, user_id, "An account")


def _apply(account: KlavisAccount, draft: AccountDraft, api_key: str | None) -> None:
    if api_key:
        account.api_key, account.problem = api_key, ""
    elif not account.api_key and account.base_url == DEFAULT_BASE_URL:
        # Only for the provider itself: whoever names another address must not be sent the platform's key.
        account.api_key = platform_key() or None
        account.problem = ""
    if draft.dialect is not None:
        account.dialect = draft.dialect
        account.found_dialect = ""
    if draft.is_active is not None:
        account.is_active = draft.is_active


def platform_key() -> str:
    """The key that the platform's owner set for every workspace; empty if there is none."""
    key = settings.TRELLIS.klavis_api_key
    return key.get_secret_value() if key is not None else ""


def _read_url(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        endpoint = outbound.enter_endpoint(text.strip())
    except InvalidEndpoint as error:
        raise InvalidInput(fields={"base_url": [error.message]}) from error
    if "?" in endpoint.target:
        raise InvalidInput(fields={"base_url": [_("Leave out the query. A base URL has none.")]})
    return str(endpoint).rstrip("/")


def _read_key(text: str | None) -> str | None:
    key = (text or "").strip()
    if not key:
        return None
    if len(key) > MAX_KEY_LENGTH or not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidInput(fields={"api_key": [_("This is not a valid API key.")]})
    return key


def _entry(offer: KlavisServer, workspace_id: UUID) -> dict[str, Any]:
    return {
        "name": clean_text(offer.name)[:200],
        "description": clean_text(redact_known(offer.description, workspace_id=workspace_id))[:500],
        "needs_sign_in": offer.auth_needed,
        "tools": len(offer.tools),
    }
