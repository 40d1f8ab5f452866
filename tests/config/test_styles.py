"""Styles: every rule is for something that is on a page."""

from __future__ import annotations

import re
from typing import Final

from config.env import ROOT

WEB: Final = ROOT / "chat" / "web" / "src"
PAGES: Final = (ROOT / "templates", *ROOT.glob("*/templates"), *ROOT.glob("*/*/templates"))
#: Classes that libraries give: of Django's forms, of htmx and of coloured code.
GIVEN: Final = re.compile(r"errorlist|htmx-request|hljs.*|class_|function_")


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
