"""A page in both themes, on a desk and on a phone."""

from __future__ import annotations

from typing import Final, Literal

from playwright.sync_api import Page

from tests.e2e.accessibility import SETTLE, expect_fits, expect_no_faults
from tests.e2e.conftest import screenshot
from tests.extent import IS_FULL

THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
CHANGE_THEME: Final = "isDark => document.documentElement.classList.toggle('dark', isDark)"
"""The admin's package reads the system's theme when a page is loaded, and sets this class."""
_LOOKS: Final = [(width, theme) for width in (1280, 390) for theme in THEMES]


def look_at(page: Page, what: str, *, always_all: bool = False) -> None:
    """Fail if a page is too wide or axe finds something; a run for a release looks at each theme at each width.

    Args:
        what: names the page, for the report and its pictures.
        always_all: so does every other run; else it looks at a light desk and a dark phone.
    """
    for width, theme in _LOOKS if always_all or IS_FULL else (_LOOKS[0], _LOOKS[-1]):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=theme)
        if "/admin/" in page.url:
            page.evaluate(CHANGE_THEME, theme == "dark")
        expect_fits(page, what)
        expect_no_faults(page, f"{what}, {width} px, {theme}")
        screenshot(page, f"{what}-{width}-{theme}")
    page.set_viewport_size({"width": 1280, "height": 800})


def look_in_both_themes(page: Page, what: str, *, was_seen: bool = False) -> None:
    """Take pictures of a page as it is, and fail if axe finds something.

    Args:
        what: names the page, for the report and its pictures.
        was_seen: in both themes at another width, which has the same colours.
    """
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.evaluate(SETTLE)
        screenshot(page, f"{what}-{theme}")
        if theme == THEMES[0]:
            expect_no_faults(page, f"{what}, {theme}", seen="at another width" if was_seen else "")
        elif not was_seen or IS_FULL:
            expect_no_faults(page, f"{what}, {theme}", seen="in another theme")
