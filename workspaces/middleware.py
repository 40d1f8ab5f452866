"""Each request knows its workspace, its actor and its own id.

The workspace comes from the address (`/w/<slug>/…`), from an API token, from the header
`X-Workspace`, or from the session, in this order; and only ever one that the person may enter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast
from uuid import UUID

import structlog
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from uuid_utils.compat import uuid7

from workspaces.actors import Actor, ActorKind, Role, Source
from workspaces.database.prepared import PreparedRows
from workspaces.database.row_security import (
    EVERYTHING,
    NOTHING,
    is_on,
    reach_of,
    reaching,
    set_reach,
)
from workspaces.database.streamed_reach import keep_reach
from workspaces.models import Membership, User, Workspace
from workspaces.people.browser_sessions import note_visit
from workspaces.people.entering import (
    ShutOut,
    ShutOutReason,
    enterable_workspaces,
    find_shut_out,
    lacks_second_step,
)
from workspaces.words.formats import time_zone_of, written_for

if TYPE_CHECKING:

    class WorkspaceRequest(HttpRequest):
        """A request as this middleware leaves it."""

        workspace: Workspace | None
        actor: Actor
        request_id: str
        user: User
        """Of views that let nobody else in; others ask `signed_in_user`."""


SESSION_KEY = "workspace_id"
WAITING_KEY: Final = "waiting_workspace"
"""Of the session: the workspace that waits for the person's two-step verification. Its pages lead there at the end."""
_HEADER = "X-Workspace"
_ADDRESS = re.compile(r"/w/([-\w]+)/", re.ASCII)
_IN_ONE = re.compile(r"/(w|api)/")
"""Addresses of pages that show rows of one workspace; the others may show those of all workspaces of a person."""


class MemberRole(NamedTuple):
    """What a person's membership says, where it was read beside other rows."""

    role: str | None
    """None: they are no member."""
    is_auditor: bool


class Credential(Protocol):
    """What a program acts with for its person: an API token, or a sign-in that the person has allowed."""

    @property
    def pk(self) -> Any: ...
    @property
    def user(self) -> Any: ...
    @property
    def scopes(self) -> Any: ...


class EnteredWorkspace(NamedTuple):
    """Where a request goes, and as what."""

    workspace: Workspace | None
    role: MemberRole | None
    """None: it was not read beside it."""


_NOWHERE = EnteredWorkspace(None, None)


class WorkspaceMiddleware:
    """Sets `request.workspace`, `request.actor` and `request.request_id`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        bound = cast("WorkspaceRequest", request)
        # Given by the request log, which has thrown away what the caller may have sent.
        bound.request_id = request.headers.get("X-Request-ID") or str(uuid7())
        with reaching(NOTHING), _written_for(bound):
            workspace, role = _entered_at(bound)
            bind_workspace(bound, workspace, known=role)
            response = self.get_response(request)
            if response.streaming and is_on():
                keep_reach(response)
        response["X-Request-ID"] = bound.request_id
        return response

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponse],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> HttpResponse | None:
        """Pages under `/w/<workspace_slug>/` are of that workspace, or not found; members are told what keeps them out."""
        slug = kwargs.get("workspace_slug")
        user = signed_in_user(request)
        if user is None:
            return None
        workspace = cast("WorkspaceRequest", request).workspace
        if slug is None:
            is_shut_out = workspace is None and not user.is_superuser and _is_of_admin(request)
            shut_out = find_shut_out(user, slug=None) if is_shut_out else None
            return tell_shut_out(request, shut_out) if shut_out is not None else None
        if workspace is None or workspace.slug != slug:
            shut_out = find_shut_out(user, slug=str(slug))
            if shut_out is None:
                raise Http404
            return tell_shut_out(request, shut_out)
        is_new = request.session.get(SESSION_KEY) != str(workspace.pk)
        if is_new:
            request.session[SESSION_KEY] = str(workspace.pk)
        request.session.pop(WAITING_KEY, None)
        if user.is_superuser or cast("WorkspaceRequest", request).actor.role is not None:
            note_visit(request, user, workspace, is_new=is_new)
        return None


def _is_of_admin(request: HttpRequest) -> bool:
    return request.resolver_match is not None and request.resolver_match.app_name == "admin"


def tell_shut_out(request: HttpRequest, shut_out: ShutOut) -> HttpResponse:
    """The page for somebody before a workspace of theirs that they may not enter now."""
    if shut_out.reason is ShutOutReason.NO_SECOND_STEP:
        request.session[WAITING_KEY] = shut_out.workspace.slug
    user = signed_in_user(request)
    has_others = user is not None and enterable_workspaces(user).exists()
    context = {"one": shut_out, "has_others": has_others}
    return render(request, "workspaces/shut_out.html", context, status=403)


@contextmanager
def _written_for(request: WorkspaceRequest) -> Iterator[None]:
    """Write moments and numbers as the person chose; the admin takes what they type in their time zone, too."""
    user, zone = signed_in_user(request), None
    if user is not None and user.time_zone and _source_of(request.path) is Source.ADMIN:
        zone = time_zone_of(user.time_zone)
    with written_for(user), timezone.override(zone):
        yield


def _entered_at(request: WorkspaceRequest) -> EnteredWorkspace:
    """The workspace that the address names, else the person's own choice: also where a page says "not found"."""
    named = _ADDRESS.match(request.path_info)
    entered = _enter(request, slug=named[1]) if named else _NOWHERE
    return entered if entered.workspace is not None else _enter(request, slug=None)


