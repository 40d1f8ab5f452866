"""What the platform's owner lets workspaces run, and how a workspace's choices become an argument list. Pure.

A workspace never names a program or an argument. It picks an entry, and gives values for the entry's parameters; each
value is checked against its type and becomes (part of) exactly one argument. No shell is involved anywhere.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Final, Literal, Self

import pydantic
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, model_validator

from mcp_servers.models.connection_config import describe_errors
from workspaces.errors import InvalidInput
from workspaces.secret_memory import (
    MASK,
    is_secret_key,
    secrets_in_parameter,
    secrets_in_url,
)
from workspaces.secret_memory import without_secrets as url_without_secrets

OWN_INTERPRETER: Final = "python"
"""As a command: the interpreter that the platform itself runs on, with the packages of its own environment."""

MAX_VALUE_LENGTH: Final = 1000

ParameterType = Literal["word", "text", "integer", "choice"]

_PLACEHOLDER: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_WORD: Final = re.compile(r"[A-Za-z0-9_/.][A-Za-z0-9_/.@:+,=%-]*")
_ENV_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
# They would change which code runs, not what it works on.
_REFUSED_ENV: Final = re.compile(
    r"LD_.*|DYLD_.*|PYTHON.*|NODE_.*|NPM_.*|PATH|HOME|TMPDIR|SHELL|IFS|BASH_ENV|ENV|PERL.*|RUBY.*|JAVA_.*|GIT_.*"
)


class Parameter(BaseModel):
    """One value that a workspace may give."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    title: str = Field(max_length=100)
    help: str = Field("", max_length=300)
    type: ParameterType = "word"
    """word: letters, digits and `_ / . @ : + , = % -`, no blanks; text: a line of any characters that can be seen.

    Neither begins with a dash: it would be another option of the program.
    """
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    required: bool = False
    default: str = ""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.type == "choice") != bool(self.choices):
            raise ValueError("a choice needs choices, and only a choice has them")
        if self.default:
            try:
                self.check(self.default)
            except InvalidInput as error:
                raise ValueError("the default does not fit the type") from error
        return self

    def check(self, value: str) -> str:
        """The value as it goes into an argument.

        Raises:
            InvalidInput: it does not fit.
        """
        if len(value) > MAX_VALUE_LENGTH:
            raise self._invalid("is too long")
        if self.type == "choice":
            if value not in self.choices:
                raise self._invalid(f"must be one of {', '.join(self.choices)}")
        elif self.type == "integer":
            if not re.fullmatch(r"-?[0-9]{1,18}", value):
                raise self._invalid("must be a whole number")
            number = int(value)
            if (self.minimum is not None and number < self.minimum) or (
                self.maximum is not None and number > self.maximum
            ):
                raise self._invalid("is out of range")
            if number < 0:
                raise self._invalid("must not be negative")
        elif self.type == "text":
            if not value.isprintable() or value != value.strip() or value.startswith("-"):
                raise self._invalid(
                    "must be one line, without blanks at its ends, and not begin with a dash"
                )
        elif not _WORD.fullmatch(value):
            raise self._invalid(
                "may hold letters, digits and _ / . @ : + , = % - only, and not begin with a dash"
            )
        return value

    def _invalid(self, what: str) -> InvalidInput:
        return InvalidInput(fields={f"parameters.{self.name}": [f"{self.title} {what}."]})


_PARAMETERS: Final = pydantic.TypeAdapter(tuple[Parameter, ...])


def read_parameters(value: object) -> tuple[Parameter, ...]:
    """The parameter list of a catalogue entry, from its JSON column.

    Raises:
        InvalidInput: it does not follow the form, or a name comes twice.
    """
    try:
        parameters = _PARAMETERS.validate_python(value)
    except pydantic.ValidationError as error:
        raise InvalidInput(fields={"parameters": describe_errors(error)}) from error
    if len({parameter.name for parameter in parameters}) != len(parameters):
        raise InvalidInput(fields={"parameters": [_("A name is used twice.")]})
    return parameters


