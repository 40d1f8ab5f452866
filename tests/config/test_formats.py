"""Moments and numbers that people read are written in one place on the server and in one in the web app."""

from __future__ import annotations

import re
from typing import Final

import pytest

from config.env import ROOT
from tests.config.sources import APPS, ON_THEIR_OWN, TEMPLATES

HOMES: Final = {"workspaces/words/formats.py", "chat/web/src/formats.ts"}
#: What gives people a moment or a number in a spelling of its own, by the kind of file. What programs read is free:
#: `date:'c'` in templates; years, months and days as numbers in Python.
SPELLINGS: Final = {
    "template": r"""\|(?:date(?!:["']c["'])|time|intcomma|floatformat|filesizeformat)\b""",
    "python": r"""\b(?:date_format|time_format|number_format|intcomma|filesizeformat)\("""
    r"""|\bstrftime\((?!"%Y-?%m-?%dT)"""
    r"""|\{[^{}]*:[^{}]*%[aAbBcIpxX][^{}]*\}|\{[^{}]*:,[^{}]*\}""",
    "web": r"\.toLocale(?:Date|Time)?String\(|\bIntl\.(?:DateTime|Number|RelativeTime)Format",
}


def spellings(source: str, kind: str) -> list[tuple[int, str]]:
    """Find moments and numbers that are not written by their home; each with its line."""
    return [
        (number, line.strip())
        for number, line in enumerate(source.splitlines(), 1)
        if re.search(SPELLINGS[kind], line)
    ]


def test_moments_and_numbers_are_written_in_one_place() -> None:
    """REL-850: no template, no text of Python and no part of the web app has a spelling of its own."""
    web = ROOT / "chat" / "web" / "src"
    sources = [
        *(("template", path) for _, path in TEMPLATES),
        *(("web", path) for path in web.rglob("*.ts*")),
        *(
            ("python", path)
            for app in APPS
            for path in (ROOT / app).rglob("*.py")
            if not {"node_modules", "migrations"} & set(path.parts)
        ),
    ]
    names = [(kind, path, path.relative_to(ROOT).as_posix()) for kind, path in sources]
    assert {name for _, _, name in names} >= HOMES
    found = [
        f"{name}:{line} {text}"
        for kind, path, name in names
        if name not in HOMES | ON_THEIR_OWN
        for line, text in spellings(path.read_text(), kind)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("kind", "source", "count"),
    [
        ("template", '{{ row.at|date:"j M Y" }}', 1),
        ("template", "{{ row.at|date }}{{ row.count|intcomma }}", 1),
        ("template", "{{ body.size|filesizeformat }}", 1),
        ("template", "<time datetime=\"{{ row.at|date:'c' }}\">{{ row.at|timesince }}</time>", 0),
        ("template", "{{ row.at|local_moment }} {{ row.count|whole }}", 0),
        ("python", 'label = at.strftime("%H:%M")', 1),
        ("python", 'stamp = at.strftime("%Y%m%dT%H%M%SZ")', 0),
        ("python", 'told = f"{at:%d %B %Y}"', 1),
        ("python", 'name = f"{at:%Y%m%d}.csv"', 0),
        ("python", 'told = f"{count:,} rows"', 1),
        ("python", 'day = date_format(at, "j M")', 1),
        ("web", "new Date(at).toLocaleString()", 1),
        ("web", "new Intl.NumberFormat().format(count)", 1),
        ("web", "new Intl.PluralRules(LANGUAGE)", 0),
    ],
)
def test_the_check_of_spellings_sees(kind: str, source: str, count: int) -> None:
    """REL-850: the check finds moments and numbers with a spelling of their own, and those alone."""
    assert len(spellings(source, kind)) == count
