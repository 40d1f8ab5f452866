"""What fields of forms let themselves be pointed at."""

from __future__ import annotations

from typing import Any

from django.forms import ModelChoiceField

from tests.isolation.world import World


def check_choices(name: str, field: Any, world: World) -> None:
    """Fail if a field lets itself be pointed at a row of the other side."""
    if not isinstance(field, ModelChoiceField) or field.queryset is None:
        return
    model = field.queryset.model
    foreign = [
        row
        for row in [*world.b.rows.values(), *world.b.tenant.people.values()]
        if isinstance(row, model)
    ]
    ids = [row.pk for row in foreign]
    assert not field.queryset.filter(pk__in=ids).exists(), f"{name} offers rows of another tenant"
