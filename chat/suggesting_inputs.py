"""Fields that suggest the addresses and models of well-known providers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldAdminURLInputWidget

from chat.providers.suggestions import HOSTED, LOCAL, Suggestion, suggested_models


class _Suggesting(forms.TextInput):
    """The browser lists what fits while somebody types, by value or by provider. Anything else may be typed."""

    def suggestions(self) -> Sequence[Suggestion]:
        """What it lists now."""
        raise NotImplementedError

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        list_id = f"{name}-suggestions"
        field = super().render(name, value, {**(attrs or {}), "list": list_id}, renderer)
        options = format_html_join("", '<option value="{0}">{1}</option>', self.suggestions())
        return format_html('{}<datalist id="{}">{}</datalist>', field, list_id, options)


class _AddressInput(_Suggesting, forms.URLInput):
    def suggestions(self) -> Sequence[Suggestion]:
        return HOSTED


class ModelInput(_Suggesting):
    """The name of a model."""

    def suggestions(self) -> Sequence[Suggestion]:
        return suggested_models(datetime.now(UTC).date())


class SharedAddressInput(_AddressInput):
    """For the platform's owner, whose providers may also be on the machine itself."""

    def suggestions(self) -> Sequence[Suggestion]:
        return (*HOSTED, *LOCAL)


class AdminAddressInput(_AddressInput, UnfoldAdminURLInputWidget):
    """In the admin of a workspace, whose providers are outside."""


class AdminModelInput(ModelInput, UnfoldAdminTextInputWidget):
    """In the admin."""
