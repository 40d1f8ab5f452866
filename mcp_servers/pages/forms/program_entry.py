"""The form of a program in the platform's catalogue: one text on each line, and a row for each parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextareaWidget

from mcp_servers.models import StdioProgram

TYPES: Final = (
    ("word", _("One word")),
    ("text", _("Text")),
    ("integer", _("Whole number")),
    ("choice", _("Choice")),
)
EMPTY_ROWS: Final = 2
"""Rows to fill in, behind those that are there. Each save gives new ones."""
MOST_ROWS: Final = 50
_TEXTS: Final = ("name", "title", "type", "choices", "minimum", "maximum", "default", "help")


class LinesField(forms.CharField):
    """A list of texts, one on each line."""

    widget = UnfoldAdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in (value or "").splitlines() if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool((initial or []) != self.to_python(data))


class ParametersWidget(forms.Widget):
    """A row of inputs for each parameter."""

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        rows: list[Mapping[str, Any]] = [*(value or []), *({} for _ in range(EMPTY_ROWS))]
        context = {"name": name, "rows": [_shown(row) for row in rows], "types": TYPES}
        return SafeString(render_to_string("mcp_servers/_program_parameters.html", context))

    def value_from_datadict(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> list[dict[str, Any]]:
        rows = []
        for number in range(MOST_ROWS):
            if f"{name}-{number}-name" not in data:
                break
            row: dict[str, Any] = {
                key: str(data.get(f"{name}-{number}-{key}", "")).strip() for key in _TEXTS
            }
            row["required"] = f"{name}-{number}-required" in data
            if any(row[key] for key in _TEXTS if key != "type"):
                rows.append(row)
        return rows

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return f"{name}-0-name" not in data


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    choices = row.get("choices", ())
    return {**row, "choices": choices if isinstance(choices, str) else ", ".join(choices)}


class ParametersField(forms.Field):
    """The parameters as the catalogue keeps them; the row itself checks them."""

    widget = ParametersWidget

    def to_python(self, value: Any) -> Any:
        return [_read(number, row) for number, row in enumerate(value or [], start=1)]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool((initial or []) != self.to_python(data))


def _read(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """One parameter, without what was left empty."""
    found: dict[str, Any] = {
        "name": row["name"],
        "title": row["title"] or row["name"],
        "type": row["type"] or "word",
    }
    for key in ("minimum", "maximum"):
        if row[key]:
            try:
                found[key] = int(row[key])
            except ValueError:
                text = _("Row %(number)d: the smallest and the largest value are whole numbers.")
                raise ValidationError(text % {"number": number}) from None
    if row["choices"]:
        found["choices"] = [one.strip() for one in row["choices"].split(",") if one.strip()]
    return found | {key: row[key] for key in ("default", "help", "required") if row[key]}


class ProgramEntryForm(forms.ModelForm):
    """What a program is called, what it runs, and what a workspace may say to it."""

    args = LinesField(
        label=_("Arguments"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 5, "spellcheck": "false"}),
        help_text=_(
            "One on each line, such as --root={folder}. “{folder}” is replaced by that parameter."
        ),
    )
    parameters = ParametersField(
        label=_("Parameters"),
        required=False,
        help_text=_("What a workspace fills in. Empty a row to remove it; saving gives new rows."),
    )
    env_names = LinesField(
        label=_("Environment"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_(
            "Names of variables that a workspace may set, one on each line, such as API_KEY."
        ),
    )

    class Meta:
        model = StdioProgram
        fields: ClassVar[Any] = [
            *("title", "slug", "description", "command", "args", "parameters", "env_names"),
            "is_enabled",
        ]
        help_texts: ClassVar[Any] = {
            "slug": _(
                "Its short name in addresses, such as “files”. Small letters, digits and hyphens."
            ),
            "command": _(
                "An absolute path, such as /usr/local/bin/files-server, or the word python for the platform's own"
                " interpreter."
            ),
            "is_enabled": _(
                "Workspaces can choose it. Off: tools of servers that run it cannot be called, either."
            ),
        }
