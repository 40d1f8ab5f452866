"""The form of the bud editor."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.utils.translation import gettext_lazy as _

from chat.models import Bud, BudColour, BudVisibility, ModelProvider
from chat.providers.choosing import platform_provider
from chat.providers.shared import switched_off, withheld_model
from chat.services.demo_buds import provider_in_place_of_demo
from chat.services.models import ModelChoice, models_of
from chat.values import ToolProtocol
from workspaces.pages.numbers import WholeNumberField
from workspaces.words.formats import day, plain, whole

PLAIN = (
    *("name", "slug", "description", "avatar", "colour", "system_prompt"),
    *("is_model_fixed", "mcp_config", "takes_all_tools", "tool_protocol", "makes_artifacts"),
    *("visibility", "members_may_edit", "is_archived"),
)
"""Fields that are values of a bud as they stand."""
_PARAMETERS = ("temperature", "top_p", "max_tokens")
_OTHER_LABELS = {"parameters": _("Parameters of the model"), "provider_id": _("Model provider")}
"""Values that the form has in several fields, or as a part of one."""


class _Decoder(json.JSONDecoder):
    """Says of all that it cannot read that it is no JSON; the field knows no other fault."""

    def decode(self, s: str, *args: Any) -> Any:
        """Read it.

        Raises:
            JSONDecodeError: it is no JSON, is nested too deeply, or has a number of absurd length.
        """
        try:
            return super().decode(s, *args)
        except json.JSONDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            raise json.JSONDecodeError("cannot be read", s[:100], 0) from error


class BudEditorForm(forms.Form):
    """What people set of a bud. Tools come as the configuration that the page's picker made."""

    name = forms.CharField(max_length=100, label=_("Name"))
    slug = forms.SlugField(
        max_length=60, label=_("Short name"), help_text=_("For addresses and commands.")
    )
    description = forms.CharField(max_length=300, required=False, label=_("Description"))
    avatar = forms.CharField(max_length=8, label=_("Icon"), help_text=_("One emoji."))
    colour = forms.ChoiceField(choices=BudColour.choices, label=_("Colour"))
    system_prompt = forms.CharField(
        max_length=50_000,
        required=False,
        strip=False,
        label=_("Instructions"),
        widget=forms.Textarea(attrs={"rows": 14, "data-instructions": ""}),
    )
    starter_prompts = forms.CharField(
        max_length=5_000,
        required=False,
        label=_("Starter prompts"),
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("One a line, up to 12. People can start a chat with them."),
    )
    model = forms.CharField(max_length=300, required=False, label=_("Model"))
    is_model_fixed = forms.BooleanField(
        required=False, label=_("People cannot choose another model in their chats")
    )
    temperature = forms.FloatField(
        required=False,
        min_value=0,
        max_value=2,
        label=_("Temperature"),
        help_text=_(
            "From 0 (always alike) to 2. Empty: the provider decides, as it does for models that take no temperature."
        ),
    )
    top_p = forms.FloatField(
        required=False,
        min_value=0.001,
        max_value=1,
        label=_("Top p"),
        help_text=_("From 0 to 1. Empty: the provider decides."),
    )
    max_tokens = WholeNumberField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        label=_("Longest answer"),
        help_text=_("In tokens. Empty: the provider decides."),
    )
    mcp_config = forms.JSONField(
        required=False, label=_("Tools"), widget=forms.HiddenInput, decoder=_Decoder
    )
    takes_all_tools = forms.BooleanField(
        required=False, label=_("Use every server of the workspace, also those added later")
    )
    tool_protocol = forms.ChoiceField(
        choices=Bud._meta.get_field("tool_protocol").choices or (),
        label=_("How the model is told of tools"),
    )
    makes_artifacts = forms.BooleanField(
        required=False, label=_("Can create and change files of the chat")
    )
    visibility = forms.ChoiceField(
        choices=BudVisibility.choices, label=_("Who may use it"), widget=forms.RadioSelect
    )
    members_may_edit = forms.BooleanField(
        required=False, label=_("Every member may edit it, not only administrators")
    )
    is_archived = forms.BooleanField(
        required=False, label=_("Archived: nobody starts new chats with it")
    )
    skip_checks = forms.BooleanField(
        required=False,
        label=_("Save it though its checks have not passed"),
        help_text=_("The log says that you did."),
        widget=forms.CheckboxInput(attrs={"form": "bud-form"}),
    )
    base_version = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)

    defaults: ClassVar[dict[str, Any]] = {
        "avatar": "🌱",
        "colour": BudColour.GREY.value,
        "visibility": BudVisibility.WORKSPACE.value,
        "tool_protocol": ToolProtocol.AUTO.value,
        "takes_all_tools": True,
        "mcp_config": {},
    }

    def clean_mcp_config(self) -> dict[str, Any]:
        """Give a mapping; what is in it is the services' to check."""
        value = self.cleaned_data["mcp_config"] or {}
        if not isinstance(value, dict):
            raise forms.ValidationError(_("The tools could not be read. Reload the page."))
        return value

    def clean_model(self) -> tuple[UUID | None, str]:
        """Split `provider id|model`."""
        provider, _bar, name = self.cleaned_data["model"].partition("|")
        try:
            return (UUID(provider) if provider else None), name
        except ValueError as error:
            raise forms.ValidationError(_("Choose one of the models.")) from error

    def values(self) -> dict[str, Any]:
        """What the form says, as the services take it."""
        given = self.cleaned_data
        lines = given["starter_prompts"].splitlines()
        parameters = {name: given[name] for name in _PARAMETERS if given[name] is not None}
        return {
            **{name: given[name] for name in PLAIN},
            "model": given["model"][1],
            "starter_prompts": [line.strip() for line in lines if line.strip()],
            "parameters": parameters,
        }

    @property
    def provider_id(self) -> UUID | None:
        """The chosen provider; None is the platform's."""
        chosen: UUID | None = self.cleaned_data["model"][0]
        return chosen

    def add_faults(self, faults: dict[str, list[str]]) -> None:
        """Put what a service refused at the fields."""
        of_field = {"provider_id": "model", "parameters": "temperature"}
        for name, texts in faults.items():
            field = of_field.get(name, name)
            for fault in texts:
                self.add_error(field if field in self.fields else None, fault)


