"""Buds in the admin, which opens the product's own editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from chat.models import Bud
from chat.services.buds import update_bud
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import WorkspaceModelAdmin, actor_of
from workspaces.pages.row_actions import row_action
from workspaces.roles import Permission

if TYPE_CHECKING:
    from chat.models.buds import BudQuerySet
    from workspaces.middleware import WorkspaceRequest


@admin.register(Bud)
class BudAdmin(WorkspaceModelAdmin):
    section = AdminSection.BUDS
    manage_permission = Permission.MANAGE_BUDS
    list_display = ["name", "model_used", "state", "updated_at", "chat"]
    list_filter = ["is_archived"]
    list_select_related = ["provider", "workspace"]
    search_fields = ["name", "slug", "description"]
    actions = ["archive", "put_back"]

    def get_queryset(self, request: HttpRequest) -> Any:
        """Without what people only try in the editor, and without others' own."""
        rows = cast("BudQuerySet", super().get_queryset(request))
        return rows.usable_by(request.user.pk).filter(is_draft=False)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Open the product's own editor."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        workspace = cast("WorkspaceRequest", request).workspace
        assert workspace is not None
        return redirect("chat:bud_new", workspace_slug=workspace.slug)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        """Open the product's own editor."""
        bud = self.get_object(request, object_id)
        if bud is None or not self.has_view_permission(request, bud):
            return cast("HttpResponse", super().change_view(request, object_id, form_url))
        return redirect("chat:bud", workspace_slug=bud.workspace.slug, bud_id=bud.pk)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Refuse: the editor saves through the service."""
        raise PermissionDenied

    @admin.display(description=_("Model"))
    def model_used(self, bud: Bud) -> Promise | str:
        """The bud's own choice, or that it takes the provider's, or the platform's."""
        if bud.model:
            return bud.model
        return bud.provider.name if bud.provider else _("the platform's model")

    @admin.display(description=_("State"), ordering="is_archived")
    def state(self, bud: Bud) -> Promise:
        """In words: a cross under "archived" would read as a failure."""
        return _("archived") if bud.is_archived else _("in use")

    @admin.display(description=_("Chat"))
    def chat(self, bud: Bud) -> str | None:
        """The way into a chat with it; nobody begins one with an archived bud."""
        if bud.is_archived:
            return None
        url = reverse("chat:home", args=[bud.workspace.slug], query={"bud": bud.pk})
        return format_html('<a href="{}">{}</a>', url, _("Start a chat"))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # archived instead, so that its conversations stay

    @row_action(
        _("Archive"),
        done=ngettext_lazy(
            "%(count)s bud archived. Nobody starts new chats with it.",
            "%(count)s buds archived. Nobody starts new chats with them.",
            "count",
        ),
        permissions=["change"],
    )
    def archive(self, request: HttpRequest, row: Bud) -> None:
        update_bud(bud=row, values={"is_archived": True}, actor=actor_of(request))

    @row_action(
        _("Put back in use"),
        done=ngettext_lazy(
            "%(count)s bud is in use again.", "%(count)s buds are in use again.", "count"
        ),
        permissions=["change"],
    )
    def put_back(self, request: HttpRequest, row: Bud) -> None:
        update_bud(bud=row, values={"is_archived": False}, actor=actor_of(request))
