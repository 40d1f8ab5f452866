"""Fields for a provider's base URL that suggest those of well-known providers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminURLInputWidget

from chat.providers.known_addresses import HOSTED, LOCAL, KnownAddress


class _Suggesting(forms.URLInput):
    """The browser lists the suggestions while somebody types, by name or by address. Any other address may be typed."""

    suggested: ClassVar[Sequence[KnownAddress]] = HOSTED

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        list_id = f"{name}-known"
        field = super().render(name, value, {**(attrs or {}), "list": list_id}, renderer)
        options = format_html_join(
            "", '<option value="{1}" label="{0}">{0}</option>', self.suggested
        )
        return format_html('{}<datalist id="{}">{}</datalist>', field, list_id, options)


class AdminAddressInput(_Suggesting, UnfoldAdminURLInputWidget):
    """For the admin of a workspace, whose providers are outside."""


class SharedAddressInput(_Suggesting):
    """For the platform's owner, whose providers may also be on the machine itself."""

    suggested = (*HOSTED, *LOCAL)
