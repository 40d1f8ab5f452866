"""The comparison of screens with pictures in the repository sees what it should, and nothing else."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import NewContext
from tests.e2e.people import ADMIN, enter
from tests.e2e.pictures import MOST_CELLS, REFERENCES, SCREENS, check_picture
from tests.e2e.screens import DESK

pytestmark = pytest.mark.screens(DESK, reason="compares with pictures of one size")

HIDE = "(css) => { const one = document.createElement('style'); one.textContent = css; document.head.append(one); }"


def differs(page: Page, name: str) -> bool:
    """Whether the page differs from its picture, with what people need to go on."""
    try:
        check_picture(page, name)
    except AssertionError as error:
        message = str(error)
        assert all(
            word in message
            for word in ("expected.png", "got.png", "difference.png", "TRELLIS_PICTURES")
        )
        return True
    return False


def test_a_broken_screen_differs_from_its_picture(new_context: NewContext) -> None:
    """REL-577: a lost stylesheet, a missing bar, a panel over the page, the wrong theme; but no other words."""
    size = {"width": 1280, "height": 800}
    page = new_context(viewport=size, bypass_csp=True, color_scheme="light").new_page()
    page.goto("/accounts/login/")
    expect(page.locator("input[name=login]")).to_be_focused()
    name = "login-desktop-light"
    assert not differs(page, name)
    page.evaluate(
        "document.querySelector('.entrance-text').textContent = 'Companions that know your data, with each step in a book.'"
    )
    assert not differs(page, name)
    page.emulate_media(color_scheme="dark")
    assert differs(page, name)
    page.emulate_media(color_scheme="light")
    page.evaluate(
        "document.querySelectorAll('link[rel=stylesheet]').forEach((one) => one.remove())"
    )
    assert differs(page, name)
    enter(page, ADMIN)
    name = "server-import-desktop-light"
    for broken in (
        ".topbar { display: none; }",
        ".topbar * { visibility: hidden; }",
        ".page::after { content: ''; position: fixed; inset: 60% 10% 10% 60%; background: grey; }",
    ):
        page.goto("/w/demo/servers/import/")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert not differs(page, name)
        page.evaluate(HIDE, broken)
        assert differs(page, name), broken


@pytest.mark.parametrize("limit", [1_500_000])
def test_the_pictures_stay_small(limit: int) -> None:
    """REL-577: each screen has one, no other is kept, and all of them together are small."""
    kept = {path.stem: path.stat().st_size for path in REFERENCES.glob("*.png")}
    assert set(kept) == set(SCREENS)
    assert sum(kept.values()) < limit
    assert MOST_CELLS < 0.02
