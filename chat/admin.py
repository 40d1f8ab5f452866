"""Buds and model providers in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from django import forms
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from unfold.admin import TabularInline
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminPasswordWidget,
    UnfoldAdminTextareaWidget,
    UnfoldBooleanSwitchWidget,
)

from chat.models import Bud, ModelProvider, ProviderModel, Turn
from chat.services.buds import FIELDS, check_bud, create_bud, offered_servers, update_bud
from chat.services.providers import prepare_provider
from chat.toolset import resolve_toolset
from chat.values import ToolExposure
from mcp_servers.models import McpServer
from mcp_servers.pages.forms.common import add_domain_error
from workspaces.admin import WorkspaceModelAdmin
from workspaces.admin_sections import Section
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import InvalidInput
from workspaces.redaction import MASK
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


class BudForm(forms.ModelForm):
    """Servers are picked from a list; the finer points of the configuration stay JSON."""

    servers = forms.ModelMultipleChoiceField(
        queryset=McpServer.unscoped.none(),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label=_("MCP servers"),
        help_text=_("Whose tools this bud may use."),
    )
    tools_on_demand = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        label=_("Load tools on demand"),
        help_text=_(
            "For a bud with many servers: the model is not told of every tool, but looks them up and calls them by"
            " name. The prompt stays small; policy, approvals and the audit log see the real tool."
        ),
    )
    starter_prompts_text = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        label=_("Starter prompts"),
        help_text=_("One a line."),
    )

    class Meta:
        model = Bud
        fields: ClassVar[Any] = [
            "name",
            "slug",
            "avatar",
            "description",
            "system_prompt",
            "provider",
            "model",
            "parameters",
            "mcp_config",
            "tool_protocol",
            "makes_artifacts",
            "takes_all_tools",
            "is_model_fixed",
            "is_archived",
        ]

    workspace_id: Any = None
    """Set by the admin class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.workspace_id is not None:
            offered = offered_servers(self.workspace_id).order_by("name")
            cast("forms.ModelMultipleChoiceField", self.fields["servers"]).queryset = offered
        if self.instance._state.adding:
            self.fields["takes_all_tools"].initial = True
            self.initial["takes_all_tools"] = True
        config = self.instance.mcp_config if isinstance(self.instance.mcp_config, dict) else {}
        self.fields["servers"].initial = config.get("servers", [])
        is_looked_up = config.get("tool_exposure") == ToolExposure.ON_DEMAND
        self.fields["tools_on_demand"].initial = is_looked_up
        prompts = self.instance.starter_prompts
        if isinstance(prompts, list):
            self.fields["starter_prompts_text"].initial = "\n".join(map(str, prompts))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in ("parameters", "mcp_config"):
            if name in cleaned and cleaned[name] is None:  # an empty field
                cleaned[name] = {}
        config = cleaned.get("mcp_config")
        if isinstance(config, dict):
            chosen = cleaned.get("servers") or []
            config = {**config, "servers": [str(server.pk) for server in chosen]}
            config.pop("tool_exposure", None)
            if cleaned.get("tools_on_demand"):
                config["tool_exposure"] = ToolExposure.ON_DEMAND.value
            cleaned["mcp_config"] = config
        lines = (cleaned.get("starter_prompts_text") or "").splitlines()
        cleaned["starter_prompts"] = [line.strip() for line in lines if line.strip()]
        if not self.errors and self.workspace_id is not None:
            try:
                check_bud(
                    workspace_id=self.workspace_id,
                    bud=None if self.instance._state.adding else self.instance,
                    **self.values(),
                )
            except InvalidInput as error:
                add_domain_error(self, error)
        return cleaned

    def values(self) -> dict[str, Any]:
        """What the form says, as the services take it."""
        provider = self.cleaned_data.get("provider")
        given = {name: self.cleaned_data[name] for name in FIELDS if name in self.cleaned_data}
        return {"values": given, "provider_id": provider.pk if provider else None}


@admin.register(Bud)
class BudAdmin(WorkspaceModelAdmin):
    section = Section.BUDS
    form = BudForm
    manage_permission = Permission.MANAGE_BUDS
    list_display = ["name", "model_used", "state", "updated_at"]
    list_filter = ["is_archived"]
    list_select_related = ["provider"]
    search_fields = ["name", "slug", "description"]
    prepopulated_fields: ClassVar[Any] = {"slug": ["name"]}
    readonly_fields: ClassVar[Any] = ["problems"]
    fieldsets = [
        (None, {"fields": ["problems", "name", "slug", "avatar", "description", "is_archived"]}),
        (_("Instructions"), {"fields": ["system_prompt", "starter_prompts_text"]}),
        (_("Model"), {"fields": ["provider", "model", "is_model_fixed", "parameters"]}),
        (
            _("Tools"),
            {
                "fields": [
                    "takes_all_tools",
                    "servers",
                    "tools_on_demand",
                    "tool_protocol",
                    "makes_artifacts",
                    "mcp_config",
                ]
            },
        ),
    ]

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, **kwargs)
        workspace = cast("WorkspaceRequest", request).workspace
        return type("BoundBudForm", (form,), {"workspace_id": workspace.pk if workspace else None})

    def save_model(self, request: HttpRequest, obj: Bud, form: BudForm, change: bool) -> None:
        """Save through the service, as the REST interface does."""
        bound = cast("WorkspaceRequest", request)
        assert bound.workspace is not None
        if change:
            kept = Bud.objects.for_workspace(bound.workspace).fetch(obj.pk)
            saved = update_bud(bud=kept, actor=bound.actor, has_provider=True, **form.values())
        else:
            saved = create_bud(workspace_id=bound.workspace.pk, actor=bound.actor, **form.values())
        obj.__dict__.update(saved.__dict__)

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

    @admin.display(description=_("Problems"), empty_value="None")
    def problems(self, bud: Bud) -> str:
        """Why some of its servers or tools cannot be used now."""
        return "" if bud._state.adding else "\n".join(resolve_toolset(bud, None).notices)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # archived instead, so that its conversations stay


