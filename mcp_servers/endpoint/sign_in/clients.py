"""Which programs may ask people to sign in: those that registered, and those with a document of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.services import EntryDraft, record
from mcp_servers.client.hidden_text import strip_hidden
from mcp_servers.endpoint.sign_in.redirects import MOST_REDIRECTS, host_of, is_acceptable
from mcp_servers.models import ClientSignIn, KnownClient, KnownVia
from mcp_servers.models.client_sign_ins import LONGEST_CLIENT_ID, LONGEST_CLIENT_NAME
from mcp_servers.oauth.reasons import SignInFailed
from mcp_servers.oauth.requests import check_url, get_json
from workspaces.database import database_now
from workspaces.database.row_security import everywhere
from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from workspaces.actors import Actor

DOCUMENT_AGE: Final = timedelta(hours=1)
"""An older document is read again before a person is asked."""
MOST_UNUSED: Final = 1000
"""Registered clients that nobody has allowed anything; a further one takes the place of the oldest."""
UNUSED_FOR: Final = timedelta(days=1)
"""After that, a client that nobody allowed anything is forgotten."""
IDLE_FOR: Final = timedelta(days=90)
"""After that, a client without a sign-in is forgotten."""
MOST_DOCUMENT_BYTES: Final = 64 * 1024


def find(client_id: str) -> KnownClient | None:
    """The client that calls itself so."""
    if not 0 < len(client_id) <= LONGEST_CLIENT_ID or "\x00" in client_id:
        return None
    with everywhere():
        return KnownClient.objects.filter(client_id=client_id).first()


def is_document(client_id: str) -> bool:
    """Whether a client's id is the address of a document that describes it."""
    return client_id.startswith(("https://", "http://"))


@transaction.atomic
def register(
    *, client_id: str, name: str, redirect_uris: Iterable[str], actor: Actor
) -> KnownClient:
    """Note a program that registers itself. Anybody may, so it is told nothing and given nothing.

    Raises:
        InvalidInput: an address for codes is not acceptable.
    """
    addresses = _checked(redirect_uris)
    with everywhere():
        waiting = KnownClient.objects.filter(via=KnownVia.REGISTRATION, used_at=None)
        # Were further ones refused, one stranger could keep everybody's out, at a leisurely pace.
        oldest = waiting.order_by("-read_at", "-pk").values_list("pk", flat=True)[MOST_UNUSED - 1 :]
        waiting.filter(pk__in=list(oldest)).delete()
        client = KnownClient.objects.create(
            client_id=client_id,
            via=KnownVia.REGISTRATION,
            name=shown_name(name, addresses),
            redirect_uris=addresses,
            read_at=database_now(),
        )
    _tell(client, actor)
    return client


def read_document(client_id: str, *, actor: Actor) -> KnownClient | None:
    """The client whose id is the address of a document, read anew if it is old. Waits for its host, some seconds.

    Raises:
        InvalidInput: the document cannot be read, or does not describe this client.
    """
    from mcp_servers.client.connections.runtime import run_sync

    if not settings.TRELLIS.mcp_client_documents:
        raise InvalidInput(
            _(
                "Trellis reads no documents of clients here, so this client has to register. Remove this server from it,"
                " add it again, and sign in."
            )
        )
    known = find(client_id)
    if known is not None and database_now() - known.read_at < DOCUMENT_AGE:
        return known
    check_address(client_id)
    try:
        answer = run_sync(get_json(client_id))
    except SignInFailed as error:
        raise InvalidInput(
            _(
                "Trellis cannot reach %(host)s, where this client describes itself. If the network does not lead there,"
                " the platform's owner can set TRELLIS_MCP_CLIENT_DOCUMENTS=0. Clients then need no document. A token"
                " works without one, too."
            )
            % {"host": host_of(client_id)}
        ) from error
    if answer.status != 200 or len(answer.body) > MOST_DOCUMENT_BYTES:
        raise InvalidInput(_("The client's document cannot be read."))
    name, addresses = _read(client_id, answer.body)
    with everywhere():
        client, is_new = KnownClient.objects.update_or_create(
            client_id=client_id,
            defaults={
                "via": KnownVia.DOCUMENT,
                "name": name,
                "redirect_uris": addresses,
                "read_at": database_now(),
            },
        )
    if is_new:
        _tell(client, actor)
    return client


def check_address(client_id: str) -> None:
    """Make sure that an id may be the address of a document.

    Raises:
        InvalidInput: it is not secure, or not of the form that the specification asks for.
    """
    try:
        check_url(client_id)
    except SignInFailed as error:
        raise InvalidInput(_("The client's id is not a secure address.")) from error
    parts = urlsplit(client_id)
    is_plain = not parts.fragment and not parts.query and "@" not in parts.netloc
    has_dots = any(part in (".", "..") for part in parts.path.split("/"))
    if len(client_id) > LONGEST_CLIENT_ID or not is_plain or has_dots or parts.path in ("", "/"):
        raise InvalidInput(_("The client's id is not the address of a document."))


def shown_name(name: str, addresses: Iterable[str]) -> str:
    """A client's name as people read it; one without a name is called by where it is."""
    plain = " ".join(strip_hidden(name).split())[:LONGEST_CLIENT_NAME].strip()
    return plain or host_of(next(iter(addresses)))[:LONGEST_CLIENT_NAME]


def forget_unused() -> int:
    """Delete clients that nobody lets in any more; gives how many."""
    now = database_now()
    signed_in = ClientSignIn.objects.across_workspaces().filter(client_id=OuterRef("pk"))
    old = Q(used_at=None, read_at__lt=now - UNUSED_FOR) | Q(used_at__lt=now - IDLE_FOR)
    with everywhere():
        return int(KnownClient.objects.filter(old).exclude(Exists(signed_in)).delete()[0])


def _read(client_id: str, body: bytes) -> tuple[str, list[str]]:
    """The name and the addresses in a document."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(_("The client's document cannot be read.")) from error
    if not isinstance(document, Mapping) or document.get("client_id") != client_id:
        raise InvalidInput(_("The client's document describes another client."))
    # Source: OAuth Client ID Metadata Document, section 4.1: no secret that two parties would share.
    if "client_secret" in document or document.get("token_endpoint_auth_method", "none") != "none":
        raise InvalidInput(
            _("The client wants to prove itself in a way that Trellis does not know.")
        )
    addresses = document.get("redirect_uris")
    if not isinstance(addresses, list):
        raise InvalidInput(_("The client's document names no address to return to."))
    checked = _checked(addresses)
    name = document.get("client_name")
    return shown_name(name if isinstance(name, str) else "", checked), checked


def _checked(addresses: Iterable[Any]) -> list[str]:
    found = list(addresses)
    if not 0 < len(found) <= MOST_REDIRECTS or not all(
        isinstance(one, str) and is_acceptable(one) for one in found
    ):
        raise InvalidInput(
            _(
                "Name 1 to %(most)s addresses to return to: https, this computer, or a scheme of your own."
            )
            % {"most": MOST_REDIRECTS}
        )
    return found


def _tell(client: KnownClient, actor: Actor) -> None:
    record(
        EntryDraft(
            action=Action.CLIENT_REGISTERED,
            actor=actor,
            workspace_id=None,
            details={
                "name": client.name,
                "client_id": client.client_id,
                "via": client.via,
                "return_addresses": client.redirect_uris,
            },
        )
    )
