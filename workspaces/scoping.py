"""The one door to a tenant's rows.

`Model.objects` refuses to run until it is told whose rows are wanted:

    McpServer.objects.for_workspace(workspace).visible_to(user).fetch(server_id)

`across_workspaces()` is for the platform's own jobs, and easy to search for. `unscoped` is
what Django itself uses to follow relations from a row that was reached through the door.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from workspaces.errors import NotFound

if TYPE_CHECKING:
    from workspaces.tenancy import User, Workspace

_Row = TypeVar("_Row", bound=models.Model, covariant=True)  # noqa: PLC0105 - as Django's stubs do


class UnscopedQuery(RuntimeError):
    """A query on tenant rows that does not say whose: a fault in our code, never a user's."""


class WorkspaceQuerySet(models.QuerySet[_Row]):
    """A queryset that runs only once it is scoped."""

    is_scoped = False

    def for_workspace(self, workspace: Workspace | UUID | str) -> Self:
        """Only the rows of that workspace."""
        workspace_id = getattr(workspace, "pk", workspace)
        return self._scoped().filter(workspace_id=workspace_id)

    def visible_to(self, user: User) -> Self:
        """Only the rows that this person may see; models narrow it where rows are personal."""
        if user.is_superuser:
            return self._scoped()
        mine = user.memberships.filter(user__is_active=True, suspended_at=None)
        return self._scoped().filter(workspace_id__in=mine.values("workspace_id"))

    def across_workspaces(self) -> Self:
        """Rows of every tenant: for the platform's own jobs only."""
        return self._scoped()

    def find(self, pk: object) -> _Row | None:
        """The row with that id, or None: missing, malformed and another tenant's id look alike."""
        try:
            return self.filter(pk=pk).first()
        except (ValidationError, ValueError, TypeError):
            return None

    def fetch(self, pk: object) -> _Row:
        """The row with that id.

        Raises:
            NotFound: there is none here.
        """
        row = self.find(pk)
        if row is None:
            raise NotFound(
                (
                    _("%(verbose_name)s not found.")
                    % {"verbose_name": self.model._meta.verbose_name}
                ).capitalize()
            )
        return row

    def _scoped(self) -> Self:
        clone = self.all()
        clone.is_scoped = True
        return clone

    def _clone(self) -> Self:
        clone: Self = super()._clone()  # type: ignore[misc]  # private in the stubs
        clone.is_scoped = self.is_scoped
        return clone

    def _must_be_scoped(self) -> None:
        if not self.is_scoped:
            raise UnscopedQuery(
                f"{self.model.__name__}.objects was used without for_workspace() or visible_to()"
            )

    def _fetch_all(self) -> None:
        self._must_be_scoped()
        super()._fetch_all()

    def iterator(self, chunk_size: int | None = None) -> Iterator[_Row]:
        self._must_be_scoped()
        return super().iterator(chunk_size)

    def count(self) -> int:
        self._must_be_scoped()
        return super().count()

    def exists(self) -> bool:
        self._must_be_scoped()
        return super().exists()

    def aggregate(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        self._must_be_scoped()
        return super().aggregate(*args, **kwargs)

    def update(self, **kwargs: Any) -> int:
        self._must_be_scoped()
        return super().update(**kwargs)

    def delete(self) -> tuple[int, dict[str, int]]:
        self._must_be_scoped()
        return super().delete()


WorkspaceManager = models.Manager.from_queryset(WorkspaceQuerySet)


class WorkspaceModel(models.Model):
    """A row that belongs to one workspace."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(
        "workspaces.Workspace", on_delete=models.CASCADE, related_name="+", editable=False
    )
    created_at = models.DateTimeField(auto_now_add=True, editable=False)
    updated_at = models.DateTimeField(auto_now=True, editable=False)

    objects = WorkspaceManager()
    unscoped: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        abstract = True
        base_manager_name = "unscoped"
        default_manager_name = "unscoped"
