"""The documents: what they lead to and name is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from django.core.management import get_commands

from config.env import ROOT

DOCUMENTS: Final = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
SETTINGS: Final = ROOT / "docs" / "configuration.md"

FENCED: Final = re.compile(r"```.*?```", re.DOTALL)
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
HEADING: Final = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
COMMAND: Final = re.compile(r"manage\.py ([a-z_]+)")
SETTING: Final = re.compile(r"\bTRELLIS_[A-Z_]+\b(?!…)")
#: A file's path from the top of the repository, or from the folder `tests`.
FILE: Final = re.compile(r"`((?:[\w-]+/)+[\w.-]+\.(?:py|md|sql|tsx?|ya?ml))(?:::\w+)?`")

#: Commands that ``manage.py`` itself knows.
FIRST_STEPS: Final = {"up", "test"}
#: Variables of the tests, and of the compose file.
NOT_OF_THE_PRODUCT: Final = {"TRELLIS_HOST_NAME", "TRELLIS_PICTURES", "TRELLIS_TEST_SCREEN"}


def anchor(heading: str) -> str:
    """Give what a link names a heading by: its words in small letters, with hyphens between them."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")


@cache
def anchors(document: Path) -> set[str]:
    return {anchor(one) for one in HEADING.findall(FENCED.sub("", document.read_text()))}


def broken_links(document: Path, text: str) -> list[str]:
    """Give the links within the repository that lead nowhere."""
    found = []
    for link in LINK.findall(FENCED.sub("", text)):
        path, _, part = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (part and part not in anchors(target)):
            found.append(link)
    return found


def unknown_names(text: str) -> set[str]:
    """Give the commands, settings and files that a text names and that do not exist."""
    commands = set(COMMAND.findall(text)) - set(get_commands()) - FIRST_STEPS
    settings = set(SETTING.findall(text)) - set(SETTING.findall(SETTINGS.read_text()))
    files = {
        one
        for one in FILE.findall(text)
        if not (ROOT / one).exists() and not any(ROOT.glob(f"*/{one}"))
    }
    return commands | (settings - NOT_OF_THE_PRODUCT) | files


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_lead_to_what_is_there(document: Path) -> None:
    """Ours: each link leads to a file and a heading, and each command, setting and file exists."""
    text = document.read_text()
    assert broken_links(document, text) == []
    assert unknown_names(text) == set()


def test_the_check_of_references_sees() -> None:
    """Ours: a link, a command, a setting and a file that are gone are found."""
    text = "[a](docs/none.md) [b](docs/audit.md#none) [c](docs/audit.md) `config/none.py`"
    assert broken_links(ROOT / "README.md", text) == ["docs/none.md", "docs/audit.md#none"]
    assert unknown_names(f"{text} manage.py none, TRELLIS_NONE and `manage.py doctor`") == {
        *("none", "TRELLIS_NONE", "config/none.py")
    }