def find_workspace(request: WorkspaceRequest, *, slug: str | None) -> Workspace | None:
    """The workspace that this request is for, among those the person may enter."""
    return _enter(request, slug=slug).workspace


def _enter(request: WorkspaceRequest, *, slug: str | None) -> EnteredWorkspace:
    user = signed_in_user(request)
    if user is None:
        return _NOWHERE
    slug = slug or request.headers.get(_HEADER)
    if user.is_superuser:
        return EnteredWorkspace(_any_workspace(request, user, slug), None)
    if slug is not None:
        return _as_entered(_JOINED_BY_SLUG.first(user.pk, slug), user)
    stored = _stored_choice(request)
    found = _JOINED_BY_ID.first(user.pk, stored) if stored is not None else None
    entered = _as_entered(found, user)
    return entered if entered.workspace is not None else _first_open(user)


def _first_open(user: User) -> EnteredWorkspace:
    """The first by name of those that the person is a member of and may enter."""
    first = _FIRST_JOINED.first(user.pk)
    if first is None or not lacks_second_step(user, first.workspace):
        return _as_entered(first, user)
    rows = (row for row in _JOINED.all(user.pk) if not lacks_second_step(user, row.workspace))
    return _as_entered(next(rows, None), user)


def _any_workspace(request: WorkspaceRequest, user: User, slug: str | None) -> Workspace | None:
    """For superusers, who are members of few. Without a choice, one that is theirs comes first."""
    enterable = enterable_workspaces(user)
    if slug is not None:
        return enterable.filter(slug=slug).first()
    stored = _stored_choice(request)
    found = enterable.filter(pk=stored).first() if stored is not None else None
    return found or _first_open(user).workspace or enterable.first()


def _stored_choice(request: WorkspaceRequest) -> UUID | None:
    stored = request.session.get(SESSION_KEY) if hasattr(request, "session") else None
    return UUID(stored) if stored is not None else None


def _as_entered(membership: Membership | None, user: User) -> EnteredWorkspace:
    if membership is None or lacks_second_step(user, membership.workspace):
        return _NOWHERE
    role = MemberRole(membership.role, membership.is_auditor)
    return EnteredWorkspace(membership.workspace, role)


def signed_in_user(request: HttpRequest) -> User | None:
    """The person who is signed in, or None."""
    return request.user if isinstance(request.user, User) else None


def bind_workspace(
    request: WorkspaceRequest,
    workspace: Workspace | None,
    *,
    token: Credential | None = None,
    known: MemberRole | None = None,
) -> None:
    """Set the request's workspace, and the actor that follows from it.

    Args:
        known: what the person's membership says, if it has just been read.
    """
    request.workspace = workspace
    set_reach(_reach_at(request, workspace, token))
    if workspace is not None:
        structlog.contextvars.bind_contextvars(workspace_id=str(workspace.pk))
    request.actor = actor_for(
        signed_in_user(request),
        workspace,
        source=_source_of(request.path),
        ip_address=client_address(request),
        request_id=request.request_id,
        token=token,
        known=known,
    )


