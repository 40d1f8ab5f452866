"""The model providers of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminPasswordWidget

from chat.admin.provider_models import ProviderModelInline, refuse_withheld_in, save_row
from chat.models import ModelProvider, WithheldReason
from chat.pages.suggesting_inputs import AdminAddressInput, AdminKnownModelInput, AdminModelInput
from chat.providers.errors import ProviderError, ProviderKeyUntested
from chat.providers.shared import switched_off
from chat.services.offered_models import offered_models_of
from chat.services.provider_check import check_provider, try_key
from chat.services.provider_models import remove_known_model
from chat.services.provider_removal import (
    consequences_of_deletion,
    remove_provider,
    uses_of_provider,
)
from chat.services.providers import (
    NAME_TAKEN,
    prepare_provider,
    read_key,
    switch_provider,
)
from workspaces.errors import DomainError, InvalidInput
from workspaces.outbound import enter_endpoint
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import WorkspaceModelAdmin, actor_of, telling
from workspaces.pages.row_actions import MOST_ASKED, ConfirmQuestion, row_action
from workspaces.pages.secret_fields import AsksForSecretsAgain
from workspaces.redaction import MASK
from workspaces.roles import Permission
from workspaces.secret_memory import without_secrets
from workspaces.words.formats import whole
from workspaces.words.names import seen_name

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

    class _KeyRequest(WorkspaceRequest):
        key_fault: str
        may_skip_test: bool
        added_provider: ModelProvider


MOST_SUGGESTED: Final = 500
"""Names in the list that a field for a model narrows while somebody types."""
MOST_IN_FORM: Final = 50
"""Models in their provider's form. Of more, each is changed on a page of its own."""


class ModelProviderForm(AsksForSecretsAgain, forms.ModelForm):
    """The key is write-only: an empty field keeps what is stored."""

    new_api_key = forms.CharField(
        required=False,
        widget=UnfoldAdminPasswordWidget(render_value=False),
        label=_("API key"),
        help_text=_(
            "Stored encrypted, and never shown again. Trellis tests a new one before it replaces the current one."
            " Leave empty to keep the current one."
        ),
    )
    untested_key = forms.BooleanField(
        required=False,
        label=_("Store the key without a test"),
        help_text=_(
            "For when the provider is down and the old key must not be used any more. Paste the key again."
        ),
    )
    workspace: ClassVar[Any] = None
    key_fault: ClassVar[str] = ""
    """What came of the new key's test; empty: nothing speaks against it."""

    class Meta:
        model = ModelProvider
        fields: ClassVar[Any] = [
            *("name", "base_url", "default_model", "is_active", "fallback"),
            *("most_at_once", "most_a_minute", "embedding_model"),
        ]
        widgets: ClassVar[Any] = {
            "base_url": AdminAddressInput,
            "default_model": AdminModelInput,
            "embedding_model": AdminKnownModelInput,
        }
        help_texts: ClassVar[Any] = {
            "base_url": _(
                "Type a provider's name and choose its address, or write another one. Most end with /v1. A query, such as"
                " ?api-version=2024-10-21, may follow."
            ),
            "default_model": _(
                "By the provider's own name for it. Buds may use its other models, too."
            ),
            "most_at_once": _(
                "In requests, such as 10. Further ones wait their turn for up to a minute. Leave empty for no limit."
            ),
            "most_a_minute": _(
                "In requests, such as 300, of all people and processes together. Leave empty for no limit."
            ),
        }
        labels: ClassVar[Any] = {"is_active": _("Active")}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance._state.adding:
            self.fields["new_api_key"].help_text = _(
                "Stored encrypted, and never shown again. Leave empty if the provider needs none."
            )
            return
        if "fallback" in self.fields:
            stand_ins: Any = self.fields["fallback"]
            stand_ins.queryset = stand_ins.queryset.exclude(pk=self.instance.pk)
        known = list(
            offered_models_of(self.instance)
            .order_by("model")
            .values_list("model", flat=True)[:MOST_SUGGESTED]
        )
        for name in ("default_model", "embedding_model"):
            if name in self.fields:
                cast("AdminModelInput", self.fields[name].widget).known = known

    def clean_name(self) -> str:
        """Refuse another provider's name at its field: the table would refuse it with an error page."""
        name = seen_name(self.cleaned_data["name"])
        if not name:
            raise forms.ValidationError(self.fields["name"].error_messages["required"])
        others = ModelProvider.objects.for_workspace(self.workspace).filter(name=name)
        if others.exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(NAME_TAKEN)
        return name

    def clean_base_url(self) -> str:
        """Refuse an address that may not be called, at its field."""
        url = str(self.cleaned_data["base_url"])
        if url != self.initial.get("base_url"):
            try:
                enter_endpoint(url)
            except DomainError as error:
                raise forms.ValidationError(error.message) from error
        return url

    def clean_new_api_key(self) -> str:
        """Refuse what no request can carry."""
        key = str(self.cleaned_data["new_api_key"])
        if not key or key == MASK:
            return ""
        try:
            return read_key(key)
        except InvalidInput as error:
            raise forms.ValidationError(error.message) from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in ("default_model", "embedding_model"):
            if name in self.changed_data and name in cleaned:
                refuse_withheld_in(self, self.instance, name)
        if self.key_fault:
            self.add_error("new_api_key", self.key_fault)
        elif key := cleaned.get("new_api_key"):
            self.instance.api_key = key
        return cleaned


