"""Journeys are spread over the screens, and what they end on is looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.e2e import screens
from tests.e2e.conftest import last_faults
from tests.e2e.screens import DESK, SCREENS, Screen, screens_of

TESTS = [
    f"{path.name}::{name}"
    for path in sorted(Path(__file__).parent.glob("test_*.py"))
    for name in re.findall(r"(?m)^def (test_\w+)", path.read_text())
]


def test_each_screen_has_its_share_of_the_journeys(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1461: the same one in each run; all of them for a release; and whichever a developer asks for."""
    monkeypatch.setattr(screens, "IS_FULL", False)
    monkeypatch.setattr(screens, "ASKED", "")
    monkeypatch.setattr(screens, "MAKES_PICTURES", False)
    chosen = [one.name for test in TESTS for one in screens_of(test)]
    assert len(chosen) == len(TESTS)
    for name in SCREENS:
        assert chosen.count(name) > len(TESTS) / 12, name
    assert [one.name for one in screens_of(TESTS[0], [DESK])] == [DESK]
    monkeypatch.setattr(screens, "ASKED", "390-dark")
    assert {one.name for test in TESTS for one in screens_of(test)} == {"390-dark"}
    assert [one.name for one in screens_of(TESTS[0], [DESK])] == [DESK]
    monkeypatch.setattr(screens, "ASKED", "400-dark")
    with pytest.raises(ValueError, match="400-dark"):
        screens_of(TESTS[0])
    monkeypatch.setattr(screens, "ASKED", "")
    monkeypatch.setattr(screens, "IS_FULL", True)
    assert screens_of(TESTS[0]) == list(SCREENS.values())


def test_a_page_has_the_screen_and_its_faults_are_found(page: Page, screen: Screen) -> None:
    """REL-1461: its size and its theme; what is too wide or has no name is told at the end."""
    page.goto("/accounts/login/")
    assert page.evaluate("innerWidth") == screen.width
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert is_dark == (screen.theme == "dark")
    assert page.evaluate("matchMedia('(pointer: coarse)').matches") == screen.has_touch
    assert last_faults(page.context) == []
    page.evaluate(
        """() => {
          const bar = document.createElement("button");
          bar.style.cssText = "display: block; width: 3000px; height: 30px";
          document.querySelector("main").append(bar);
        }"""
    )
    faults = " ".join(last_faults(page.context))
    assert "px too wide" in faults
    assert "button-name" in faults
    page.goto("/accounts/login/")
