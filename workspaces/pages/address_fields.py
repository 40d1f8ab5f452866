"""Fields of forms for an e-mail address: what is read of them is what people see."""

from __future__ import annotations

from typing import Any

from django import forms

from workspaces.words.names import without_unseen


class SeenAddress(forms.Widget):
    """Part of a widget. Marks that nobody sees come along from pages and mails that an address is copied from."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Give what was typed of what was sent."""
        value = super().value_from_datadict(data, files, name)
        return without_unseen(value).strip() if isinstance(value, str) else value


class AddressInput(SeenAddress, forms.EmailInput):
    """An address, on our own pages."""


class TakesAddresses(forms.BaseForm):
    """A form whose fields for addresses take what people see, whoever made the fields."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for field in self.fields.values():
            if isinstance(field, forms.EmailField):
                field.widget = AddressInput(attrs=field.widget.attrs)
