"""The page that the chat application mounts in."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from csp.decorators import csp_replace, csp_update
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.messages import get_messages
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_safe
from typing_extensions import TypedDict

from chat.models import Conversation
from chat.providers.choosing import platform_provider
from chat.services.conversation_sweeps import temporary_hours
from chat.services.demo_buds import provider_in_place_of_demo
from chat.services.pending_decisions import waiting_for
from chat.services.turns import LONGEST_MESSAGE
from chat.sockets.frames import LARGEST_FRAME_BYTES
from mcp_servers.registry.icons import icon_addresses
from workspaces.database.prepared import PreparedRows
from workspaces.errors import NotFound
from workspaces.models import User
from workspaces.people.access_requests import may_decide
from workspaces.people.pictures import own_address
from workspaces.roles import Permission, has_permission
from workspaces.workspace_choices import choices_of

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace


PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(self), payment=(), usb=()"
"""People may dictate; the browser asks them first."""
DIAGRAM_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


class BootUser(TypedDict):
    id: str
    email: str
    name: str
    picture: str
    """Its address; empty: none."""


class BootWorkspace(TypedDict):
    id: str
    slug: str
    name: str
    role: str
    is_auditor: bool
    can_manage_buds: bool
    decides_requests: bool


class WorkspaceLink(TypedDict):
    slug: str
    name: str


class BootUrls(TypedDict):
    """Null: not for this person."""

    workspaces: str | None
    """All of them, if the menu does not hold them."""
    servers: str
    server_icons: str
    add_server: str | None
    connections: str
    audit: str | None
    notices: str
    requests: str
    admin: str | None
    providers: str | None
    """Where whoever manages models connects one."""
    own_model: str | None
    """Where they let the buds of the demo model use the one that is connected; null: there is none."""
    buds: str
    reminders: str
    permissions: str
    call_rules: str | None
    shared_chats: str
    settings: str
    password: str
    tokens: str
    shortcuts: str
    activity: str
    platform_audit: str | None
    confirm_address: str | None
    logout: str
    api: str
    socket: str


class BootMessage(TypedDict):
    """What became of something on a page that led here."""

    tone: Literal["ok", "bad", "info"]
    text: str


class Boot(TypedDict):
    """What the application knows before its first request."""

    user: BootUser
    workspace: BootWorkspace
    workspaces: list[WorkspaceLink]
    conversation_id: str | None
    is_kept: bool
    """The page was kept by the browser: it has no token, and is loaded anew when the server answers."""
    urls: BootUrls
    remembers_permissions: bool
    allows_public_links: bool
    """Chats can be shared with anyone who has the link."""
    csrf_token: str
    demo_model: bool
    max_file_bytes: int
    max_message_characters: int
    max_frame_bytes: int
    """Of a message on the socket; the server hangs up on whoever sends a larger one."""
    server_icons: dict[str, str]
    """Addresses of the icons that servers gave of themselves, by server."""
    deleted_days: int
    """How long a deleted chat can be brought back; 0: not at all."""
    temporary_hours: int
    """After its last activity a temporary chat is erased."""
    messages: list[BootMessage]


# Previews of files: frames of our own, which close themselves off.
@csp_update({"frame-src": ["'self'"]})  # type: ignore[arg-type]  # knows no arguments of the address
@require_GET
@login_required
def app(
    request: WorkspaceRequest, workspace_slug: str, conversation_id: UUID | None = None
) -> HttpResponse:
    """A workspace's home, or one conversation in it."""
    workspace = request.workspace
    if workspace is None:  # the middleware has answered already
        raise NotFound
    if request.actor.role is None:
        # The platform's owner may enter every admin, but talks only where they are a member.
        return redirect("workspaces:open_admin", workspace_slug=workspace.slug)
    found = (
        _OWN.first(workspace.pk, request.user.pk, conversation_id)
        if conversation_id is not None
        else None
    )
    # Of one that is not there the chat itself says so, with all the others at hand.
    is_missing = conversation_id is not None and found is None
    is_test = found is not None and found.bud.is_draft
    response = render(
        request,
        "chat/app.html",
        {
            "boot": {**_boot(request, conversation_id), "messages": _messages(request)},
            "title": str(found) if found else "",
            "is_test": is_test,
        },
        status=404 if is_missing else 200,
    )
    response["Permissions-Policy"] = PERMISSIONS_POLICY
    if is_test:  # it stands beside the editor of its bud
        response["X-Frame-Options"] = "SAMEORIGIN"
        csp_replace({"frame-ancestors": ["'self'"]})(lambda _: response)(request)
    return response


