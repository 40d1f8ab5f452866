"""YAML that people write and keep in repositories: read within bounds, written so that it can be compared."""

from __future__ import annotations

from typing import Any, Final

import yaml

from workspaces.errors import InvalidInput

LONGEST: Final = 2_000_000
"""Characters of one text."""
_WIDTH: Final = 100


class _Loader(yaml.SafeLoader):
    """Reads plain values. Aliases are refused: a few lines of them unfold to gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not read", mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


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
        raise InvalidInput(fields={"file": [f"The file can have {longest:,} characters."]})
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" See line {mark.line + 1}." if mark else ""
        raise InvalidInput(
            fields={"file": [f"This is no YAML that can be read.{where}"]}
        ) from error


def write_yaml(document: Any) -> str:
    """Write plain values in their own order."""
    return yaml.dump(document, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_WIDTH)
