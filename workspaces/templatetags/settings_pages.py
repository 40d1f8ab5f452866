"""The pages of a person's own settings, in groups: the one list that each of them shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django import template
from django.template import RequestContext
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop

from workspaces.middleware import WAITING_KEY
from workspaces.people.entering import enterable_workspaces, workspaces_requiring_two_steps
from workspaces.people.identity_provider import (
    IdentityProvider,
    provider_instead_of_password,
)

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import User, Workspace

register = template.Library()


class _Page(NamedTuple):
    label: str
    route: str
    needs_workspace: bool = True
    also: tuple[str, ...] = ()
    """Other routes that are of this page: with what it refused, its steps, or to somebody who has no password yet."""


class _Link(NamedTuple):
    label: str
    url: str
    is_here: bool


_GROUPS = (
    (
        gettext_noop("You"),
        (
            _Page(
                gettext_noop("Profile"), "workspaces:profile", False, also=("workspaces:picture",)
            ),
            _Page(gettext_noop("Appearance"), "workspaces:appearance", False),
            _Page(gettext_noop("Time and formats"), "workspaces:formats", False),
            _Page(gettext_noop("Shortcuts"), "workspaces:shortcuts", False),
            _Page(gettext_noop("Reminders"), "chat:reminders"),
        ),
    ),
    (
        gettext_noop("Sign-in and access"),
        (
            _Page(gettext_noop("E-mail"), "account_email", False),
            _Page(
                gettext_noop("Password"),
                "account_change_password",
                False,
                also=("account_set_password",),
            ),
            _Page(
                gettext_noop("Two-step verification"),
                "mfa_index",
                False,
                also=(
                    *("mfa_activate_totp", "mfa_deactivate_totp", "mfa_view_recovery_codes"),
                    *("mfa_generate_recovery_codes", "account_reauthenticate"),
                ),
            ),
            _Page(
                gettext_noop("Passkeys"),
                "mfa_list_webauthn",
                False,
                also=("mfa_add_webauthn", "mfa_remove_webauthn"),
            ),
            _Page(gettext_noop("Sessions"), "workspaces:sessions", False),
            _Page(gettext_noop("API tokens"), "workspaces:tokens"),
        ),
    ),
    (
        gettext_noop("Tools and chats"),
        (
            _Page(gettext_noop("Connections"), "mcp_servers:connections"),
            _Page(gettext_noop("Tool permissions"), "chat:permissions"),
            _Page(gettext_noop("Shared chats"), "chat:shared_chats"),
            _Page(gettext_noop("Import chats"), "chat:imports"),
            _Page(gettext_noop("Download your data"), "chat:data_copies"),
        ),
    ),
    (
        gettext_noop("History"),
        (
            _Page(gettext_noop("Usage"), "chat:usage"),
            _Page(gettext_noop("Activity"), "audit:activity"),
        ),
    ),
)


@register.inclusion_tag("workspaces/_settings_list.html", takes_context=True)
def settings_list(context: RequestContext) -> dict[str, Any]:
    """Show the pages of the reader's settings, in groups, and which of them this is.

    Without a workspace, those that are of one are left out.
    """
    request: WorkspaceRequest = context["request"]
    here = request.resolver_match.view_name if request.resolver_match else ""
    groups = []
    for name, pages in _GROUPS:
        links = [
            _Link(gettext(page.label), url, here in (page.route, *page.also))
            for page in pages
            if (url := _address(page, request.workspace))
        ]
        if links:
            groups.append((gettext(name), links))
    current = next((link.label for _, links in groups for link in links if link.is_here), "")
    return {"groups": groups, "current": current}


@register.filter
def only_provider(user: User) -> IdentityProvider | None:
    """The provider with which this person signs in, where no password would let them in."""
    return provider_instead_of_password(user)


@register.filter
def requiring_two_steps(user: User) -> str:
    """The names of the person's workspaces that they can enter only with two-step verification, as one text."""
    return ", ".join(workspaces_requiring_two_steps(user))


@register.simple_tag(takes_context=True)
def waiting_workspace(context: RequestContext) -> Workspace | None:
    """The workspace that kept the reader out until they had two-step verification, once they can enter it."""
    request: WorkspaceRequest = context["request"]
    slug = request.session.get(WAITING_KEY)
    return enterable_workspaces(request.user).filter(slug=slug).first() if slug else None


def _address(page: _Page, workspace: Workspace | None) -> str:
    """Give where a page is; empty: the person is in no workspace that it needs.

    Pages outside this app are of the workspace that their address names.
    """
    if not page.needs_workspace or (workspace and page.route.startswith("workspaces:")):
        return reverse(page.route)
    return reverse(page.route, args=[workspace.slug]) if workspace else ""