@admin.register(ModelProvider)
class ModelProviderAdmin(WorkspaceModelAdmin):
    section = AdminSection.BUDS
    form = ModelProviderForm
    manage_permission = Permission.MANAGE_BUDS
    ordering = ["name"]
    list_display = ["name", "address", "default_model", "key_state", "is_active", "test"]
    list_select_related = ["workspace"]
    search_fields = ["name"]
    readonly_fields = ["models"]
    actions = ["switch_on", "switch_off", "test_connections"]
    inlines = [ProviderModelInline]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Try the new key of a stored provider before the transaction that saves, and a new provider after it."""
        if request.method == "POST" and object_id:
            self._try_key(request, object_id)
        answer = super().changeform_view(request, object_id, form_url, extra_context)
        added = getattr(request, "added_provider", None)
        if added is not None:
            self._test_added(request, added)
        return answer

    def _test_added(self, request: HttpRequest, provider: ModelProvider) -> None:
        """Say at once whether it answers: buds would be given its model, and people meet the fault."""
        try:
            self._tell_test(request, provider)
        except ProviderError as error:
            message = gettext("%(name)s was added, but does not answer yet: %(why)s")
            messages.error(request, message % {"name": provider.name, "why": error.message})

    def _try_key(self, request: HttpRequest, object_id: str) -> None:
        """Keep with the request what the form has to tell of its new key."""
        row = self.get_object(request, unquote(object_id))
        if row is None or row.is_shared or not self.has_change_permission(request, row):
            return
        form = self.get_form(request, row, change=True)(request.POST, instance=row)
        key = form.cleaned_data.get("new_api_key") if form.is_valid() else ""
        if not key or form.cleaned_data["untested_key"]:
            return
        bound = cast("_KeyRequest", request)
        try:
            try_key(provider=form.instance, key=key, actor=bound.actor)
        except InvalidInput as error:
            bound.key_fault = error.message
        except ProviderKeyUntested as error:
            bound.key_fault, bound.may_skip_test = error.message, True

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """Tell at the field what came of a new key's test."""
        form = super().get_form(request, obj, change=change, **kwargs)
        changed: dict[str, Any] = {
            "key_fault": getattr(request, "key_fault", ""),
            "workspace": getattr(request, "workspace", None),
        }
        if obj is not None and obj.is_shared:
            # What is posted all the same meets no field.
            changed |= {"new_api_key": None, "untested_key": None}
        return type(form.__name__, (form,), changed)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """What is shared is named by the platform's owner."""
        fields = super().get_readonly_fields(request, obj)
        return [*fields, "name", "shared_by"] if obj is not None and obj.is_shared else fields

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """A new provider has no models to name, and a test is skipped only where one failed."""
        if obj is not None and obj.is_shared:
            plain = ["name", "shared_by", "default_model", "is_active", "fallback", "models"]
            seldom = ["embedding_model"]
        else:
            plain = ["name", "base_url", "default_model", "new_api_key"]
            plain += ["untested_key"] if getattr(request, "may_skip_test", False) else []
            plain += ["is_active", "fallback", *([] if obj is None else ["models"])]
            seldom = ["embedding_model", "most_at_once", "most_a_minute"]
        return [
            (None, {"fields": plain}),
            (_("Advanced"), {"classes": ["collapse"], "fields": seldom}),
        ]

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """Leave the table out where it would be too long for one form."""
        inlines = super().get_inlines(request, obj)
        return [] if obj is not None and offered_models_of(obj).count() > MOST_IN_FORM else inlines

    @admin.display(description=_("Models"))
    def models(self, provider: ModelProvider) -> str:
        """How many are known, and where they are searched and changed one by one."""
        count = 0 if provider._state.adding else offered_models_of(provider).count()
        if not count:
            return gettext("None is known yet.")
        url = reverse("admin:chat_providermodel_changelist")
        text = ngettext("%(count)s model", "%(count)s models", count) % {"count": whole(count)}
        return format_html('<a href="{}?provider__id__exact={}">{}</a>', url, provider.pk, text)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What is shared is the platform's, until its owner has withdrawn it."""
        is_platforms = (
            obj is not None and obj.is_shared and obj.withheld != WithheldReason.WITHDRAWN.value
        )
        return not is_platforms and super().has_delete_permission(request, obj)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Name first what uses it, and what becomes of that."""
        row = self.get_object(request, unquote(object_id))
        if row is not None and self.has_delete_permission(request, row):
            uses = uses_of_provider(row, actor_of(request))
            extra_context = {
                **(extra_context or {}),
                "uses": uses,
                "consequences": consequences_of_deletion(uses),
            }
        return super().delete_view(request, object_id, extra_context)

    @admin.display(description=_("Address and key"))
    def shared_by(self, provider: ModelProvider) -> str:
        """Whose they are, and whether the workspace may use them now."""
        if provider.withheld:
            return switched_off(provider).message
        return gettext("Shared by the platform. Only its owner sees and changes them.")

    @admin.display(description=_("base URL"), ordering="base_url")
    def address(self, provider: ModelProvider) -> str:
        """Without what is secret in it."""
        if provider.withheld == WithheldReason.WITHDRAWN:
            return gettext("Shared by the platform, and withdrawn")
        if provider.withheld:
            return gettext("Shared by the platform, and switched off there")
        if provider.is_shared:
            return gettext("Shared by the platform")
        return without_secrets(provider.base_url) or gettext("none any more")

    @admin.display(description=_("Key"))
    def key_state(self, provider: ModelProvider) -> Promise:
        """In words: a cross would read as a failure."""
        if provider.is_shared:
            return _("the platform's")
        return _("stored") if provider.api_key else _("none")

    @admin.display(description=_("Connection"))
    def test(self, provider: ModelProvider) -> str:
        """The way to the page that tests it and lists its models."""
        url = reverse("chat:provider", args=[provider.workspace.slug, provider.pk])
        text = _("Test and models") if provider.is_shared else _("Test, models and key")
        return format_html('<a href="{}">{}</a>', url, text)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Where only a model in the table was refused, the new key is not stored either."""
        if request.method == "POST":
            context["adminform"].form.ask_for_secrets_again()
        return super().render_change_form(request, context, *args, **kwargs)

    def response_add(
        self, request: HttpRequest, obj: ModelProvider, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Go on with the page of its connection, models and key."""
        cast("_KeyRequest", request).added_provider = obj
        if "_continue" in request.POST or "_addanother" in request.POST:
            return super().response_add(request, obj, *args, **kwargs)
        workspace = cast("WorkspaceRequest", request).workspace
        assert workspace is not None
        return redirect("chat:provider", workspace_slug=workspace.slug, provider_id=obj.pk)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        had_key = bool(obj.api_key)
        prepare_provider(obj, has_new_key=bool(form.cleaned_data.get("new_api_key")))
        if had_key and not obj.api_key:
            message = _(
                "The stored key was for the old address, so Trellis removed it. Add one for the new address."
            )
            messages.warning(request, message)
        super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: ModelProvider) -> None:
        with telling(request):
            remove_provider(provider=obj, actor=cast("WorkspaceRequest", request).actor)

    @row_action(
        _("Switch on"),
        done=ngettext_lazy(
            "%(count)s provider switched on.", "%(count)s providers switched on.", "count"
        ),
        permissions=["change"],
    )
    def switch_on(self, request: HttpRequest, row: ModelProvider) -> None:
        switch_provider(provider=row, is_active=True, actor=actor_of(request))

    @row_action(
        _("Switch off"),
        done=ngettext_lazy(
            "%(count)s provider switched off.", "%(count)s providers switched off.", "count"
        ),
        question=ConfirmQuestion(
            asked=ngettext_lazy(
                "Switch off %(count)s provider?", "Switch off %(count)s providers?", "count"
            ),
            consequence=_(
                "Buds that use its models stop answering until you switch it on again. Its key and its models stay."
            ),
            verb=_("Switch off"),
        ),
        permissions=["change"],
    )
    def switch_off(self, request: HttpRequest, row: ModelProvider) -> None:
        switch_provider(provider=row, is_active=False, actor=actor_of(request))

    @row_action(_("Test connection"), permissions=["change"], most=MOST_ASKED, is_atomic=False)
    def test_connections(self, request: HttpRequest, row: ModelProvider) -> None:
        self._tell_test(request, row)

    def _tell_test(self, request: HttpRequest, row: ModelProvider) -> None:
        listing = check_provider(provider=row, actor=actor_of(request))
        if not listing.is_told:
            message = gettext(
                "%(model)s of %(name)s answered in %(ms)s ms. It has no list of models."
            )
            values = {"model": row.default_model, "name": row.name, "ms": whole(listing.took_ms)}
            messages.success(request, message % values)
            return
        number = len(listing.models) + listing.left_out
        message = ngettext(
            "%(name)s answered in %(ms)s ms and lists %(count)s model.",
            "%(name)s answered in %(ms)s ms and lists %(count)s models.",
            number,
        )
        values = {"name": row.name, "ms": whole(listing.took_ms), "count": whole(number)}
        messages.success(request, message % values)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        actor = cast("WorkspaceRequest", request).actor
        formset.save(commit=False)
        with telling(request), transaction.atomic():
            for row in formset.deleted_objects:
                remove_known_model(row=row, actor=actor)
            for row in [*(row for row, _ in formset.changed_objects), *formset.new_objects]:
                save_row(row, workspace_id=form.instance.workspace_id, actor=actor)
