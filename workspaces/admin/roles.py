"""Rows of the admin with a role."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest

from workspaces.pages.model_admin import WorkspaceModelAdmin, actor_of
from workspaces.people.services import roles_to_give


class GivesRoles(WorkspaceModelAdmin):
    """Rows with a role: offers those that the person may give."""

    def formfield_for_choice_field(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
        if db_field.name == "role":
            kwargs["choices"] = roles_to_give(actor_of(request))
        field: forms.Field | None = super().formfield_for_choice_field(db_field, request, **kwargs)
        return field
