"""Forms that notice what somebody else saved while they were open, so that nobody's change is lost silently."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from django import forms
from django.db import models, transaction
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from workspaces import holding

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

V = TypeVar("V", bound="Callable[..., HttpResponse]")
_NAME: Final = "seen"
_LONGEST_SHOWN: Final = 200
_PLAIN: Final = (
    *(forms.TextInput, forms.NumberInput, forms.EmailInput, forms.URLInput),
    *(forms.Textarea, forms.Select),
)
"""Widgets with one text. Those of several values and of secrets are compared as a whole."""


def saves_one_at_a_time(view: V) -> V:
    """Run what is sent to a page in one transaction, so that `hold` lasts from comparing to saving."""

    @wraps(view)
    def run(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with transaction.atomic() if request.method == "POST" else nullcontext():
            return view(request, *args, **kwargs)

    return cast("V", run)


def hold(request: HttpRequest, row: models.Model) -> None:
    """Wait for whoever is saving this row, and read what they saved, before a form compares with it.

    Raises:
        NotFound: they have deleted it.
    """
    if request.method != "POST" or row._state.adding:
        return
    holding.hold(row)


class NoticesOthers(forms.BaseForm):
    """A form about a stored row. Its initial values are the row's, also when it is bound.

    The page carries a short digest of each value as it was shown (`seen_input`). A value that is
    another one by now, and that saving would replace, is a fault at its field. The form that shows
    the fault has the new digests, so saving again replaces what was told.
    """

    @property
    def seen_input(self) -> SafeString:
        """The hidden input that a page needs for it."""
        digests = " ".join(f"{name}:{self._digest(name)}" for name in self.fields)
        html = '<input type="hidden" name="{}" value="{}">'
        return format_html(html, self.add_prefix(_NAME), digests)

    def full_clean(self) -> None:
        """Validate, then compare what was seen with what is stored."""
        super().full_clean()
        if not self.is_bound or not hasattr(self, "cleaned_data"):
            return
        seen = _read(str(self.data.get(self.add_prefix(_NAME), "")))
        theirs = {
            name
            for name, digest in seen.items()
            if name in self.fields and digest != self._digest(name) and self._replaces(name)
        }
        for name in theirs:
            if self._is_untouched(name, seen[name]):
                self._show_theirs(name)
                error = _(
                    "Somebody else changed this while you had the form open. Their value is shown. Save again to keep it."
                )
            else:
                error = _(
                    "Somebody else changed this to “%(value)s” while you had the form open. Save again to use your value."
                ) % {"value": self._in_words(name)}
            self.add_error(name, error)

    def _stored(self, name: str) -> Any:
        field = self.fields[name]
        return field.prepare_value(self.get_initial_for_field(field, name))

    def _submitted(self, name: str) -> Any:
        widget = self.fields[name].widget
        return widget.value_from_datadict(self.data, self.files, self.add_prefix(name))

    def _replaces(self, name: str) -> bool:
        field = self.fields[name]
        stored = self.get_initial_for_field(field, name)
        return not field.disabled and field.has_changed(stored, self._submitted(name))

    def _digest(self, name: str) -> str:
        return _digest(self._as_text(name))

    def _as_text(self, name: str) -> str:
        """The stored value as its widget would send it, where that is one text."""
        value, widget = self._stored(name), self.fields[name].widget
        if isinstance(widget, forms.CheckboxInput):
            return str(bool(value))
        if not _is_plain(widget):
            return _as_json(value)
        shown = widget.format_value(value)
        return _plain(shown[0] if isinstance(shown, list) and shown else shown or "")

    def _is_untouched(self, name: str, seen: str) -> bool:
        widget, value = self.fields[name].widget, self._submitted(name)
        if isinstance(widget, forms.CheckboxInput):
            return _digest(str(bool(value))) == seen
        return _is_plain(widget) and _digest(_plain(value)) == seen

    def _show_theirs(self, name: str) -> None:
        data = self.data = self.data.copy()  # type: ignore[attr-defined]  # a QueryDict, or a dict in tests
        key, text = self.add_prefix(name), self._as_text(name)
        if not isinstance(self.fields[name].widget, forms.CheckboxInput):
            data[key] = text
        elif text == str(True):
            data[key] = "on"
        else:
            data.pop(key, None)

    def _in_words(self, name: str) -> str:
        value, field = self._stored(name), self.fields[name]
        if isinstance(value, bool):
            return _("on") if value else _("off")
        choices: Mapping[str, Any] = {
            str(key): label for key, label in getattr(field, "choices", ()) if key is not None
        }
        values = value if isinstance(value, list | tuple) else [value]
        texts = [str(choices.get(str(one), one)) for one in values if one not in (None, "")]
        return ", ".join(texts)[:_LONGEST_SHOWN] or _("nothing")


def _is_plain(widget: forms.Widget) -> bool:
    secret = isinstance(widget, forms.PasswordInput)
    return (
        isinstance(widget, _PLAIN) and not secret and not isinstance(widget, forms.SelectMultiple)
    )


def _plain(value: Any) -> str:
    return "" if value is None else str(value).replace("\r\n", "\n").strip()


def digest_of(value: Any) -> str:
    """The digest of a value that is not one text."""
    return _digest(_as_json(value))


def _as_json(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _read(text: str) -> dict[str, str]:
    pairs = (one.partition(":") for one in text.split())
    return {name: digest for name, _colon, digest in pairs}
