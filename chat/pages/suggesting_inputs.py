"""Fields that suggest the addresses and models of well-known providers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldAdminURLInputWidget

from chat.providers.suggestions import HOSTED, LOCAL, Suggestion, suggested_models


def _models_of_today() -> Sequence[Suggestion]:
    return suggested_models(datetime.now(UTC).date())


class _Suggesting(forms.TextInput):
    """The browser lists what fits while somebody types, by value or by provider. Anything else may be typed."""

    suggestions: ClassVar[Callable[[], Sequence[Suggestion]]]
    known: Sequence[str] = ()
    """Values that are suggested before these, as of one provider."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        list_id = f"{name}-suggestions"
        field = super().render(name, value, {**(attrs or {}), "list": list_id}, renderer)
        general = [one for one in type(self).suggestions() if one[0] not in self.known]
        options = format_html_join(
            "", '<option value="{0}">{1}</option>', [*((one, "") for one in self.known), *general]
        )
        return format_html('{}<datalist id="{}">{}</datalist>', field, list_id, options)


class ModelNameInput(_Suggesting):
    """The name of a model."""

    suggestions = staticmethod(_models_of_today)


class AdminModelInput(ModelNameInput, UnfoldAdminTextInputWidget):
    """The same in the admin."""


class AdminKnownModelInput(_Suggesting, UnfoldAdminTextInputWidget):
    """In the admin, the name of one of a provider's known models."""

    suggestions = staticmethod(lambda: ())


class SharedAddressInput(_Suggesting, forms.URLInput):
    """For the platform's owner, whose providers may also be on the machine itself."""

    suggestions = staticmethod(lambda: (*HOSTED, *LOCAL))


class AdminAddressInput(_Suggesting, UnfoldAdminURLInputWidget):
    """In the admin of a workspace, whose providers are outside."""

    suggestions = staticmethod(lambda: HOSTED)
