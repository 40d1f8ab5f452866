"""Every page of the admin: in both themes, at three widths, for whoever may open most of them."""

from __future__ import annotations

import re
from collections import deque
from typing import Literal
from zlib import crc32

from playwright.sync_api import Page, expect

from tests.e2e.accessibility import find_faults, find_overflow
from tests.e2e.conftest import NewContext, RunningTrellis
from tests.e2e.looks import CHANGE_THEME, THEMES
from tests.e2e.people import ADMIN, enter, member_of_demo
from tests.extent import IS_FULL

Theme = Literal["light", "dark"]
WIDTHS = (1280, 768, 360)
FRAME = ("header.topbar", "nav[aria-label='Admin']")
FIRST_ROW = "#result_list th a[href*='/change/'], #result_list td a[href*='/change/']"
FORBID_STORAGE = """
for (const name of ["localStorage", "sessionStorage"]) {
  const get = () => { throw new DOMException("Access is denied for this document.", "SecurityError"); };
  Object.defineProperty(window, name, { configurable: true, get });
}
"""
"""As a browser that blocks all that sites could keep."""
MAKE_OWNER = """
from workspaces.models import User, Workspace
Workspace.objects.update_or_create(
    slug="second-garden", defaults={{"name": "The second garden beside the house", "is_active": {value}}}
)
User.objects.filter(email="{email}").update(is_superuser={value})
"""
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/)\d+(?=/)")


def beside(page: Page, path: str) -> list[str]:
    """Give what a page of the admin leads to: from a list the form and the first row, from a row its other pages."""
    if re.fullmatch(r"/admin/\w+/\w+/", path):
        ways = [f"a[href^='{path}add/']", FIRST_ROW]
    elif path.endswith("/change/"):
        ways = ["a[href$='/history/']", "a[href$='/delete/']"]
    else:
        return []
    found = [page.locator(way).first for way in ways if page.locator(way).count()]
    return [(one.get_attribute("href") or "").partition("?")[0] for one in found]


def part_of(path: str) -> str:
    """Name the part of the admin's package that draws a page; what is drawn otherwise has its own."""
    found = re.fullmatch(r"/admin/\w+/\w+/(?:[^/]+/)?(add|change|history|delete)/", path)
    return found[1] if found else "list" if re.fullmatch(r"/admin/\w+/\w+/", path) else path


def is_asked_of_axe(path: str, parts: set[str]) -> bool:
    """Whether axe looks at a page.

    Histories differ in their rows alone, and so do deletions. A run that is not for a release shows it the first of
    each and some others.
    """
    part = part_of(path)
    return (
        IS_FULL
        or part not in {"history", "delete"}
        or part not in parts
        or crc32(path.encode()) % 4 == 0
    )


def faults(
    page: Page, path: str, theme: Theme, *, asks_axe: bool = True, is_first: bool = True
) -> list[str]:
    """What axe finds, and what is too wide; the second theme is asked for its colours alone.

    Colours are the same at every width, and the middle one shows nothing that the others hide: a run that is not for a
    release asks axe for neither. What is shown on a phone alone comes with the part of the admin that draws the page, so
    there it asks for the colours of the first page of each. The frame is the same on all of them, and is half of what
    axe would look at: it looks at it there too.

    Args:
        asks_axe: otherwise it is only seen whether all fits.
        is_first: no page of this part was looked at before.
    """
    found = []
    for width in WIDTHS if IS_FULL or theme == THEMES[0] else WIDTHS[:1]:
        page.set_viewport_size({"width": width, "height": 800})
        if pixels := find_overflow(page):
            found.append(f"{path}, {width} px: {pixels} px too wide")
        if not asks_axe or (width == WIDTHS[1] and not IS_FULL):
            continue
        knows_colours = width != WIDTHS[0] and not is_first and not IS_FULL
        report = find_faults(
            page,
            only_colours=theme == "dark",
            without_colours=knows_colours,
            left_out=() if is_first or IS_FULL else FRAME,
        )
        if report:
            found.append(f"{path}, {width} px, {theme}: {report}")
    return found


def test_axe_finds_nothing_on_any_page_of_the_admin(
    new_context: NewContext, trellis: RunningTrellis
) -> None:
    """REL-668: each list, each form, the first row of each list with its history and its deletion.

    The owner chooses between workspaces, whose names are long.
    """
    trellis.shell(MAKE_OWNER.format(email=ADMIN, value=True))
    try:
        page = new_context(bypass_csp=True).new_page()
        enter(page, ADMIN, at="/admin/")
        links = page.get_by_role("navigation", name="Admin").get_by_role("link")
        expect(links.first).to_be_visible()
        hrefs = [link.get_attribute("href") or "" for link in links.all()]
        left = deque(href for href in hrefs if href.startswith(("/admin/", "/platform/")))
        seen: set[str] = set()
        parts: set[str] = set()
        found: list[str] = []
        while left:
            path = left.popleft()
            if (kind := _ID.sub("…", path)) in seen:
                continue
            seen.add(kind)
            page.emulate_media(color_scheme="light")
            page.set_viewport_size({"width": WIDTHS[0], "height": 800})
            answer = page.goto(path)
            assert answer is not None
            assert answer.status == 200, path
            left += beside(page, path)
            is_first, asks_axe = part_of(path) not in parts, is_asked_of_axe(kind, parts)
            parts.add(part_of(path))
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                if (
                    "/admin/" in page.url
                ):  # some lead to a page of the product, which follows the system at once
                    page.evaluate(CHANGE_THEME, theme == "dark")
                found += faults(page, path, theme, asks_axe=asks_axe, is_first=is_first)
        assert len(seen) > 40, sorted(seen)
        assert not found, "\n".join(found)
    finally:
        trellis.shell(MAKE_OWNER.format(email=ADMIN, value=False))


