"""Compare key screens with pictures in the repository: their shapes, not their letters.

A picture is kept at a quarter of its size. It is compared in cells of 20 by 20 pixels of the screen, by their brightness and
by how much they have in them. Another font or another date changes little of that; a missing bar, a lost stylesheet, a panel
in the wrong place or the wrong theme changes much.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image, ImageChops, ImageFilter
from playwright.sync_api import Page

from config.bootstrap import ROOT

REFERENCES: Final = Path(__file__).parent / "pictures"
ARTIFACTS: Final = ROOT / "test-artifacts"
RENEW: Final = "TRELLIS_PICTURES=reference python3 manage.py test tests/e2e/test_looks.py tests/e2e/test_shell.py"
SCALE: Final = 4
CELL: Final = 5
"""Pixels of the reduced picture."""
MOST_DIFFERENCE: Final = 26
"""Of a cell, out of 255."""
MOST_CELLS: Final = 0.01
"""The share of cells that may differ by more."""

_CHANGING: Final = (
    *("time", "canvas", "[data-relative]", ".avatar-tile", ".user-tile", "#toasts", ".toast-stack"),
    *(".sidebar-list", "[aria-label^='Notices']", ".home-title", ".home-lead"),
    *(".topbar-workspace", "[popovertarget='workspace-menu']"),
)
"""What differs from day to day, and from one run of the journeys to the next. Its room stays."""
_COMING: Final = ("[aria-label^='Waiting for you']", "[hx-get$='/waiting/']")
"""What is there or not. It takes no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What of a screen is compared: above all that has no fixed size."""

    until: str = ""
    """The selector of what the picture ends above."""
    height: int = 0
    """The pixels of the screen after which the picture ends; 0: all."""


_HOME: Final = Screen(until=".home-heading")
_ALL: Final = Screen()
SCREENS: Final[Mapping[str, Screen]] = {
    "login-desktop-light": _ALL,
    "login-phone-dark": _ALL,
    "home-desktop-light": _HOME,
    "home-desktop-dark": _HOME,
    "home-phone-light": _HOME,
    "commands-desktop-light": _HOME,
    "answer-desktop-light": _ALL,
    "answer-phone-dark": _ALL,
    "account-desktop-light": _ALL,
    "account-phone-dark": _ALL,
    "w-demo-reminders-desktop-dark": _ALL,
    "w-demo-reminders-phone-light": _ALL,
    "servers-desktop-light": Screen(height=150),
    "servers-phone-dark": Screen(height=260),
    "server-settings-desktop-light": _ALL,
    "server-import-desktop-light": _ALL,
    "server-add-desktop-dark": _ALL,
    "server-add-phone-light": _ALL,
    "people-invite-desktop-light": Screen(height=740),
    "people-link-desktop-dark": Screen(height=600),
    "people-link-phone-light": Screen(height=680),
    "audit-desktop-light": Screen(height=380),
    "audit-reports-phone-dark": Screen(until="dl.numbers"),
    "shell-Audit-1280-dark": Screen(height=180),
    "shell-Servers-360-light": Screen(height=260),
}


def check_picture(page: Page, name: str) -> None:
    """Compare the page with its picture in the repository; those that have none are left alone.

    Raises:
        AssertionError: it differs, with where the three pictures are and how to renew the one in the repository.
    """
    if name not in SCREENS:
        return
    found = picture_of(page, SCREENS[name])
    path = REFERENCES / f"{name}.png"
    if os.environ.get("TRELLIS_PICTURES") == "reference":
        REFERENCES.mkdir(exist_ok=True)
        found.quantize(48).save(path, optimize=True)
        return
    assert path.exists(), f"There is no picture of {name} yet. Make it: {RENEW}"
    with Image.open(path) as kept:
        expected = kept.convert("RGB")
    share, where = difference(expected, found)
    if share <= MOST_CELLS:
        return
    ARTIFACTS.mkdir(exist_ok=True)
    for kind, picture in {"expected": expected, "got": found, "difference": where}.items():
        picture.save(ARTIFACTS / f"{name}.{kind}.png")
    raise AssertionError(
        f"{name} looks different: {share:.1%} of it, and {MOST_CELLS:.0%} may. Look at {name}.expected.png, "
        f"{name}.got.png and {name}.difference.png in {ARTIFACTS}. If it is meant to look like this now: {RENEW}"
    )


def picture_of(page: Page, screen: Screen) -> Image.Image:
    """Take a picture at a quarter of its size, without what changes."""
    rules = f"{', '.join(_CHANGING)} {{ visibility: hidden !important; }} {', '.join(_COMING)} {{ display: none !important; }}"
    style = page.add_style_tag(content=rules)
    box = page.locator(screen.until).first.bounding_box() if screen.until else None
    end = int(box["y"]) if box else screen.height
    raw = page.screenshot(animations="disabled")
    style.evaluate("(one) => one.remove()")
    with Image.open(io.BytesIO(raw)) as taken:
        picture = taken.convert("RGB")
    if 0 < end < picture.height:
        picture = picture.crop((0, 0, picture.width, end))
    return picture.resize((picture.width // SCALE, picture.height // SCALE), Image.Resampling.BOX)


def difference(expected: Image.Image, found: Image.Image) -> tuple[float, Image.Image]:
    """Give the share of cells that differ, and a picture in which they are marked."""
    size = expected.size
    if abs(size[1] - found.height) > CELL or size[0] != found.width:
        return 1.0, found
    found = found.crop((0, 0, *size))
    marks = _differing(_brightness(expected), _brightness(found))
    marks = ImageChops.lighter(marks, _differing(_content(expected), _content(found)))
    share = sum(one > 0 for one in marks.tobytes()) / (marks.width * marks.height)
    red = Image.new("RGB", size, "#e00000")
    spread = marks.resize(size, Image.Resampling.NEAREST).point(lambda one: one and 160)
    return share, Image.composite(red, found, spread)


def _brightness(picture: Image.Image) -> Image.Image:
    return _cells(picture.convert("L"))


def _content(picture: Image.Image) -> Image.Image:
    """How much a cell differs from what is around it: letters, lines, edges."""
    grey = picture.convert("L")
    around = grey.filter(ImageFilter.GaussianBlur(CELL))
    return _cells(ImageChops.difference(grey, around).point(lambda one: min(255, one * 3)))


def _cells(grey: Image.Image) -> Image.Image:
    width, height = max(1, grey.width // CELL), max(1, grey.height // CELL)
    return grey.resize((width, height), Image.Resampling.BOX)


def _differing(one: Image.Image, other: Image.Image) -> Image.Image:
    """Mark cells that have nothing like them in the other picture, there or one cell beside."""
    there = ImageChops.lighter(_nearest(one, other), _nearest(other, one))
    return there.point(lambda value: 255 if value > MOST_DIFFERENCE else 0)


def _nearest(one: Image.Image, other: Image.Image) -> Image.Image:
    least = Image.new("L", one.size, 255)
    for x in (-1, 0, 1):
        for y in (-1, 0, 1):
            moved = ImageChops.offset(other, x, y)
            least = ImageChops.darker(least, ImageChops.difference(one, moved))
    return least
