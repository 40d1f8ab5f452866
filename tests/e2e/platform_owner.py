"""An owner of the platform, for as long as a journey needs one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page, ViewportSize

from config.demo.people import PASSWORD
from tests.e2e.accessibility import expect_fits, expect_no_faults
from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.looks import look_in_both_themes

SIZE: ViewportSize = {"width": 1280, "height": 800}
_SET = """
from workspaces.models import User
person, _ = User.objects.get_or_create(email="{email}", defaults={{"name": "{name}", "is_address_confirmed": True}})
person.set_password("{password}")
person.is_superuser = person.is_active = {value}
person.save()
"""


@contextmanager
def owner_page(
    trellis: RunningTrellis, new_context: NewContext, *, email: str, name: str, **options: Any
) -> Iterator[Page]:
    """A page of the platform's owner, who is no owner any more afterwards."""

    def put(*, value: bool) -> None:
        trellis.shell(_SET.format(email=email, name=name, password=PASSWORD, value=value))

    put(value=True)
    page = new_context(viewport=SIZE, bypass_csp=True, **options).new_page()
    page.goto("/accounts/login/")
    page.locator("input[name=login]").fill(email)
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("form button[type=submit]").first.click()
    page.wait_for_url(re.compile("/(w|admin)/"))
    yield page
    put(value=False)


def check(page: Page, name: str) -> None:
    """In both themes and on a phone axe finds nothing, and the page does not scroll sideways."""
    look_in_both_themes(page, name)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 390, "height": 800})
    screenshot(page, f"{name}-phone")
    expect_fits(page)
    expect_no_faults(page, f"{name}, on a phone", seen="at another width")
    page.set_viewport_size(SIZE)