@csp_update({"frame-src": ["'self'"]})  # type: ignore[arg-type]  # knows no arguments of the address
@require_safe
@login_required
def shell(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The chat's page for the browser to keep: for this person and workspace, without a conversation and a token."""
    if request.workspace is None or request.actor.role is None:
        raise NotFound
    kept = {"workspaces": [], "csrf_token": "", "is_kept": True}
    response = render(request, "chat/app.html", {"boot": {**_boot(request, None), **kept}})
    response["Permissions-Policy"] = PERMISSIONS_POLICY
    response["Cache-Control"] = "private, no-store"
    return response


@require_safe
@login_required
def waiting(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """How much waits for the person, for the bar of pages outside the chat; nothing where nothing does."""
    workspace = request.workspace
    if workspace is None:  # the middleware has answered already
        raise NotFound
    is_member = request.actor.role is not None
    things = waiting_for(workspace=workspace, person=request.user) if is_member else []
    return render(request, "chat/_waiting_button.html", {"count": len(things)})


@require_safe
@login_required
def diagrams(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The frame in which Mermaid draws."""
    return draw_frame(request)


def draw_frame(request: HttpRequest) -> HttpResponse:
    """A page that draws diagrams: without our origin, without a network, without the page's style rules."""
    nonce = secrets.token_urlsafe(16)
    response = render(request, "chat/diagrams.html", {"nonce": nonce})
    response["Content-Security-Policy"] = DIAGRAM_POLICY.format(nonce=nonce)
    response["X-Frame-Options"] = "SAMEORIGIN"
    response["Cache-Control"] = "private, no-store"
    return response


def _own(workspace_id: UUID, user_id: UUID, conversation_id: UUID) -> Any:
    rows = Conversation.objects.for_workspace(workspace_id).visible_to(User(pk=user_id))
    return rows.select_related("bud").filter(pk=conversation_id)


_OWN = PreparedRows[Conversation](_own, UUID, UUID, UUID)


def _messages(request: HttpRequest) -> list[BootMessage]:
    """What is to be told once; the page shows it, so that it stands on no later one."""
    tones: dict[str, Literal["ok", "bad"]] = {"success": "ok", "error": "bad", "warning": "bad"}
    return [
        {"tone": tones.get(one.level_tag, "info"), "text": str(one)}
        for one in get_messages(request)
    ]


def _own_model_url(workspace: Workspace) -> str | None:
    """Where a model of the workspace is given to the buds that the demo model answers for; None: it has none, or no need."""
    provider = provider_in_place_of_demo(workspace.pk)
    if provider is None:
        return None
    return f"{reverse('chat:provider', args=[workspace.slug, provider.pk])}#demo-buds"


def _add_server_url(workspace: Workspace, actor: Actor) -> str | None:
    """Where this person adds a server: the workspace's, or one of their own; None: nowhere."""
    if has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk):
        return reverse("mcp_servers:add", args=[workspace.slug])
    may_chat = has_permission(actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    if may_chat and workspace.allows_personal_servers:
        return reverse("mcp_servers:add_personal", args=[workspace.slug])
    return None


def _boot(request: WorkspaceRequest, conversation_id: UUID | None) -> Boot:
    workspace, user, actor = request.workspace, request.user, request.actor
    assert workspace is not None
    choices = choices_of(user, workspace)
    slug = {"workspace_slug": workspace.slug}
    sees_audit = has_permission(actor, Permission.VIEW_AUDIT, workspace_id=workspace.pk)
    manages_buds = has_permission(actor, Permission.MANAGE_BUDS, workspace_id=workspace.pk)
    return {
        "user": {
            "id": str(user.pk),
            "email": user.email,
            "name": user.display_name,
            "picture": own_address(user),
        },
        "workspace": {
            "id": str(workspace.pk),
            "slug": workspace.slug,
            "name": workspace.name,
            "role": actor.role.value if actor.role else "member",
            "is_auditor": actor.is_auditor,
            "can_manage_buds": manages_buds,
            "decides_requests": may_decide(actor, workspace),
        },
        "workspaces": [{"slug": other.slug, "name": other.name} for other in choices.shown],
        "conversation_id": str(conversation_id) if conversation_id else None,
        "is_kept": False,
        "urls": {
            "workspaces": reverse("workspaces:all") if choices.has_more else None,
            "servers": reverse("mcp_servers:servers", kwargs=slug),
            "server_icons": reverse("mcp_servers:icons", kwargs=slug),
            "add_server": _add_server_url(workspace, actor),
            "connections": reverse("mcp_servers:connections", kwargs=slug),
            "audit": reverse("audit:entries", kwargs=slug) if sees_audit else None,
            "notices": reverse("audit:notices", kwargs=slug),
            "requests": reverse("workspaces:requests", kwargs=slug),
            "admin": reverse("admin:index") if user.is_staff else None,
            "providers": (
                reverse("admin:chat_modelprovider_changelist")
                if user.is_staff and manages_buds
                else None
            ),
            "own_model": _own_model_url(workspace) if manages_buds else None,
            "buds": reverse("chat:buds", kwargs=slug),
            "reminders": reverse("chat:reminders", kwargs=slug),
            "permissions": reverse("chat:permissions", kwargs=slug),
            "call_rules": (
                reverse("mcp_servers:call_rules", kwargs=slug)
                if has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
                else None
            ),
            "shared_chats": reverse("chat:shared_chats", kwargs=slug),
            "settings": reverse("workspaces:profile"),
            "password": reverse("account_change_password"),
            "tokens": reverse("workspaces:tokens"),
            "shortcuts": reverse("workspaces:shortcuts"),
            "activity": reverse("audit:activity", kwargs=slug),
            "platform_audit": reverse("audit:platform") if user.is_superuser else None,
            "confirm_address": None if user.is_address_confirmed else reverse("account_email"),
            "logout": reverse("account_logout"),
            "api": "/api/",
            "socket": f"/ws/w/{workspace.slug}/",
        },
        "remembers_permissions": workspace.remembers_permissions,
        "allows_public_links": workspace.allows_public_links,
        "csrf_token": get_token(request),
        "demo_model": platform_provider().is_demo,
        "max_file_bytes": settings.TRELLIS.artifact_max_bytes,
        "max_message_characters": LONGEST_MESSAGE,
        "max_frame_bytes": LARGEST_FRAME_BYTES,
        "server_icons": icon_addresses(workspace, user),
        "deleted_days": settings.TRELLIS.deleted_conversation_days,
        "temporary_hours": temporary_hours(),
        "messages": [],
    }
