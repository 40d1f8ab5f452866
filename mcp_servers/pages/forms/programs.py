"""The parameters and variables of a program, as fields of a form."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from mcp_servers.models import StdioProgram
from mcp_servers.pages.forms.sections import SectionedForm
from workspaces.redaction import MASK

_MOST_OF_PARAMETER = 1000
_MOST_OF_SECRET = 8000


class ProgramFields(SectionedForm):
    """A form that asks for what one program takes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._parameters: dict[str, str] = {}
        self._variables: dict[str, str] = {}
        self._keeps = False

    @property
    def program_names(self) -> tuple[str, ...]:
        """The names of the fields that were added."""
        return (*self._parameters.values(), *self._variables.values())

    def add_program_fields(
        self, program: StdioProgram, *, values: dict[str, Any] | None = None
    ) -> None:
        """Ask for the parameters and variables of a program.

        Args:
            values: of a server that has them already; its variables stay where nothing is entered.
        """
        self._keeps = values is not None
        for parameter in program.typed_parameters():
            name = f"{program.slug}-{parameter.name}"
            given = (values or {}).get(parameter.name, parameter.default)
            common: dict[str, Any] = {
                "label": parameter.title,
                "initial": given,
                "required": parameter.required and not parameter.default,
                "help_text": parameter.help,
            }
            self.fields[name] = (
                forms.ChoiceField(choices=[(one, one) for one in parameter.choices], **common)
                if parameter.choices
                else forms.CharField(max_length=_MOST_OF_PARAMETER, **common)
            )
            self._parameters[parameter.name] = name
        for variable in program.env_names:
            name = f"{program.slug}-env-{variable}"
            self.fields[name] = forms.CharField(
                label=variable,
                required=False,
                max_length=_MOST_OF_SECRET,
                widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
                help_text=_(
                    "Leave empty to keep the current one. Stored encrypted, and never shown again."
                )
                if self._keeps
                else _("Stored encrypted, and never shown again."),
            )
            self._variables[variable] = name

    def program_values(self) -> dict[str, Any]:
        """The answers, as a draft takes them."""
        values = self.cleaned_data
        parameters = {name: values.get(field, "") for name, field in self._parameters.items()}
        empty = MASK if self._keeps else ""
        env = {name: values.get(field) or empty for name, field in self._variables.items()}
        return {
            "parameters": {name: value for name, value in parameters.items() if value},
            "env": {name: value for name, value in env.items() if value} or None,
        }