def check_program(*, command: str, args: object, parameters: object, env_names: object) -> None:
    """Make sure that a catalogue entry is whole.

    Raises:
        InvalidInput: a command that is neither an absolute path nor "python", arguments that are no list of texts, a
            placeholder without parameter, or an environment name that could change which code runs.
    """
    fields: dict[str, list[str]] = {}
    if (fault := _fault_of(command)) is not None:
        fields["command"] = [fault]
    names = {parameter.name for parameter in read_parameters(parameters)}
    if not isinstance(args, list) or not all(
        isinstance(arg, str) and "\0" not in arg for arg in args
    ):
        fields["args"] = [_("Use a list of texts.")]
    else:
        unknown = {name for arg in args for name in _PLACEHOLDER.findall(arg)} - names
        if unknown:
            fields["args"] = [
                _("There is no parameter %(unknown)s.") % {"unknown": ", ".join(sorted(unknown))}
            ]
    if not isinstance(env_names, list) or not all(
        isinstance(name, str) and _ENV_NAME.fullmatch(name) and not _REFUSED_ENV.fullmatch(name)
        for name in env_names
    ):
        fields["env_names"] = [_("Use names in capitals, and none that the system's loaders read.")]
    if fields:
        raise InvalidInput(fields=fields)


def _fault_of(command: str) -> str | None:
    """What is wrong with a command; None: nothing that can be told without running it."""
    program, _blank, arguments = command.partition(" ")
    if arguments and shutil.which(command) is None and shutil.which(program) is not None:
        return _(
            "Name the program alone. Its arguments have a field of their own, with one on each line."
        )
    if command == OWN_INTERPRETER or (command.startswith("/") and ".." not in command.split("/")):
        return None
    found = None if "/" in command else shutil.which(command)
    if found is None:
        return _("Use an absolute path, or the word python.")
    words = _("Use an absolute path, or the word python. On this machine it is %(path)s.")
    return words % {"path": found}


def check_values(parameters: Sequence[Parameter], values: Mapping[str, object]) -> dict[str, str]:
    """A workspace's values for an entry, checked; empty ones are left out.

    Raises:
        InvalidInput: an unknown name, a missing or unfit value.
    """
    known = {parameter.name: parameter for parameter in parameters}
    unknown = set(values) - set(known)
    if unknown:
        raise InvalidInput(
            fields={
                "parameters": [
                    _("There is no parameter %(unknown)s.")
                    % {"unknown": ", ".join(sorted(unknown))[:200]}
                ]
            }
        )
    checked: dict[str, str] = {}
    for name, parameter in known.items():
        value = values.get(name)
        if value is None or value == "":
            value = parameter.default
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise InvalidInput(
                fields={
                    f"parameters.{name}": [
                        _("%(title)s must be a text.") % {"title": parameter.title}
                    ]
                }
            )
        if str(value):
            checked[name] = parameter.check(str(value))
        elif parameter.required:
            raise InvalidInput(
                fields={
                    f"parameters.{name}": [_("%(title)s is required.") % {"title": parameter.title}]
                }
            )
    return checked


def build_argv(command: str, args: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """The argument list to run; an argument whose parameter has no value is left out."""
    program = sys.executable if command == OWN_INTERPRETER else command
    filled = (
        _PLACEHOLDER.sub(lambda match: values[match[1]], arg)
        for arg in args
        if all(name in values for name in _PLACEHOLDER.findall(arg))
    )
    return (program, *filled)


def secrets_in(values: Mapping[str, object]) -> list[str]:
    """What of a workspace's values is masked wherever it turns up: a password in an address, and what is named as one."""
    found: list[str] = []
    for name, value in values.items():
        found += secrets_in_parameter(name, str(value)) or secrets_in_url(str(value))
    return found


def without_secrets(values: Mapping[str, object]) -> dict[str, object]:
    """Give a workspace's values as they may be written down."""
    return {
        name: MASK if is_secret_key(name) and value else url_without_secrets(str(value))
        for name, value in values.items()
    }
