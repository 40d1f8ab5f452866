"""Characters that a person does not see and a model does read, and names that look like other names. Pure.

A server's words reach models without such characters, and people with them made visible; the log keeps what came.

Source: Unicode Technical Report 36 and Technical Standard 39 (confusables, as far as Latin letters are imitated).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

_ANSI: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor
    "|\x1b\\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\\\)"  # operating system commands: titles, links
    "|\x1b[@-Z\\\\-_]"
)
_KINDS: Final = (
    ("text direction marks", re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")),
    (
        "zero-width characters",
        re.compile(
            "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\ufeff\u3164\uffa0]"
            "|[\u200c\u200d\ufe00-\ufe0f]{3,}"  # letters and emoji take one or two
        ),
    ),
    ("invisible tag characters", re.compile("[\U000e0000-\U000e0fff]")),
    (
        "variation selectors",
        re.compile("[\ufe00-\ufe0f]{2,}|(?<=[A-Za-z])[\ufe00-\ufe0f\u200c\u200d]*[\ufe00-\ufe0f]"),
    ),
    (
        "control characters",
        re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u206a-\u206f\ufff9-\ufffb]"),
    ),
)
# Joiners shape letters in several scripts and emoji; elsewhere they only hide. As many as stand side by side.
_IDLE_JOINER: Final = re.compile(
    "(?<=[\x00-\u05ff])[\u200c\u200d]++|(?<![\u200c\u200d])[\u200c\u200d]++(?=[\x00-\u05ff])"
)
_MOST_ROUNDS: Final = 10
_ANY: Final = re.compile("[\u200c\u200d\ufe00-\ufe0f]")
"""What may only be hidden beside some others."""

_LOOK_ALIKES: Final = str.maketrans(
    {
        **dict(zip("аеорсухіјѕԁһӏԛԝвкмнт", "aeopcyxijsdhlqwbkmht", strict=True)),
        **dict(zip("АВЕЗКМНОРСТУХІЈЅԌ", "abe3kmhopctyxijsg", strict=True)),
        **dict(zip("αβγεικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "abyeiknoptuxwabezhikmnoptyx", strict=True)),
        **dict(zip("ıȷɑɡɩʋ", "ijagiv", strict=True)),
        **dict(zip("01|", "oll", strict=True)),
    }
)
_SEPARATORS: Final = re.compile(r"[\s_\-.·‐-―]+")


def find_hidden(text: str) -> tuple[str, ...]:
    """Which kinds of hidden characters a text holds, in plain words; none for an honest one."""
    found = ["terminal escape codes"] if _ANSI.search(text) else []
    rest = _ANSI.sub("", text)
    found.extend(name for name, pattern in _KINDS if pattern.search(rest))
    if _IDLE_JOINER.search(rest) and "zero-width characters" not in found:
        found.append("zero-width characters")
    return tuple(found)


def strip_hidden(text: str) -> str:
    """The text as a person reads it, for a model."""
    if text.isascii() and text.isprintable():
        return text
    for _ in range(_MOST_ROUNDS):
        # Again until nothing is left: taking one trick away may put another together.
        stripped = _strip_once(text)
        if stripped == text:
            return text
        text = stripped
    # Nobody writes so by chance, and each round takes as long as the text is.
    return _strip_once(_ANY.sub("", text))


def strip_hidden_json(value: Any) -> Any:
    """The same of each text in a JSON value, also of the names of its parts."""
    if isinstance(value, str):
        return strip_hidden(value)
    if isinstance(value, Mapping):
        return {strip_hidden_json(name): strip_hidden_json(part) for name, part in value.items()}
    if isinstance(value, Sequence):
        return [strip_hidden_json(part) for part in value]
    return value


def _strip_once(text: str) -> str:
    text = _ANSI.sub("", text)
    for _, pattern in _KINDS:
        text = pattern.sub("", text)
    return _IDLE_JOINER.sub("", text)


def show_hidden(text: str) -> str:
    """The text with each hidden character written out, for a person who decides about it."""

    def written_out(match: re.Match[str]) -> str:
        return "".join(f"‹U+{ord(character):04X}›" for character in match.group())

    text = _ANSI.sub(written_out, text)
    for _, pattern in _KINDS:
        text = pattern.sub(written_out, text)
    return _IDLE_JOINER.sub(written_out, text)


def skeleton(name: str) -> str:
    """What two names share if they look alike at a glance."""
    plain = unicodedata.normalize("NFKC", strip_hidden(name)).translate(_LOOK_ALIKES)
    bare = "".join(
        character
        for character in unicodedata.normalize("NFKD", plain.casefold())
        if not unicodedata.combining(character)
    )
    return _SEPARATORS.sub("_", bare.translate(_LOOK_ALIKES)).replace("rn", "m").replace("vv", "w")


def mixes_scripts(text: str) -> bool:
    """Whether Latin letters stand beside Cyrillic or Greek ones, which honest words hardly do."""
    scripts = {
        unicodedata.name(character, "").partition(" ")[0]
        for character in text
        if character.isalpha()
    }
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK"}) > 1
