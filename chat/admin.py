"""Buds and model providers in the admin."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminPasswordWidget,
    UnfoldAdminTextareaWidget,
)

from chat.models import Bud, ModelProvider
from chat.services.providers import prepare_provider
from mcp_servers.models import McpServer
from workspaces.admin import WorkspaceModelAdmin
from workspaces.redaction import MASK
from workspaces.roles import Permission


class BudForm(forms.ModelForm):
    """Servers are picked from a list; the finer points of the configuration stay JSON."""

    servers = forms.ModelMultipleChoiceField(
        queryset=McpServer.unscoped.none(),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label="MCP servers",
        help_text="Whose tools this bud may use.",
    )
    starter_prompts_text = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        label="Starter prompts",
        help_text="One a line.",
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
            "makes_artifacts",
            "is_archived",
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        config = self.instance.mcp_config if isinstance(self.instance.mcp_config, dict) else {}
        self.fields["servers"].initial = config.get("servers", [])
        prompts = self.instance.starter_prompts
        if isinstance(prompts, list):
            self.fields["starter_prompts_text"].initial = "\n".join(map(str, prompts))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        config = cleaned.get("mcp_config")
        if isinstance(config, dict):
            chosen = cleaned.get("servers") or []
            cleaned["mcp_config"] = {**config, "servers": [str(server.pk) for server in chosen]}
        lines = (cleaned.get("starter_prompts_text") or "").splitlines()
        self.instance.starter_prompts = [line.strip() for line in lines if line.strip()]
        return cleaned


@admin.register(Bud)
class BudAdmin(WorkspaceModelAdmin):
    form = BudForm
    manage_permission = Permission.MANAGE_BUDS
    list_display = ["name", "slug", "provider", "model", "is_archived", "updated_at"]
    list_filter = ["is_archived"]
    list_select_related = ["provider"]
    search_fields = ["name", "slug", "description"]
    prepopulated_fields: ClassVar[Any] = {"slug": ["name"]}
    fieldsets = [
        (None, {"fields": ["name", "slug", "avatar", "description", "is_archived"]}),
        ("What it says", {"fields": ["system_prompt", "starter_prompts_text"]}),
        ("Model", {"fields": ["provider", "model", "parameters"]}),
        ("Tools", {"fields": ["servers", "makes_artifacts", "mcp_config"]}),
    ]

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, **kwargs)
        workspace = getattr(request, "workspace", None)
        if workspace is not None:
            servers = McpServer.objects.for_workspace(workspace).order_by("name")
            form.base_fields["servers"].queryset = servers
        return form

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # archived instead, so that its conversations stay


class ModelProviderForm(forms.ModelForm):
    """The key is write-only: an empty field keeps what is stored."""

    new_api_key = forms.CharField(
        required=False,
        widget=UnfoldAdminPasswordWidget(render_value=False),
        label="API key",
        help_text="Stored encrypted, and never shown again. Empty: as it is.",
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


@admin.register(ModelProvider)
class ModelProviderAdmin(WorkspaceModelAdmin):
    form = ModelProviderForm
    manage_permission = Permission.MANAGE_BUDS
    ordering = ["name"]
    list_display = ["name", "base_url", "default_model", "has_key", "is_active"]
    search_fields = ["name"]
    fields = ["name", "base_url", "default_model", "new_api_key", "is_active"]

    @admin.display(description="Key", boolean=True)
    def has_key(self, provider: ModelProvider) -> bool:
        return bool(provider.api_key)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        prepare_provider(obj, has_new_key=bool(form.cleaned_data.get("new_api_key")))
        super().save_model(request, obj, form, change)
