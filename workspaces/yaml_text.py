"""YAML that people write and keep in repositories: read within bounds, written so that it can be compared."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import yaml
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from workspaces.errors import InvalidInput
from workspaces.words.formats import whole

LONGEST: Final = 2_000_000
"""Characters of one text."""
_WIDTH: Final = 100
_LARGEST: Final = 2**63
_MOST_VALUES: Final = 100_000
"""Of one text. Three characters can become a kilobyte while they are read."""
_DEEPEST: Final = 100
_LONGEST_NUMBER: Final = 100
"""Characters. In YAML a number may have parts such as minutes, which take long where there are very many."""
_NUMBERS: Final = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_MOST_FAULTS: Final = 20
_WORDS: Final = {
    "extra_forbidden": gettext_noop("There is no such field."),
    "missing": gettext_noop("This is required."),
    **dict.fromkeys(("bool_parsing", "bool_type"), gettext_noop("Write true or false.")),
    **dict.fromkeys(
        ("int_parsing", "int_type", "int_from_float"), gettext_noop("Write a whole number.")
    ),
    **dict.fromkeys(("float_parsing", "float_type"), gettext_noop("Write a number.")),
    "string_type": gettext_noop("Write a text."),
    **dict.fromkeys(("list_type", "tuple_type"), gettext_noop("Write a list.")),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type"),
        gettext_noop("Write names with values below it."),
    ),
}
_Shape = TypeVar("_Shape", bound=BaseModel)


class _Loader(yaml.CSafeLoader):
    """Reads plain values in C: in Python, some hundred kilobytes take ten seconds."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            raise _refusal("this number is too long", node.start_mark)
        value: Any = super().construct_object(node, deep=deep)
        if not _is_storable(value):
            raise _refusal("neither JSON nor a database holds this value", node.start_mark)
        return value


def _refusal(message: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, message, mark)


def _check_form(text: str) -> None:
    """Refuse aliases, of which a few lines unfold to gigabytes, and what takes more of memory or stack than there is."""
    depth = values = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        values += isinstance(event, yaml.NodeEvent)
        if values > _MOST_VALUES:
            raise _refusal("it holds too many values", event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            raise _refusal("aliases are not read", event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise _refusal("it is nested too deeply", event.start_mark)


def _is_storable(value: Any) -> bool:
    """Whether a plain value may stand in JSON, as REST takes it; what holds others is asked for each of them."""
    if isinstance(value, str):
        return _UNSTORABLE.search(value) is None
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -_LARGEST <= value < _LARGEST


class _Dumper(yaml.SafeDumper):
    """Writes long texts as blocks, so that people can read and compare them."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def read_yaml(text: str, *, longest: int = LONGEST) -> Any:
    """Read one document of plain values.

    Raises:
        InvalidInput: too long, no YAML, or with aliases; it names the line.
    """
    if len(text) > longest:
        raise InvalidInput(
            fields={
                "file": [
                    _("The file can have %(longest)s characters.") % {"longest": whole(longest)}
                ]
            }
        )
    try:
        _check_form(text)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = _(" See line %(line)s.") % {"line": mark.line + 1} if mark else ""
        raise InvalidInput(
            fields={"file": [_("This is no YAML that can be read.%(where)s") % {"where": where}]}
        ) from error


def write_yaml(document: Any) -> str:
    """Write plain values in their own order."""
    return yaml.dump(document, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_WIDTH)


def check_shape(shape: type[_Shape], document: object, *, what: str) -> _Shape:
    """Check a document of plain values.

    Args:
        what: told where it is no mapping.

    Raises:
        InvalidInput: with what is wrong at which field; lists name what they hold.
    """
    if not isinstance(document, Mapping):
        raise InvalidInput(fields={"file": [what]})
    try:
        return shape.model_validate(document)
    except RecursionError as error:
        raise InvalidInput(fields={"file": [_("This is nested too deeply.")]}) from error
    except ValidationError as error:
        faults: dict[str, list[str]] = {}
        for fault in error.errors(include_url=False, include_input=False)[:_MOST_FAULTS]:
            name = ".".join(_steps(fault["loc"], document)) or "file"
            faults.setdefault(name, []).append(_in_words(fault))
        raise InvalidInput(fields=faults) from error


def _in_words(fault: ErrorDetails) -> str:
    """Say a fault in words for people who write the file; the library's own where there are none."""
    if fault["type"] in {"literal_error", "enum"}:
        return _("It is one of: %(choices)s.") % {"choices": fault.get("ctx", {})["expected"]}
    if fault["type"] == "string_too_long":
        most = whole(fault.get("ctx", {})["max_length"])
        return _("It can have %(most)s characters.") % {"most": most}
    return gettext(_WORDS[fault["type"]]) if fault["type"] in _WORDS else fault["msg"]


def _steps(place: tuple[int | str, ...], document: object) -> list[str]:
    """The way to a fault, with names where the document has a list."""
    steps = []
    for step in place:
        name: object = step
        if isinstance(step, int) and isinstance(document, list) and step < len(document):
            document = document[step]
            if isinstance(document, Mapping):
                name = document.get("slug") or document.get("name") or step
        elif isinstance(document, Mapping):
            document = document.get(step)
        steps.append(str(name)[:60])
    return steps
