"""Hosted instances and the account behind them, as the pages show them. Nothing that is secret but a sign-in's address, to whom it is for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID

from django.conf import settings
from django.urls import reverse

from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.klavis.models import InstanceKind, InstanceState, KlavisInstance
from mcp_servers.klavis.rights import may_follow_sign_in, may_manage, may_remove
from mcp_servers.klavis.web_addresses import is_web_address
from workspaces.secrets import SecretUnreadable

if TYPE_CHECKING:
    from workspaces.actors import Actor

_TONES: Final = {
    InstanceState.CREATING.value: "info",
    InstanceState.WAITING_FOR_SIGN_IN.value: "warn",
    InstanceState.READY.value: "ok",
    InstanceState.FAILED.value: "bad",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInWindow:
    """Where somebody signs in to one service."""

    service: str
    url: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceCard:
    """One hosted instance."""

    id: UUID
    title: str
    whose: str
    """Empty for the workspace's."""
    is_own: bool
    state: str
    state_label: str
    tone: str
    reason: str
    is_strata: bool
    services: tuple[str, ...]
    windows: tuple[SignInWindow, ...]
    needs_key: bool
    is_waiting: bool
    """The page asks again by itself."""
    is_read_only: bool
    uses_rest: bool
    server_id: UUID | None
    server_name: str
    can_manage: bool
    can_remove: bool

    @property
    def is_anothers(self) -> bool:
        """Somebody else's: administrators see that it is there, but have no page of it."""
        return bool(self.whose) and not self.is_own


def instance_cards(rows: Iterable[KlavisInstance], *, actor: Actor) -> list[InstanceCard]:
    """A card for each, in the given order."""
    return [instance_card(row, actor=actor) for row in rows]


def instance_card(row: KlavisInstance, *, actor: Actor) -> InstanceCard:
    """One, as this person may see it; their server and user were selected with it."""
    can_follow = may_follow_sign_in(actor, row)
    windows = _windows(row) if can_follow else ()
    is_waiting = row.state == InstanceState.WAITING_FOR_SIGN_IN
    return InstanceCard(
        id=row.pk,
        title=show_hidden(row.title),
        whose=row.user.email if row.user is not None else "",
        is_own=row.user_id is not None and row.user_id == actor.user_id,
        state=row.state,
        state_label=row.get_state_display(),
        tone=_TONES[row.state],
        reason=row.reason,
        is_strata=row.kind == InstanceKind.STRATA,
        services=tuple(show_hidden(str(name)) for name in row.services),
        windows=windows,
        needs_key=is_waiting and can_follow and not windows and row.next_poll_at is not None,
        is_waiting=can_follow
        and (row.next_poll_at is not None or row.state == InstanceState.CREATING),
        is_read_only=row.is_read_only,
        uses_rest=row.uses_rest,
        server_id=row.server_id,
        server_name=row.server.name if row.server is not None else "",
        can_manage=may_manage(actor, row),
        can_remove=may_remove(actor, row),
    )


def _windows(row: KlavisInstance) -> tuple[SignInWindow, ...]:
    if not row.oauth_urls or row.next_poll_at is None:
        return ()
    try:
        urls = row.oauth_urls.reveal_json("sending the person who began it to the sign-in")
    except SecretUnreadable:  # begun anew, there are others
        return ()
    return tuple(
        SignInWindow(
            service=show_hidden(name),
            url=_coming_back(url),
            host=urlsplit(url).hostname or "",
        )
        for name, url in sorted(urls.items())
        if is_web_address(url)
    )


def _coming_back(url: str) -> str:
    """A sign-in's address that ends at a page of ours, which closes the window; other addresses stay as they are.

    Source: the provider's API, `GET /oauth/{service}/authorize`, parameter `redirect_url`.
    """
    parts = urlsplit(url)
    is_known = parts.path.startswith("/oauth/") and parts.path.endswith("/authorize")
    if not is_known or "redirect_url" in parse_qs(parts.query):
        return url
    ours = settings.TRELLIS.public_origins[0] + reverse("mcp_servers:klavis_signed_in")
    added = urlencode({"redirect_url": ours})
    return parts._replace(query=f"{parts.query}&{added}" if parts.query else added).geturl()
