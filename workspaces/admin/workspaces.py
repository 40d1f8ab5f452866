"""Workspaces in the admin, for the owner of the platform."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from workspaces.models import Workspace
from workspaces.pages.model_admin import AsksBeforeSaving, PlatformModelAdmin, actor_of, telling
from workspaces.pages.row_actions import ConfirmQuestion, is_switched_off, row_action
from workspaces.people.platform import (
    WORKSPACE_RULES,
    resume_workspace,
    save_workspace,
    suspend_workspace,
)


class WorkspaceForm(forms.ModelForm):
    """A workspace, with its rules in words."""

    class Meta:
        model = Workspace
        fields: ClassVar[Any] = ["name", "slug", "is_active", *WORKSPACE_RULES]
        help_texts: ClassVar[Any] = {
            "slug": _("Its name in addresses, such as “garden” in /w/garden/."),
            "is_active": _("Off suspends the whole workspace: everybody is shut out."),
        }
        error_messages: ClassVar[Any] = {
            "slug": {
                "unique": _("Another workspace has this short name."),
                "invalid": _("Use letters from a to z, digits, hyphens and underscores alone."),
            },
        }


_SUSPENDING = ConfirmQuestion(
    asked=ngettext_lazy("Suspend %(count)s workspace?", "Suspend %(count)s workspaces?", "count"),
    consequence=_(
        "Everybody is shut out at once, also who is signed in now. Running answers stop. Schedules, API tokens, other"
        " MCP clients and public links do not work any more. Nothing is deleted, and you can open a workspace again."
    ),
    verb=_("Suspend"),
)


@admin.register(Workspace)
class WorkspaceAdmin(AsksBeforeSaving, PlatformModelAdmin):
    form = WorkspaceForm
    fieldsets = [
        (None, {"fields": ["name", "slug", "is_active"]}),
        (_("Advanced"), {"classes": ["collapse"], "fields": WORKSPACE_RULES}),
    ]
    list_display = ["name", "slug", "is_active", "created_at"]
    list_filter = ["is_active"]
    search_fields = ["name", "slug"]
    prepopulated_fields: ClassVar[Any] = {"slug": ["name"]}
    actions = ["suspend", "open_again"]

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        with telling(request):
            save_workspace(workspace=obj, actor=actor_of(request))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # suspended, so that nothing is lost by a click

    def question_before(self, form: Any) -> ConfirmQuestion | None:
        """Closing it by its form is what the action does, too."""
        return _SUSPENDING if is_switched_off(form) else None

    @row_action(
        _("Suspend"),
        done=ngettext_lazy(
            "%(count)s workspace suspended.", "%(count)s workspaces suspended.", "count"
        ),
        question=_SUSPENDING,
        permissions=["change"],
    )
    def suspend(self, request: HttpRequest, row: Workspace) -> None:
        # The page that was confirmed has named it, which stands for typing its name.
        suspend_workspace(workspace=row, typed=row.name, actor=actor_of(request))

    @row_action(
        _("Open again"),
        done=ngettext_lazy(
            "%(count)s workspace is open again.", "%(count)s workspaces are open again.", "count"
        ),
        permissions=["change"],
    )
    def open_again(self, request: HttpRequest, row: Workspace) -> None:
        resume_workspace(workspace=row, actor=actor_of(request))
