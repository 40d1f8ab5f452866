"""Secrets in a form that is refused: a page never gives them back, so whoever typed them has to hear it."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

ENTER_AGAIN: Final = _("Enter this again. Nothing was saved, and pages do not show secrets.")


class AsksForSecretsAgain(forms.BaseForm):
    """Says at the field of each secret that was typed that it is not there any more, where the form is refused.

    Without that, people correct what was wrong, save, and believe that the secret went along.
    """

    _is_cleaning = False

    def full_clean(self) -> None:
        """Clean all fields, and then look at what came of it."""
        self._is_cleaning = True
        try:
            super().full_clean()
        finally:
            self._is_cleaning = False
        if self.errors:
            self.ask_for_secrets_again()

    def add_error(self, field: str | None, error: Any) -> None:
        """Add what a service refused, after the form itself found nothing."""
        super().add_error(field, error)
        if not self._is_cleaning:
            self.ask_for_secrets_again()

    def ask_for_secrets_again(self) -> None:
        """Say it at each field that held a secret and has no error of its own."""
        for name, field in self.fields.items():
            widget = field.widget
            is_secret = isinstance(widget, forms.PasswordInput) and not widget.render_value
            typed = self.data.get(self.add_prefix(name)) if is_secret else None
            if typed and name not in self.errors:
                super().add_error(name, str(ENTER_AGAIN))
