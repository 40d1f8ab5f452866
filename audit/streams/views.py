"""The pages of streams, of a workspace and of the whole platform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from audit.models import AuditStream, StreamState
from audit.streams import services
from audit.streams.forms import StreamForm
from audit.streams.reading import Lag, lag_of
from audit.streams.services import StreamStart, streams_of
from audit.views.header import header_of
from workspaces.errors import NotFound
from workspaces.pages.parts import workspace_of
from workspaces.pages.seen_values import hold, saves_one_at_a_time
from workspaces.restore_detection import is_unconfirmed
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamScope:
    """Whose streams a page is about."""

    workspace_id: UUID | None
    url: str
    can_manage: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow:
    """A stream as the page shows it."""

    stream: AuditStream
    state: StreamState
    lag: Lag
    tone: str
    word: str
    oldest_at: datetime
    """Of the entries that wait."""
    is_due: bool
    """The next attempt is about to be made."""
    is_held: bool
    waits: bool
    """After a failure, for the next attempt."""


@require_safe
@login_required
def streams(request: WorkspaceRequest, workspace_slug: str | None = None) -> HttpResponse:
    """All streams with how each goes; an htmx request gets the list alone."""
    scope = _scope(request, workspace_slug)
    if getattr(request, "htmx", False):
        return render(request, "audit/streams/_list.html", _context(scope))
    return render(request, "audit/streams/list.html", _page(request, scope))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def add(request: WorkspaceRequest, kind: str, workspace_slug: str | None = None) -> HttpResponse:
    """Make a stream of that kind. Whoever opens the address itself gets to the page with the form."""
    scope = _scope(request, workspace_slug)
    if request.method != "POST":
        return redirect(scope.url)
    if kind not in AuditStream.Kind.values:
        raise NotFound
    form = StreamForm(request.POST, kind=kind)
    if form.is_valid():
        stream, secret = services.create_stream(
            workspace_id=scope.workspace_id,
            actor=request.actor,
            kind=kind,
            draft=form.draft(),
            start=form.start_chosen,
        )
        if secret:
            return render(request, "audit/streams/list.html", _page(request, scope, secret=secret))
        messages.success(request, _("“%(name)s” is on its way.") % {"name": stream.name})
        return redirect(scope.url)
    return render(
        request, "audit/streams/list.html", _page(request, scope, form=(kind, form)), status=422
    )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@saves_one_at_a_time
def edit(
    request: WorkspaceRequest, stream_id: UUID, workspace_slug: str | None = None
) -> HttpResponse:
    """One stream's settings."""
    scope = _scope(request, workspace_slug)
    if not scope.can_manage:
        require(request.actor, Permission.MANAGE_WORKSPACE, workspace_id=scope.workspace_id)
    stream = streams_of(scope.workspace_id).fetch(stream_id)
    hold(request, stream)
    form = StreamForm(request.POST or None, kind=stream.kind, stream=stream)
    if request.method == "POST" and form.is_valid():
        services.update_stream(stream=stream, actor=request.actor, draft=form.draft())
        messages.success(request, _("Saved."))
        return redirect(scope.url)
    context = {"section": "audit", "scope": scope, "stream": stream, "form": form}
    status = 422 if request.method == "POST" else 200
    return render(request, "audit/streams/edit.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def change(
    request: WorkspaceRequest, stream_id: UUID, verb: str, workspace_slug: str | None = None
) -> HttpResponse:
    """What a button says. It may show a secret, so the address stays in the browser: opened, it leads to the page."""
    scope = _scope(request, workspace_slug)
    if request.method != "POST":
        return redirect(scope.url)
    stream = streams_of(scope.workspace_id).fetch(stream_id)
    actor = request.actor
    if verb == "test":
        fault = services.try_stream(stream=stream, actor=actor)
        if fault:
            messages.error(
                request, _("“%(name)s”: %(fault)s") % {"name": stream.name, "fault": fault}
            )
        else:
            messages.success(request, _("“%(name)s” took a test entry.") % {"name": stream.name})
    elif verb == "secret":
        secret = services.renew_secret(stream=stream, actor=actor)
        return render(request, "audit/streams/list.html", _page(request, scope, secret=secret))
    elif verb == "retry":
        services.send_soon(stream=stream, actor=actor)
        messages.success(
            request, _("“%(name)s” tries again within seconds.") % {"name": stream.name}
        )
    elif verb in {"pause", "resume"}:
        services.pause_stream(stream=stream, actor=actor, is_paused=verb == "pause")
    elif verb in _STARTS:
        services.start_over(stream=stream, actor=actor, start=_STARTS[verb])
        messages.success(
            request,
            _FROM[verb] % {"name": stream.name},
        )
    elif verb == "delete":
        services.delete_stream(stream=stream, actor=actor)
        messages.success(request, _("“%(name)s” is deleted.") % {"name": stream.name})
    else:
        raise NotFound
    return redirect(scope.url)


