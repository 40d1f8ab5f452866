"""Every error a person may meet descends from DomainError.

DomainError
├── NotFound          404  missing, or another workspace's: the two answer alike
│   └── WorkspaceNotFound  of the workspace itself
├── PermissionDenied  403  the actor's role or token does not allow it
├── Conflict          409  somebody else was first, or the state has moved on
├── InvalidInput      422  the input does not fit; names the fields
├── InvalidEndpoint   422  a URL, header or program parameter that is not allowed
├── RateLimited       429  too much, too fast
└── NoWorkspace       400  the request does not say which workspace it is for
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from workspaces.words.texts import gettext
from workspaces.words.texts import gettext_lazy as _

if TYPE_CHECKING:
    from workspaces.words.texts import Text


RETRY_SECONDS: Final = 5
"""What a caller is told to wait, unless the error knows better."""
ASKED_AGAIN: Final = frozenset({429, 503})
"""Statuses after which it may help to ask again."""


class DomainError(Exception):
    """An expected failure, with a stable code and words that are safe to show.

    A lazy text becomes a str at once, in the language of whoever asked. `details` may be logged,
    and must hold no secrets.
    """

    code = "error"
    status = 400
    default_message: ClassVar[Text] = _("This did not work. Try again.")
    retry_seconds = RETRY_SECONDS

    def __init__(
        self,
        message: Text | None = None,
        *,
        details: Mapping[str, object] | None = None,
    ) -> None:
        self.message = str(message or self.default_message)
        self.details: Mapping[str, object] = details or {}
        super().__init__(self.message)


class NotFound(DomainError):
    code = "not_found"
    status = 404
    default_message = _("Not found.")

    @classmethod
    def of(cls, row: Any) -> NotFound:
        """That this row, or one of this model, is not there; abbreviations in its name stay as they are written."""
        text = gettext("%(verbose_name)s not found.") % {"verbose_name": row._meta.verbose_name}
        return cls(f"{text[:1].upper()}{text[1:]}")


class WorkspaceNotFound(NotFound):
    """A program tells by the code that it is not a row in a workspace that is gone."""

    code = "workspace_not_found"
    default_message = _("Workspace not found.")


class PermissionDenied(DomainError):
    code = "forbidden"
    status = 403
    default_message = _("You do not have permission to do that.")


class Conflict(DomainError):
    code = "conflict"
    status = 409
    default_message = _("This has changed in the meantime. Reload and try again.")


class InvalidInput(DomainError):
    """`fields` maps each faulty field to its messages."""

    code = "invalid"
    status = 422
    default_message = _("Some of the values are not valid.")

    def __init__(
        self,
        message: Text | None = None,
        *,
        fields: Mapping[str, Sequence[Text]] | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        self.fields: dict[str, list[str]] = {
            name: [str(text) for text in texts] for name, texts in (fields or {}).items()
        }
        if message is None and self.fields:
            message = " ".join(text for texts in self.fields.values() for text in texts)
        super().__init__(message, details=details)


class InvalidEndpoint(DomainError):
    """A URL, a header or a program parameter is not allowed."""

    code = "invalid_endpoint"
    status = 422


class RateLimited(DomainError):
    code = "rate_limited"
    status = 429
    default_message = _("Too many requests. Wait a moment and try again.")

    def __init__(self, message: Text | None = None, *, retry_seconds: int = RETRY_SECONDS) -> None:
        self.retry_seconds = retry_seconds
        super().__init__(message)


class NoWorkspace(DomainError):
    code = "no_workspace"
    status = 400
    default_message = _("Say which workspace this is for, in the header X-Workspace.")
