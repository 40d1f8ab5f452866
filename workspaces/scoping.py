"""The one door to a tenant's rows.

`Model.objects` refuses to run until it is told whose rows are wanted:

    McpServer.objects.for_workspace(workspace).visible_to(user).fetch(server_id)

`across_workspaces()` is for the platform's own jobs, and easy to search for. With row-level security on, it is also what
tells the database to show rows of every tenant. `unscoped` is what Django itself uses to follow relations from a row that
was reached through the door.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import models
from uuid_utils.compat import uuid7

from workspaces.database.row_security import everywhere
from workspaces.errors import NotFound

if TYPE_CHECKING:
    from workspaces.tenancy import User, Workspace

_Row = TypeVar("_Row", bound=models.Model, covariant=True)  # noqa: PLC0105 - as Django's stubs do


class UnscopedQuery(RuntimeError):
    """A query on tenant rows that does not say whose: a fault in our code, never a user's."""


class WorkspaceQuerySet(models.QuerySet[_Row]):
    """A queryset that runs only once it is scoped."""

    is_scoped = False
    is_across = False
    """Whether it asks for rows of every tenant."""

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
        clone = self._scoped()
        clone.is_across = True
        return clone

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
            raise NotFound.of(self.model)
        return row

    def _scoped(self) -> Self:
        clone = self.all()
        clone.is_scoped = True
        return clone

    def _clone(self) -> Self:
        clone: Self = super()._clone()  # type: ignore[misc]  # private in the stubs
        clone.is_scoped = self.is_scoped
        clone.is_across = self.is_across
        return clone

    def _must_be_scoped(self) -> None:
        if not self.is_scoped:
            raise UnscopedQuery(
                f"{self.model.__name__}.objects was used without for_workspace() or visible_to()"
            )

    def _door(self) -> AbstractContextManager[None]:
        """Open for as long as the query runs, as far as it says."""
        self._must_be_scoped()
        return everywhere() if self.is_across else nullcontext()

    def _fetch_all(self) -> None:
        with self._door():
            super()._fetch_all()

    def iterator(self, chunk_size: int | None = None) -> Iterator[_Row]:
        self._must_be_scoped()
        rows = super().iterator(chunk_size)
        return self._through_door(rows) if self.is_across else rows

    def _through_door(self, rows: Iterator[_Row]) -> Iterator[_Row]:
        # Whoever reads the rows does so outside of the door.
        while True:
            with self._door():
                row = next(rows, None)
            if row is None:
                return
            yield row

    def count(self) -> int:
        with self._door():
            return super().count()

    def exists(self) -> bool:
        with self._door():
            return super().exists()

    def aggregate(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        with self._door():
            return super().aggregate(*args, **kwargs)

    def update(self, **kwargs: Any) -> int:
        with self._door():
            return super().update(**kwargs)

    def delete(self) -> tuple[int, dict[str, int]]:
        with self._door():
            return super().delete()


class PersonalQuerySet(WorkspaceQuerySet[_Row]):
    """Rows that are their `owner`'s alone, whatever else somebody may see in a workspace."""

    def visible_to(self, user: User) -> Self:
        """This person's own."""
        return super().visible_to(user).filter(owner=user)


WorkspaceManager = models.Manager.from_queryset(WorkspaceQuerySet)
PersonalManager = models.Manager.from_queryset(PersonalQuerySet)


class ScopedModel(models.Model):
    """A row that is reached through the door alone."""

    objects = WorkspaceManager()
    unscoped: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        abstract = True
        base_manager_name = "unscoped"
        default_manager_name = "unscoped"


class WorkspaceModel(ScopedModel):
    """A row that belongs to one workspace."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(
        "workspaces.Workspace", on_delete=models.CASCADE, related_name="+", editable=False
    )
    created_at = models.DateTimeField(auto_now_add=True, editable=False)
    updated_at = models.DateTimeField(auto_now=True, editable=False)

    class Meta(ScopedModel.Meta):
        abstract = True
