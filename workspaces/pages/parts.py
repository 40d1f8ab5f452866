"""What pages share: whom they are for, and which workspace they are of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse

from workspaces.people.pictures import MIME_TYPE
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from django.forms import BaseForm

    from workspaces.errors import DomainError, InvalidInput
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace


V = TypeVar("V", bound="Callable[..., HttpResponse]")


def for_platform_owner(view: V) -> V:
    """Let the platform's owner in. Nobody else finds the page."""

    @wraps(view)
    def run(request: WorkspaceRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_superuser:
            raise Http404
        return view(request, *args, **kwargs)

    return cast("V", login_required(run))


def workspace_of(request: WorkspaceRequest, permission: Permission | None = None) -> Workspace:
    """The workspace of the page; where a permission is named, for whoever has it.

    Raises:
        Http404: the page is of none.
        PermissionDenied: the person may not do this here.
    """
    if request.workspace is None:
        raise Http404
    if permission is not None:
        require(request.actor, permission, workspace_id=request.workspace.pk)
    return request.workspace


def put_faults(form: BaseForm, error: InvalidInput) -> None:
    """Show what a service refused: at the form's fields, or above all of them."""
    for name, texts in (error.fields or {"": [error.message]}).items():
        for text in texts:
            form.add_error(name if name in form.fields else None, text)


@contextmanager
def telling_refusals(request: WorkspaceRequest, *kinds: type[DomainError]) -> Iterator[None]:
    """Have the next page say what a service refuses here."""
    try:
        yield
    except kinds as error:
        messages.error(request, error.message)


def picture_response(content: bytes | None) -> HttpResponse:
    """A person's picture, for good: its address changes with it. Raises Http404 where there is none."""
    if content is None:
        raise Http404
    cache = "private, max-age=31536000, immutable"
    return HttpResponse(content, MIME_TYPE, headers={"Cache-Control": cache})


def id_of(text: str) -> UUID:
    """An id that a form has sent. Raises Http404 if it is none."""
    try:
        return UUID(text)
    except ValueError as error:
        raise Http404 from error
