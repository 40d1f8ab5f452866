"""The screens that journeys run on: three widths, each in both themes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from zlib import crc32

from tests.extent import IS_FULL

ASKED: Final = os.environ.get("TRELLIS_TEST_SCREEN", "")
"""The name of the one screen that a developer wants to see journeys on."""
MAKES_PICTURES: Final = "TRELLIS_PICTURES" in os.environ
"""Whether the run renews the pictures of the docs, which show a desk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What a person looks at."""

    width: int
    height: int
    theme: Literal["light", "dark"]
    has_touch: bool

    @property
    def name(self) -> str:
        """As tests and ``TRELLIS_TEST_SCREEN`` name it."""
        return f"{self.width}-{self.theme}"

    def options(self) -> dict[str, Any]:
        """What a browser's context is made with."""
        return {
            "viewport": {"width": self.width, "height": self.height},
            "color_scheme": self.theme,
            "has_touch": self.has_touch,
            "is_mobile": self.has_touch,
        }


SCREENS: Final[dict[str, Screen]] = {
    screen.name: screen
    for theme in ("light", "dark")
    for screen in (
        Screen(width=1280, height=720, theme=theme, has_touch=False),
        Screen(width=820, height=1180, theme=theme, has_touch=True),
        Screen(width=390, height=800, theme=theme, has_touch=True),
    )
}
DESK: Final = "1280-light"


def screens_of(test: str, chosen: Sequence[str] = ()) -> list[Screen]:
    """Give the screens that a test runs on: all of its own in a run for a release, else one of them.

    The one is chosen by the test's name, so it is the same in each run, and all screens are spread over the tests.

    Args:
        test: its file and its name.
        chosen: the names of the screens that the test is about; none: all.
    """
    names = list(chosen) or ([ASKED] if ASKED else [DESK] if MAKES_PICTURES else list(SCREENS))
    if unknown := set(names) - set(SCREENS):
        raise ValueError(
            f"No screen is named {', '.join(unknown)}. There are {', '.join(SCREENS)}."
        )
    if not IS_FULL:
        names = [names[crc32(test.encode()) % len(names)]]
    return [SCREENS[name] for name in names]
