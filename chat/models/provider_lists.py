"""What providers' lists of models told when they were last asked, once a day."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Final
from uuid import UUID

from django.db import models
from pydantic import BaseModel, ConfigDict, Field

from chat.models.buds import ModelProvider
from chat.models.shared_providers import SharedProvider
from chat.values import parse_value
from workspaces.scoping import WorkspaceModel

MOST_NAMES: Final = 5_000
"""Models of one list. Of a longer one the rest is left out, and none of it is called gone."""
MOST_CHANGES: Final = 500
"""New models that are remembered, and gone ones, and ends; the newest first."""
ENVIRONMENTS: Final = UUID(int=0)
"""The id of the row about the provider that the environment gives."""

_Days = Annotated[dict[str, date], Field(max_length=MOST_CHANGES)]


class ListChanges(BaseModel):
    """What changed in a provider's list of models, by their names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    new: _Days = {}
    """On which day a model was seen for the first time, if not in the first list."""
    gone: _Days = {}
    """On which day a model was missing for the first time."""
    ends: _Days = {}
    """From which day the provider serves a model no more, where its list tells that."""


class _ListFields(models.Model):
    """The last question, and what is known from all of them."""

    address_digest = models.CharField(max_length=64, editable=False)
    """Whose list it is: at another address there is another one."""
    asked_at = models.DateTimeField(editable=False, db_index=True)
    listed_at = models.DateTimeField(null=True, editable=False)
    """When it last gave a list; None: never."""
    fault = models.CharField(max_length=500, blank=True, editable=False)
    """Why it gave none when it was last asked, in words; empty: it did."""
    names = models.JSONField(default=list, editable=False)
    """The models of the last list, at most MOST_NAMES."""
    changes = models.JSONField(default=dict, editable=False)

    class Meta:
        abstract = True

    @property
    def list_changes(self) -> ListChanges:
        """What changed in it."""
        return parse_value(ListChanges, self.changes, field="changes")


class ProviderList(_ListFields, WorkspaceModel):
    """The list of a workspace's own provider."""

    provider = models.OneToOneField(
        ModelProvider, on_delete=models.CASCADE, related_name="listed", editable=False
    )

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]

    def __str__(self) -> str:
        return f"list of {self.provider_id}"


class SharedProviderList(_ListFields):
    """The list of a provider that the platform's owner shares, or that the environment gives."""

    id = models.UUIDField(primary_key=True, editable=False)
    """That of the shared provider, or `ENVIRONMENTS`."""
    shared = models.OneToOneField(
        SharedProvider, on_delete=models.CASCADE, null=True, related_name="listed", editable=False
    )

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"list of {self.shared_id or 'the environment'}"