def bind_platform(request: WorkspaceRequest) -> None:
    """Have a request of the platform's owner speak for the whole installation, and for no workspace.

    Whoever calls this has made sure that it is theirs, and that a token is for the platform.
    """
    request.workspace = None
    set_reach(EVERYTHING)
    structlog.contextvars.unbind_contextvars("workspace_id")
    request.actor = replace(
        request.actor, workspace_id=None, role=None, is_auditor=False, is_superuser=True
    )


def _reach_at(
    request: WorkspaceRequest, workspace: Workspace | None, token: Credential | None
) -> str:
    """How far a request reaches into the database: pages of one workspace no further than that."""
    user = token.user if token is not None else signed_in_user(request)
    if user is None or not is_on():
        return NOTHING
    if workspace is not None and (token is not None or _IN_ONE.match(request.path_info)):
        return reach_of([workspace.pk], person=user.pk)
    if user.is_superuser:
        return EVERYTHING
    joined = _JOINED.all(user.pk)
    entered = [row.workspace_id for row in joined if not lacks_second_step(user, row.workspace)]
    return reach_of(entered, person=user.pk)


def actor_for(
    user: User | None,
    workspace: Workspace | None,
    *,
    source: Source,
    ip_address: str | None = None,
    request_id: str = "",
    token: Credential | None = None,
    known: MemberRole | None = None,
) -> Actor:
    """Who a person is in a workspace, with today's role.

    Args:
        known: their membership, if it has just been read.
    """
    if user is None:
        return Actor.anonymous(source=source, ip_address=ip_address, request_id=request_id)
    if known is None and workspace is not None:
        known = _read_role(workspace, user)
    role, is_auditor = known or (None, False)
    return Actor(
        kind=ActorKind.USER,
        label=user.email,
        source=source,
        user_id=user.pk,
        workspace_id=workspace.pk if workspace is not None else None,
        role=Role(role) if role else None,
        is_auditor=is_auditor,
        is_superuser=user.is_superuser and token is None,
        ip_address=ip_address,
        request_id=request_id,
        on_behalf_of=user.email if source is Source.TASK else "",
        sign_in="token" if token else _SIGN_IN.get(source, "session"),
        is_address_confirmed=user.is_address_confirmed,
        token_id=token.pk if token else None,
        scopes=frozenset(token.scopes) if token else None,
    )


# Where nobody is present to sign in; everywhere else a person came with a session.
_SIGN_IN = {Source.TASK: "", Source.COMMAND: "command"}


def _read_role(workspace: Workspace, user: User) -> MemberRole | None:
    row = _MEMBERSHIP.first(workspace.pk, user.pk)
    return MemberRole(row.role, row.is_auditor) if row is not None else None


def _membership(workspace_id: UUID, user_id: UUID) -> Any:
    return Membership.objects.for_workspace(workspace_id).filter(user_id=user_id).order_by()


_MEMBERSHIP = PreparedRows[Membership](_membership, UUID, UUID)


def _of_person(user_id: UUID) -> Any:
    """Memberships of active workspaces, as `WorkspaceQuery.joined_by` has it; with the workspace."""
    rows = Membership.objects.across_workspaces().filter(user_id=user_id, workspace__is_active=True)
    return rows.select_related("workspace").order_by("workspace__name", "workspace_id")


_JOINED = PreparedRows[Membership](_of_person, UUID)
_FIRST_JOINED = PreparedRows[Membership](lambda user_id: _of_person(user_id)[:1], UUID)
_JOINED_BY_SLUG = PreparedRows[Membership](
    lambda user_id, slug: _of_person(user_id).filter(workspace__slug=slug), UUID, str
)
_JOINED_BY_ID = PreparedRows[Membership](
    lambda user_id, workspace_id: _of_person(user_id).filter(workspace_id=workspace_id), UUID, UUID
)


def client_address(request: HttpRequest) -> str | None:
    """The caller's address, as `config.serving.edge` found it behind configured proxies."""
    return request.META.get("REMOTE_ADDR") or None


def _source_of(path: str) -> Source:
    if path.startswith("/api/"):
        return Source.API
    if path.startswith("/admin/"):
        return Source.ADMIN
    return Source.WEB