_STARTS: Final = {"from-now": StreamStart.NOW, "from-beginning": StreamStart.BEGINNING}
_FROM: Final = {
    "from-now": gettext_lazy("“%(name)s” goes on from now."),
    "from-beginning": gettext_lazy("“%(name)s” goes on from the beginning of the log."),
}


def _scope(request: WorkspaceRequest, slug: str | None) -> StreamScope:
    """Whose streams are meant.

    Raises:
        Http404: the platform's, and somebody who does not own it.
        PermissionDenied: somebody who may not see the log.
    """
    if slug is None:
        if not request.user.is_superuser:
            raise Http404
        return StreamScope(
            workspace_id=None, url=reverse("audit:platform_streams"), can_manage=True
        )
    workspace_id = workspace_of(request, Permission.VIEW_AUDIT).pk
    return StreamScope(
        workspace_id=workspace_id,
        url=reverse("audit:streams", args=[slug]),
        can_manage=has_permission(
            request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace_id
        ),
    )


def _context(scope: StreamScope) -> dict[str, Any]:
    rows = streams_of(scope.workspace_id).select_related("state")
    is_held = is_unconfirmed()
    return {
        "scope": scope,
        "rows": [row_of(stream, is_held=is_held) for stream in rows],
        "is_restored": is_held,
    }


def _page(
    request: WorkspaceRequest,
    scope: StreamScope,
    *,
    form: tuple[str, StreamForm] | None = None,
    secret: str = "",
) -> Mapping[str, Any]:
    forms = [
        {
            "kind": kind.value,
            "label": kind.label,
            "form": form[1] if form and form[0] == kind else StreamForm(kind=kind),
            "is_open": bool(form and form[0] == kind),
        }
        for kind in AuditStream.Kind
    ]
    header = {**header_of(request), "tab": "streams"} if scope.workspace_id else {}
    return header | _context(scope) | {"section": "audit", "forms": forms, "new_secret": secret}


def row_of(stream: AuditStream, *, is_held: bool) -> StreamRow:
    """How a stream goes, in a word.

    Args:
        is_held: nothing is sent, because nobody has confirmed a restore yet.
    """
    state, lag = stream.state, lag_of(stream)
    if stream.is_paused:
        tone, word = "muted", _("Paused")
    elif is_held:
        tone, word = "warn", _("Waiting")
    elif state.failures:
        tone, word = "bad", _("Failing")
    elif lag.entries > 1000:
        tone, word = "warn", _("Catching up")
    else:
        tone, word = "ok", _("Sending")
    next_at, now = state.next_attempt_at, timezone.now()
    return StreamRow(
        stream=stream,
        state=state,
        lag=lag,
        tone=tone,
        word=word,
        oldest_at=now - timedelta(seconds=lag.seconds),
        is_due=next_at is None or next_at <= now,
        is_held=is_held,
        waits=bool(state.failures and next_at and next_at > now)
        and not (stream.is_paused or is_held),
    )
