"""Styles: every rule is for something that is on a page, and every class there is one that something finds."""

from __future__ import annotations

import re
from typing import Final

from config.env import ROOT
from tests.config.sources import TEMPLATES

WEB: Final = ROOT / "chat" / "web" / "src"
PAGES: Final = (ROOT / "templates", *ROOT.glob("*/templates"), *ROOT.glob("*/*/templates"))
#: Classes that libraries give: of Django's forms, of htmx, of the admin's theme and of coloured code.
GIVEN: Final = re.compile(r"errorlist|htmx-request|simplebar-.*|hljs.*|class_|function_")
#: These pages have the styles of the admin's theme.
ADMIN: Final = re.compile(r"/(admin|allauth|unfold)/|/admin_place\.html$")
NAMED: Final = re.compile(r'\bclass="((?:{%.*?%}|{{.*?}}|[^"])*)"', re.DOTALL)
TAGS: Final = re.compile(r"{%.*?%}|{{.*?}}", re.DOTALL)
FOUND: Final = re.compile(r"\.((?:\\.|[\w-])+)")


def test_no_style_is_for_a_class_that_nothing_has() -> None:
    """Ours: a rule goes with the last element that it was for."""
    users = [
        *WEB.rglob("*.ts"),
        *WEB.rglob("*.tsx"),
        *(page for folder in PAGES for page in folder.rglob("*.html")),
    ]
    words = {word for path in users for word in re.findall(r"[\w-]+", path.read_text())}
    assert len(words) > 1000
    for path in sorted((WEB / "styles").glob("*.css")):
        rules = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        styled = {
            name
            for rule in re.findall(r"[^{};]+(?=\{)", rules)
            for name in re.findall(r"\.([a-z_][\w-]*)", rule)
        }
        assert not {name for name in styled - words if not GIVEN.fullmatch(name)}, path.name


def test_no_class_is_one_that_nothing_finds() -> None:
    """The styles are those of the last build of the web app."""
    pages = [path for _, path in TEMPLATES if not ADMIN.search(path.as_posix())]
    sources = [path.read_text() for path in (*pages, *WEB.rglob("*.ts*"))]
    given = {
        name
        for text in sources
        for names in NAMED.findall(text)
        for name in TAGS.sub(" ", names).split()
        if "$" not in name
    }
    styles = [path.read_text() for path in (WEB.parent / "dist").glob("*.css")]
    finds = {name.replace("\\", "") for text in (*styles, *sources) for name in FOUND.findall(text)}
    assert len(given) > 500
    assert sorted(given - finds) == []


def test_signs_of_styles_are_letters_of_the_own_font() -> None:
    """REL-2284: other fonts may have coloured pictures for them, as WebKit shows for ↕."""
    fonts = WEB.parent / "node_modules/@fontsource-variable/inter/index.css"
    latin = re.findall(r"unicode-range: ([^;]+);", fonts.read_text())[-1]
    spans = [[int(end, 16) for end in span[2:].split("-")] for span in latin.split(",")]
    signs = {
        sign
        for path in sorted((WEB / "styles").glob("*.css"))
        for drawn in re.findall(r'content: "([^"]*)"', path.read_text())
        for sign in drawn
        if not drawn.startswith("\\")
    }
    assert "↓" in signs
    assert [
        sign for sign in signs if not any(span[0] <= ord(sign) <= span[-1] for span in spans)
    ] == []
