"""The samples of the walker are whole."""

from __future__ import annotations

import pytest
from django.db import models

from tests.isolation.state import tenant_models
from tests.isolation.world import World
from workspaces.scoping import UnscopedQuery

pytestmark = pytest.mark.django_db


def test_the_world_has_a_row_of_every_tenant_model(world: World) -> None:
    """SEC-01: a model that is added has to be added to the walker's world."""
    missing = [
        model._meta.label
        for model in tenant_models()
        if not model._base_manager.filter(workspace_id=world.b.tenant.workspace.pk).exists()
    ]
    assert not missing, f"add a row of each to tests/isolation/world.py: {missing}"


@pytest.mark.parametrize("model", tenant_models(), ids=lambda model: model._meta.label)
def test_no_query_runs_without_saying_whose_rows(model: type[models.Model]) -> None:
    """SEC-01, SEC-11: work without a tenant fails closed, for every model and every kind of query."""
    rows = model.objects  # type: ignore[attr-defined]
    queries = [
        lambda: list(rows.all()),
        rows.count,
        rows.exists,
        rows.first,
        rows.last,
        lambda: rows.get(pk=None),
        lambda: list(rows.values("pk")),
        lambda: list(rows.iterator()),
        lambda: rows.filter(pk=None).update(workspace_id=None),
        lambda: rows.filter(pk=None).delete(),
        lambda: rows.aggregate(number=models.Count("pk")),
        rows.in_bulk,
        lambda: rows.latest("pk"),
    ]
    for query in queries:
        with pytest.raises(UnscopedQuery):
            query()
