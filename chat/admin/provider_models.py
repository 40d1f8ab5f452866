"""Models of providers, with what is known of them and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from django import forms
from django.contrib import admin
from django.core.validators import MinValueValidator
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import TabularInline

from chat.models import ModelProvider, ProviderModel
from chat.services.offered_models import offered_models
from chat.services.provider_models import (
    BELOW_ZERO,
    PRICES,
    add_known_model,
    change_known_model,
    model_draft_of,
    remove_known_model,
)
from chat.services.providers import refuse_withheld
from workspaces.errors import InvalidInput
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import WorkspaceModelAdmin, telling
from workspaces.pages.seen_values import NoticesOthers
from workspaces.roles import Permission, has_permission
from workspaces.words.formats import whole

if TYPE_CHECKING:
    from uuid import UUID

    from workspaces.actors import Actor
    from workspaces.middleware import WorkspaceRequest


_FACTS = [
    "model",
    "context_tokens",
    "sees_pictures",
    "calls_tools",
    "reasons",
    "prompt_price",
    "cached_price",
    "completion_price",
    "learned_protocol",
]


_LIST_PRICE = _(
    "US dollars per million tokens, such as 2.50. Leave empty for the provider's list price, if Trellis knows it."
)
_PRICES_HELP = {
    "prompt_price": _LIST_PRICE,
    "completion_price": _LIST_PRICE,
    "cached_price": _(
        "US dollars per million prompt tokens that came out of the provider's cache, such as 1.25."
    ),
}


def refuse_withheld_in(form: forms.ModelForm, provider: ModelProvider | None, field: str) -> None:
    """Put at a field that the platform's owner withholds the model in it."""
    if provider is None:
        return
    try:
        refuse_withheld(provider, form.cleaned_data.get(field) or "", field)
    except InvalidInput as error:
        for message in error.fields[field]:
            form.add_error(field, message)


def save_row(row: ProviderModel, *, workspace_id: UUID, actor: Actor) -> None:
    """Have the service save what a form has put into a row."""
    draft = model_draft_of(row)
    if not row._state.adding:
        change_known_model(row=row, draft=draft, actor=actor)
        return
    made = add_known_model(workspace_id=workspace_id, draft=draft, actor=actor)
    row.__dict__.update(made.__dict__)


class _TellsWhatWasFound(forms.ModelForm):
    """Where an ability may be left to what was found, the choice says what that is. Prices are refused at their fields."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ("calls_tools", "reasons"):
            found = getattr(self.instance, f"told_{name}")
            labels = {None: _("Automatic"), True: _("Automatic: yes"), False: _("Automatic: no")}
            field = cast("forms.TypedChoiceField", self.fields[name])
            field.choices = [("", labels[found]), (True, _("Yes")), (False, _("No"))]
        for name in PRICES:
            # The service would refuse it, too, but then what somebody has typed is gone.
            self.fields[name].validators.append(MinValueValidator(0, BELOW_ZERO))


class ProviderModelRowForm(NoticesOthers, _TellsWhatWasFound):
    """One model, within its provider's form."""

    class Meta:
        model = ProviderModel
        fields: ClassVar[Any] = _FACTS
        help_texts: ClassVar[Any] = _PRICES_HELP

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # The table names its columns, but not the fields in them.
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = field.label

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        refuse_withheld_in(self, self.instance.provider, "model")
        return cleaned


class ProviderModelInline(TabularInline):
    """What is known of a provider's models."""

    model = ProviderModel
    form = ProviderModelRowForm
    extra = 0
    fields = _FACTS
    verbose_name = _("model")
    verbose_name_plural = _("prices and context")

    def get_queryset(self, request: HttpRequest) -> Any:
        workspace = getattr(request, "workspace", None)
        if workspace is None:
            return ProviderModel.objects.none()
        return offered_models(workspace.pk)

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


class ProviderModelForm(_TellsWhatWasFound):
    """One row per model and provider."""

    workspace: Any = None

    class Meta:
        model = ProviderModel
        fields: ClassVar[Any] = ["provider", *_FACTS]
        help_texts: ClassVar[Any] = {
            **_PRICES_HELP,
            "model": _("By the provider's own name for it, such as gpt-4.1-mini."),
            "context_tokens": _("How many tokens it reads and writes at most, such as 128000."),
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        refuse_withheld_in(self, cleaned.get("provider"), "model")
        if "model" in self.errors:
            return cleaned
        rows = ProviderModel.objects.for_workspace(self.workspace).filter(
            provider=cleaned.get("provider"), model=cleaned.get("model")
        )
        if rows.exclude(pk=self.instance.pk).exists():
            self.add_error("model", _("This model is listed already."))
        return cleaned


@admin.register(ProviderModel)
class ProviderModelAdmin(WorkspaceModelAdmin):
    """All models of the workspace's providers, and of the platform's own."""

    section = AdminSection.BUDS
    form = ProviderModelForm
    manage_permission = Permission.MANAGE_BUDS
    page_name = _("Models and prices")
    deletion_note = _(
        "Trellis forgets its prices and what it can do. Buds that use the model go on with it. Chats in which somebody chose"
        " it go on with the model of their bud."
    )
    ordering = ["model"]
    list_display = ["model", "provider", "reads", *_FACTS[2:]]
    list_select_related = ["provider"]
    search_fields = ["model"]
    fieldsets = [
        (None, {"fields": ["provider", "model", "context_tokens"]}),
        (_("Prices"), {"fields": ["prompt_price", "cached_price", "completion_price"]}),
        (
            _("Advanced"),
            {
                "classes": ["collapse"],
                "fields": ["sees_pictures", "calls_tools", "reasons", "learned_protocol"],
            },
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> Any:
        """Without models that the platform's owner withholds."""
        rows = super().get_queryset(request)
        workspace = cast("WorkspaceRequest", request).workspace
        if workspace is None:
            return rows
        return rows.filter(pk__in=offered_models(workspace.pk).order_by().values("pk"))

    @admin.display(description=_("context window (tokens)"), ordering="context_tokens")
    def reads(self, row: ProviderModel) -> str | None:
        return None if row.context_tokens is None else whole(row.context_tokens)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        form.workspace = getattr(request, "workspace", None)
        return form

    def save_model(self, request: HttpRequest, obj: ProviderModel, form: Any, change: bool) -> None:
        """Save through the service, as the REST interface does."""
        bound = cast("WorkspaceRequest", request)
        assert bound.workspace is not None
        with telling(request):
            save_row(obj, workspace_id=bound.workspace.pk, actor=bound.actor)

    def delete_model(self, request: HttpRequest, obj: ProviderModel) -> None:
        with telling(request):
            remove_known_model(row=obj, actor=cast("WorkspaceRequest", request).actor)