class ModelProviderForm(forms.ModelForm):
    """The key is write-only: an empty field keeps what is stored."""

    new_api_key = forms.CharField(
        required=False,
        widget=UnfoldAdminPasswordWidget(render_value=False),
        label=_("API key"),
        help_text=_(
            "Stored encrypted, and never shown again. Leave empty to keep the current one."
        ),
    )

    class Meta:
        model = ModelProvider
        fields: ClassVar[Any] = ["name", "base_url", "default_model", "is_active"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        key = cleaned.get("new_api_key") or ""
        if key and key != MASK:
            self.instance.api_key = key
        return cleaned


_FACTS = [
    "model",
    "context_tokens",
    "sees_pictures",
    "prompt_price",
    "cached_price",
    "completion_price",
    "learned_protocol",
]


class ProviderModelInline(TabularInline):
    """What is known of a provider's models."""

    model = ProviderModel
    extra = 0
    fields = _FACTS
    verbose_name_plural = _("what its models cost, and how much they read")

    def get_queryset(self, request: HttpRequest) -> Any:
        workspace = getattr(request, "workspace", None)
        rows = ProviderModel.objects
        return rows.for_workspace(workspace) if workspace is not None else rows.none()

    def _may(self, request: HttpRequest, obj: Any = None) -> bool:
        bound = cast("WorkspaceRequest", request)
        if bound.workspace is None or getattr(obj, "workspace_id", None) not in (
            None,
            bound.workspace.pk,
        ):
            return False
        return has_permission(bound.actor, Permission.MANAGE_BUDS, workspace_id=bound.workspace.pk)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, obj)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, obj)


class ProviderModelForm(forms.ModelForm):
    """One row per model and provider."""

    workspace: Any = None

    class Meta:
        model = ProviderModel
        fields: ClassVar[Any] = ["provider", *_FACTS]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        rows = ProviderModel.objects.for_workspace(self.workspace).filter(
            provider=cleaned.get("provider"), model=cleaned.get("model")
        )
        if rows.exclude(pk=self.instance.pk).exists():
            self.add_error("model", _("This model is listed already."))
        return cleaned


@admin.register(ProviderModel)
class ProviderModelAdmin(WorkspaceModelAdmin):
    """All models of the workspace's providers, and of the platform's own."""

    section = Section.BUDS
    form = ProviderModelForm
    manage_permission = Permission.MANAGE_BUDS
    page_name = _("Models and prices")
    ordering = ["model"]
    list_display = ["model", "provider", *_FACTS[1:]]
    list_select_related = ["provider"]
    search_fields = ["model"]

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, **kwargs)
        form.workspace = getattr(request, "workspace", None)
        return form


@admin.register(Turn)
class RatedAnswerAdmin(WorkspaceModelAdmin):
    """What people think of answers: how many of which bud and model are good, and why some are not.

    What was asked and answered stays theirs.
    """

    section = Section.BUDS
    page_name = _("Ratings of answers")
    manage_permission = Permission.MANAGE_BUDS
    ordering = ["-rated_at"]
    list_display = ["rated_at", "rating", "rating_reason", "bud", "model", "asked_by"]
    list_filter = ["rating", "rated_at", "model"]
    list_select_related = ["conversation__bud", "asked_by"]
    list_display_links = None
    search_fields = ["rating_reason", "model"]
    show_full_result_count = False
    fields = ["rated_at", "rating", "rating_reason", "model"]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).exclude(rating="")

    @admin.display(description=_("Bud"), ordering="conversation__bud__name")
    def bud(self, turn: Turn) -> str:
        return turn.conversation.bud.name

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(ModelProvider)
class ModelProviderAdmin(WorkspaceModelAdmin):
    section = Section.BUDS
    form = ModelProviderForm
    manage_permission = Permission.MANAGE_BUDS
    ordering = ["name"]
    list_display = ["name", "base_url", "default_model", "has_key", "is_active"]
    search_fields = ["name"]
    fields = ["name", "base_url", "default_model", "new_api_key", "is_active"]
    inlines = [ProviderModelInline]

    @admin.display(description=_("Key"), boolean=True)
    def has_key(self, provider: ModelProvider) -> bool:
        return bool(provider.api_key)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        prepare_provider(obj, has_new_key=bool(form.cleaned_data.get("new_api_key")))
        super().save_model(request, obj, form, change)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        actor = cast("WorkspaceRequest", request).actor
        formset.save(commit=False)
        with transaction.atomic():
            for row in formset.deleted_objects:
                record_deleted(row, actor=actor)
                row.delete()
            for row, _ in formset.changed_objects:
                with tracked_change(row, actor=actor):
                    row.save()
            for row in formset.new_objects:
                row.workspace_id = form.instance.workspace_id
                row.save()
                record_created(row, actor=actor)