def test_faults_at_the_fields_of_a_form_can_be_read(new_context: NewContext) -> None:
    """REL-668: in both themes, also on the phone."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, ADMIN)
    path = "/admin/chat/modelprovider/add/"
    found: list[str] = []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.goto(path)
        # What the browser would say by itself is not what is looked at.
        page.locator("#modelprovider_form").evaluate("form => { form.noValidate = true; }")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator(".errorlist")).to_have_count(3)
        page.evaluate(CHANGE_THEME, theme == "dark")
        for width in (WIDTHS[0], WIDTHS[-1]):
            page.set_viewport_size({"width": width, "height": 800})
            if report := find_faults(page):
                found.append(f"{width} px, {theme}: {report}")
    assert not found, "\n".join(found)


def test_a_view_of_a_list_is_saved_changed_and_deleted_by_keyboard(
    new_context: NewContext,
) -> None:
    """REL-820: and axe finds nothing in its forms."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, ADMIN, at="/admin/mcp_servers/mcptool/?is_enabled__exact=1&o=-1")
    views = page.get_by_role("region", name="Saved views")
    views.get_by_text("Save this view").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("Tools in use")
    page.keyboard.press("Enter")
    link = views.get_by_role("link", name="Tools in use")
    expect(link).to_have_attribute("aria-current", "true")
    page.goto("/admin/mcp_servers/mcptool/")
    link.press("Enter")
    expect(link).to_have_attribute("aria-current", "true")
    page.goto(page.url.replace("is_enabled__exact=1", "is_enabled__exact=0"))
    expect(views).to_contain_text("changes that are not saved")
    views.get_by_role("button", name="Update this view").press("Enter")
    expect(views).not_to_contain_text("changes that are not saved")
    found: list[str] = []
    for opened in ("Rename or share", "Delete"):
        views.get_by_text(opened, exact=True).press("Enter")
        for theme in THEMES:
            page.evaluate(CHANGE_THEME, theme == "dark")
            found += faults(page, f"{opened} of a view", theme)
    assert not found, "\n".join(found)
    views.get_by_role("button", name="Delete view").press("Enter")
    expect(link).to_have_count(0)


def test_a_list_is_filtered_by_keyboard(new_context: NewContext) -> None:
    """REL-3325: the filters open and close by their button, and the focus goes in and comes back.

    REL-3326: the open page is in sight in the list of pages, which is longer than the screen.
    """
    page = new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True).new_page()
    enter(page, ADMIN, at="/admin/mcp_servers/mcptool/")
    here = page.get_by_role("navigation", name="Admin").locator("[aria-current=page]")
    expect(here).to_be_in_viewport(ratio=1)
    button = page.get_by_role("button", name="Filters")
    for ends_by in ("Escape", "Enter"):
        page.get_by_role("textbox", name="Type to search").focus()
        page.keyboard.press("Tab")
        expect(button).to_be_focused()
        page.keyboard.press("Enter")
        expect(button).to_have_attribute("aria-expanded", "true")
        first = page.locator("#changelist-filter a").first
        expect(first).to_be_focused()
        page.keyboard.press("Tab")
        if ends_by == "Escape":
            page.keyboard.press("Escape")
            expect(button).to_be_focused()
            expect(first).not_to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**is_enabled__exact=1**")


def test_the_admin_works_where_the_browser_keeps_nothing(new_context: NewContext) -> None:
    """REL-2152: the list of pages opens on a phone, selected rows have their actions, and no script fails.

    REL-2636: no bar lies over the filters.
    """
    context = new_context(viewport={"width": 390, "height": 800})
    context.add_init_script(FORBID_STORAGE)
    page = context.new_page()
    enter(page, ADMIN, at="/admin/mcp_servers/mcptool/")
    admin = page.get_by_role("navigation", name="Admin")
    expect(admin.get_by_role("link", name="Buds", exact=True)).not_to_be_visible()
    page.get_by_role("button", name="Show the list of pages").click()
    expect(admin.get_by_role("link", name="Buds", exact=True)).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/admin/mcp_servers/mcptool/")
    page.locator("input.action-select:visible").first.check()
    expect(page.get_by_text(re.compile(r"^1 of \d+ selected"))).to_be_in_viewport(ratio=1)
    bar = page.locator("#changelist-actions")
    expect(bar).to_be_in_viewport(ratio=1)
    page.get_by_text("Filters").first.click()
    page.locator("#changelist-filter h3").first.click(trial=True)


def test_a_long_address_leaves_the_box_that_selects_its_row_free(
    new_context: NewContext, trellis: RunningTrellis
) -> None:
    """REL-3338: on a phone they lay on each other, and the list scrolled sideways."""
    email = "aa.bartholomew-montgomery@department.company.example"
    trellis.shell(member_of_demo(email, "Bartholomew Montgomery"))
    page = new_context(viewport={"width": 390, "height": 800}).new_page()
    enter(page, ADMIN, at=f"/admin/workspaces/membership/?q={email}")
    name = page.locator("#result_list").get_by_role("link", name=email).bounding_box()
    box = page.locator("#result_list input.action-select").bounding_box()
    assert name
    assert box
    assert name["x"] + name["width"] <= box["x"], (name, box)
    list_of_rows = page.locator("#result_list")
    assert list_of_rows.evaluate("list => list.scrollWidth <= list.parentElement.clientWidth")