def initial_of_new(workspace_id: UUID) -> dict[str, Any]:
    """Give what the form of a new bud begins with: a model of the workspace, where the platform has but the demo model."""
    provider = provider_in_place_of_demo(workspace_id)
    return {**BudEditorForm.defaults, "model": f"{provider.pk}|" if provider else "|"}


def initial_of(bud: Bud) -> dict[str, Any]:
    """Give a bud as the form shows it."""
    return {
        **{name: getattr(bud, name) for name in PLAIN},
        **{name: bud.parameters.get(name) for name in _PARAMETERS},
        "starter_prompts": "\n".join(map(str, bud.starter_prompts)),
        "model": f"{bud.provider_id or ''}|{bud.model}",
        "base_version": bud.version,
    }


def model_groups(workspace_id: UUID, current: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """Give the models by provider, each with what is known of it, and each provider's own choice."""
    groups: dict[str, list[dict[str, Any]]] = {}
    known = models_of(workspace_id)
    providers = ModelProvider.objects.for_workspace(workspace_id)
    usual: dict[UUID | None, str] = {None: platform_provider().model}
    usual |= {row.pk: row.default_model for row in providers if row.offers(row.default_model)}
    facts = {(one.provider_id, one.name): one for one in known}
    for one in known:
        rows = groups.setdefault(one.provider_name, [])
        if not rows and one.provider_id in usual:
            name = usual.get(one.provider_id, "")
            label = str(_("The default (%(model)s)") % {"model": name})
            rows.append(
                _option(f"{one.provider_id or ''}|", label, facts.get((one.provider_id, name)))
            )
        rows.append(_option(f"{one.provider_id or ''}|{one.name}", one.name, one))
    if all(current != row["value"] for rows in groups.values() for row in rows):
        label, fact = _current(providers, current)
        option = {"value": current, "label": label, "facts": fact}
        groups.setdefault(str(_("Current choice")), []).append(option)
    return list(groups.items())


def _current(providers: Iterable[ModelProvider], current: str) -> tuple[str, str]:
    """What a choice that cannot be made any more is called, and why that is."""
    provider_id, _bar, name = current.partition("|")
    row = next((one for one in providers if str(one.pk) == provider_id), None)
    if row is None:
        return name or str(_("The default")), ""
    label = name or str(_("The default (%(model)s)") % {"model": row.default_model})
    if not row.answers:
        return label, switched_off(row).message
    model = name or row.default_model
    return label, "" if row.offers(model) else withheld_model(row, model).message


def _option(value: str, label: str, known: ModelChoice | None) -> dict[str, Any]:
    facts: list[str] = []
    if known is not None:
        if known.context_tokens:
            facts.append(
                str(
                    _("context window of %(number)s tokens")
                    % {"number": whole(known.context_tokens)}
                )
            )
        if known.sees_pictures is not None:
            facts.append(str(_("sees pictures") if known.sees_pictures else _("sees no pictures")))
        if not known.gets_tools:
            facts.append(str(_("calls no tools, so this bud's are not offered to it")))
        elif known.calls_tools is not None:
            facts.append(str(_("calls tools") if known.calls_tools else _("calls tools in words")))
        if known.reasons:
            facts.append(str(_("reasons")))
        if known.prompt_price is not None and known.completion_price is not None:
            prices = {
                "read": plain(known.prompt_price),
                "write": plain(known.completion_price),
            }
            facts.append(
                str(_("%(read)s in and %(write)s out for a million tokens, in US dollars") % prices)
            )
            if known.prices_listed_on is not None:
                listed_on = {"day": day(known.prices_listed_on)}
                facts.append(str(_("list price of %(day)s") % listed_on))
        if known.ends_on is not None:
            facts.append(str(_("its provider ends it on %(day)s") % {"day": day(known.ends_on)}))
        if known.gone_since is not None:
            since = {"day": day(known.gone_since)}
            facts.append(str(_("no longer in its provider's list since %(day)s") % since))
    return {"value": value, "label": label, "facts": ", ".join(facts)}


def label_of(name: str) -> str:
    """What the editor calls a value of a bud."""
    field = BudEditorForm.base_fields.get(name)
    return str(field.label if field else _OTHER_LABELS.get(name, name))
