"""What axe finds on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as PatienceEnds

from tests.extent import IS_FULL

_FAULTS_ONLY: Final[dict[str, Any]] = {"resultTypes": ["violations"]}
"""Without it axe describes each element that is in order, which takes longer than to look at it."""
_COLOURS: Final = ("color-contrast", "link-in-text-block")
"""What axe takes two thirds of its time for."""
_OF_COLOURS: Final[dict[str, Any]] = {**_FAULTS_ONLY, "runOnly": _COLOURS}
_OF_ALL_ELSE: Final[dict[str, Any]] = {
    **_FAULTS_ONLY,
    "rules": {name: {"enabled": False} for name in _COLOURS},
}
_OVERFLOW: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SETTLE: Final = """async () => {
  await document.fonts.ready;
  const ends = (one) => one.effect.getComputedTiming().iterations !== Infinity;
  const running = () => document.getAnimations().filter((one) => one.playState === "running" && ends(one));
  for (let rounds = 0; running().length && rounds < 50; rounds++) running().forEach((one) => one.finish());
}"""
"""Colours that change with the theme, and dialogs that open, arrive at once.

Fonts are there: axe takes an icon for a word whose letters are too pale until its font is.
"""


def find_faults(
    page: Page,
    *,
    only_colours: bool = False,
    without_colours: bool = False,
    left_out: Sequence[str] = (),
) -> str:
    """Give axe's report on the page as it is now; empty if it finds nothing.

    Args:
        only_colours: for a page that was looked at in another theme already: nothing else changes with the theme.
        without_colours: for a page that was looked at in another width already.
        left_out: selectors of what was looked at on another page already. What holds for a page as a whole is still asked.
    """
    page.evaluate(SETTLE)
    axe = Axe("null") if page.evaluate("'axe' in window") else Axe()
    options = _OF_ALL_ELSE if without_colours else _FAULTS_ONLY
    context = {"exclude": [[one] for one in left_out]} if left_out else None
    results = axe.run(page, context, _OF_COLOURS if only_colours else options)
    return str(results.generate_report()) if results.violations_count else ""


@contextmanager
def trying_others(page: Page) -> Iterator[None]:
    """Look at a page in other sizes and themes meanwhile; afterwards it has those of the journey's screen again."""
    size = page.viewport_size
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    yield
    page.emulate_media(color_scheme="dark" if is_dark else "light")
    if size is not None:
        page.set_viewport_size(size)


def find_overflow(page: Page) -> int:
    """Give by how many pixels the page is too wide now."""
    return max(0, int(page.evaluate(_OVERFLOW)))


def expect_fits(page: Page, what: str = "") -> None:
    """Wait until the page does not scroll sideways: a chart takes its new size a moment after the window.

    Args:
        what: names the page and its state, for the report.
    """
    try:
        page.wait_for_function(f"() => ({_OVERFLOW}) <= 0")
    except PatienceEnds:
        raise AssertionError(f"{what or page.url}: {find_overflow(page)} px too wide") from None


def expect_no_faults(
    page: Page, what: str = "", *, seen: Literal["", "in another theme", "at another width"] = ""
) -> None:
    """Fail with axe's report if it finds something.

    Args:
        what: names the page and its state, for the report.
        seen: the same was looked at before. A theme changes colours alone; a width changes all but them, so that only
            a run for a release looks at them again.
    """
    only_colours, without_colours = seen == "in another theme", seen == "at another width"
    found = find_faults(
        page, only_colours=only_colours, without_colours=without_colours and not IS_FULL
    )
    if found:
        raise AssertionError(f"{what or page.url}: {found}")
