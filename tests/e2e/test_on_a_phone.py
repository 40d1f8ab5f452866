"""Pages on a phone: whatever a row offers is in sight."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, ViewportSize, expect

from tests.e2e.accessibility import expect_fits, expect_no_faults
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import (
    ADMIN,
    HOME,
    MEMBER,
    enter,
    expect_idle,
    go_to_settings,
    open_account,
    open_chat,
    open_search,
    open_share,
    sign_in,
)
from tests.e2e.screens import DESK

pytestmark = pytest.mark.screens(DESK, reason="is about phones, in sizes of its own")

PAGES = (
    "/account/workspaces/",
    "/w/demo/people/",
    "/w/demo/people/invite/",
    "/w/demo/tool-permissions/",
    "/w/demo/usage/",
    "/w/demo/activity/",
    "/w/demo/audit/overview/",
    "/w/demo/audit/reports/",
    "/w/demo/audit/reviews/",
    "/w/demo/audit/alerts/",
    "/w/demo/audit/settings/",
)
"""Those with tables, beside the two that are looked at closely."""
TOO_WIDE = """() => [...document.querySelectorAll('.table-scroll:not(:has([data-chart-table]))')]
  .filter((one) => one.scrollWidth > one.clientWidth)
  .map((one) => one.getAttribute('aria-label'))"""


ROOM_FOR_PLACEHOLDER = """(field) => {
  const style = getComputedStyle(field);
  const words = document.body.appendChild(document.createElement('span'));
  words.textContent = field.placeholder;
  Object.assign(words.style, { position: 'absolute', whiteSpace: 'pre', font: style.font });
  words.style.fontFamily = style.fontFamily;
  words.style.fontSize = style.fontSize;
  const width = words.getBoundingClientRect().width;
  words.remove();
  return field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - width;
}"""


def test_a_search_says_all_that_it_finds_on_a_phone(new_context: NewContext) -> None:
    """REL-2600: the example in the log's search was cut, and so was what the search for chats looks at."""
    page = new_context(viewport={"width": 390, "height": 800}, bypass_csp=True).new_page()
    enter(page, ADMIN, "/w/demo/audit/")
    assert page.locator("#filter-text").evaluate(ROOM_FOR_PLACEHOLDER) > 0
    page.goto(HOME)
    open_search(page)
    assert page.locator(".search-input").evaluate(ROOM_FOR_PLACEHOLDER) > 0


def test_rows_of_tables_are_cards_on_a_phone(new_context: NewContext) -> None:
    """REL-946: no table scrolls sideways, each value has its column's name, and the button of a row is in sight."""
    sign_in(new_context().new_page(), ADMIN)  # a session that can be signed out
    page = new_context(viewport={"width": 390, "height": 800}, bypass_csp=True).new_page()
    enter(page, ADMIN)
    page.goto("/account/tokens/")
    page.get_by_label("Name").fill("Nightly report of all calls and their outcomes")
    page.get_by_role("button", name="Create token").click()
    for address, button in (("/account/tokens/", "Revoke"), ("/account/sessions/", "Sign out ")):
        page.goto(address)
        offered = page.locator("tbody").get_by_role("button", name=button).first
        expect(offered).to_be_in_viewport(ratio=1)
        assert page.evaluate(TOO_WIDE) == [], address
        screenshot(page, f"cards-of-{address.split('/')[2]}")
        expect_no_faults(page, address)
    named = page.locator("tbody td").first
    label = named.evaluate("(cell) => getComputedStyle(cell, '::before').content")
    assert label == '"Address"'
    for address in PAGES:
        page.goto(address)
        expect_fits(page, address)
        assert page.evaluate(TOO_WIDE) == [], address


def test_buttons_of_an_answer_keep_their_distance_from_the_next_message(
    new_context: NewContext,
) -> None:
    """REL-955: where nothing hovers, they always show."""
    phone = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}
    page = new_context(**phone).new_page()
    enter(page, MEMBER)
    page.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    for text in ("What time is it in Tokyo?", "And in Lima?"):
        page.get_by_role("textbox", name="Message").first.fill(text)
        page.get_by_role("button", name="Send").click()
        page.wait_for_url("**/c/**")
        expect_idle(page)
    # A message is drawn anew when its row is known, so both are measured at one moment.
    distance = page.wait_for_function(
        """() => {
            const buttons = document.querySelector("article.answer .message-actions")?.getBoundingClientRect();
            const bubble = document.querySelectorAll(".user-message")[1]?.getBoundingClientRect();
            return buttons?.height && bubble?.height ? { px: bubble.top - buttons.bottom } : null;
        }"""
    ).json_value()
    assert distance["px"] >= 6


def test_a_note_covers_no_button_of_the_dialog_below_it(new_context: NewContext) -> None:
    """REL-2524: neither its last ones nor the way out."""
    page = new_context(viewport={"width": 390, "height": 700}, bypass_csp=True).new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect_idle(page)
    open_share(page)
    dialog = page.get_by_role("dialog", name="Share this chat")
    dialog.get_by_label("Everyone in").check()
    dialog.get_by_role("button", name="Share", exact=True).click()
    expect(page.locator("dialog .toast-box")).to_be_visible()
    for name in ("Close", "Stop sharing"):
        dialog.get_by_role("button", name=name, exact=True).click(trial=True)
    save = dialog.get_by_role(
        "button", name="Save changes"
    )  # cannot be pressed before something has changed
    below, note = save.bounding_box(), page.locator(".toast-box").bounding_box()
    assert below is not None
    assert note is not None
    assert note["y"] + note["height"] <= below["y"]
    screenshot(page, "note-over-a-dialog")
    expect_no_faults(page, "a note over a dialog")


def test_back_closes_a_menu_before_it_leaves_the_chat(new_context: NewContext) -> None:
    """REL-2525, REL-2530: what the menu leads to lies right behind the chat, and so does what a link in it leads to."""
    phone = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}
    page = new_context(**phone).new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect_idle(page)
    chat, menu = page.url, page.locator(":popover-open")
    more = page.locator(".chat-header").get_by_role("button", name="More for")
    more.click()
    expect(menu).to_have_count(1)
    page.go_back()
    expect(menu).to_have_count(0)
    assert page.url == chat
    more.click()
    menu.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url == chat
    page.get_by_role("button", name="Add to this message").click()
    menu.get_by_role("button", name="Ask another bud once").click()
    offers = page.get_by_role("listbox", name="Ask another bud this once")
    expect(offers).to_be_visible()
    page.go_back()
    expect(offers).to_have_count(0)
    expect(page.get_by_role("textbox", name="Message")).to_have_value("")
    assert page.url == chat
    open_account(page)
    menu.get_by_role("link", name="Settings").click()
    page.wait_for_url("**/account/**")
    page.go_back()
    page.wait_for_url(chat)


def expect_apart(left: Locator, right: Locator) -> None:
    beside, box = left.bounding_box(), right.bounding_box()
    assert beside
    assert box
    assert beside["x"] + beside["width"] <= box["x"]


def test_settings_say_where_one_is_and_lead_to_all_of_them(new_context: NewContext) -> None:
    """REL-3121: a menu on a phone, by keys and without scripts too; on a desk the same list is beside the page.

    REL-3173: also where the screen is turned while the menu is open.
    """
    page = new_context(viewport={"width": 390, "height": 800}, bypass_csp=True).new_page()
    enter(page, MEMBER, at="/account/sessions/")
    button = page.get_by_role("button", name="Settings Sessions")
    nav = page.get_by_role("navigation", name="Settings")
    expect(nav).to_be_hidden()
    button.press("Enter")
    expect(nav.get_by_role("link", name="Sessions")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(nav.get_by_role("link", name="API tokens")).to_be_focused()
    look_in_both_themes(page, "settings-menu-390")
    page.keyboard.press("Escape")
    expect(nav).to_be_hidden()
    expect(button).to_be_focused()
    go_to_settings(page, "Usage")
    heading = page.get_by_role("heading", name="Usage", level=1)
    expect(heading).to_be_visible()
    page.get_by_role("button", name="Settings Usage").click()
    page.set_viewport_size({"width": 1280, "height": 500})
    expect_apart(nav, heading)
    page.reload()
    expect(page.get_by_role("button", name="Settings Usage")).to_be_hidden()
    expect(nav.get_by_role("link", name="Usage")).to_be_in_viewport(ratio=0.9)
    page.keyboard.press("End")
    expect(nav.get_by_role("link", name="Usage")).to_be_in_viewport(ratio=0.9)

    plain = new_context(viewport={"width": 320, "height": 700}, java_script_enabled=False)
    page = plain.new_page()
    enter(page, MEMBER, at="/account/tokens/")
    go_to_settings(page, "Profile")
    expect(page.get_by_role("heading", name="Profile", level=1)).to_be_visible()
    expect_fits(page, "settings without scripts")


def test_a_row_of_the_admin_is_a_card_headed_by_its_name(new_context: NewContext) -> None:
    """REL-2523, REL-2756: with the box that selects it beside, and the page's whole name above. On paper all are there."""
    page = new_context(viewport={"width": 390, "height": 800}, bypass_csp=True).new_page()
    enter(page, ADMIN)
    page.goto("/admin/workspaces/membership/")
    row = page.locator("#result_list .data-row").first
    heading, box = row.locator("th"), row.get_by_role("checkbox")
    assert heading.evaluate("one => getComputedStyle(one, '::before').content") == "none"
    expect(box).to_have_accessible_name(f"Select {heading.inner_text()}")
    above, beside, card = (one.bounding_box() for one in (heading, box, row))
    assert above
    assert beside
    assert card
    assert abs(above["y"] - card["y"]) <= 1
    assert above["y"] < beside["y"] < above["y"] + above["height"]
    page.emulate_media(media="print")
    expect(page.locator(".simplebar-content-wrapper").first).to_have_css("overflow", "visible")
    page.emulate_media(media="screen")
    heading.get_by_role("link").click()
    name = page.get_by_role("heading", level=1).locator(".admin-place > :visible")
    expect(name).to_have_count(1)
    assert name.evaluate("one => one.scrollHeight <= one.clientHeight")
    expect_fits(page)


TOO_SMALL = """() => [...document.querySelectorAll(".message-actions button, .md-code button, .tool-card button")]
  .map((one) => [one.getBoundingClientRect(), one.ariaLabel || one.textContent.trim()])
  .filter(([box]) => box.width > 0 && (box.width < 24 || box.height < 32))
  .map(([box, name]) => `${name}: ${Math.round(box.width)} x ${Math.round(box.height)}`)"""


CUT = """(one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  const words = range.getBoundingClientRect(), room = one.getBoundingClientRect();
  return words.top < room.bottom - 1 && words.right > room.right + 1;
}"""
"""Whether an element shows a part of its words."""


def test_a_finger_finds_buttons_and_enter_does_what_its_key_says(new_context: NewContext) -> None:
    """REL-1462, REL-1463, REL-2782: buttons below messages, with the arrows of branches; and how a line is made."""
    size: ViewportSize = {"width": 320, "height": 640}
    page = new_context(viewport=size, has_touch=True, is_mobile=True, bypass_csp=True).new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "Show me all formats")
    expect(page.locator(".md-diagram img")).to_be_visible()
    expect_idle(page)
    page.get_by_role("button", name="Answer again").click()
    answer = page.locator("article.answer")
    expect(answer).to_contain_text("2/2")
    expect_idle(page)
    expect(answer.get_by_role("button", name="Bad answer")).to_be_visible()
    assert page.evaluate(TOO_SMALL) == []
    row = answer.locator(".message-actions")
    assert row.evaluate("one => one.scrollWidth <= one.clientWidth")
    row.scroll_into_view_if_needed()
    screenshot(page, "buttons-on-a-small-phone")
    expect_fits(page)
    page.set_viewport_size(
        {"width": 360, "height": 640}
    )  # where the numbers of tokens have no room
    assert not row.locator(".usage-words").evaluate(CUT)
    # As little room for a bud's name as beside the numbers of files and of what waits.
    page.set_viewport_size({"width": 240, "height": 640})
    assert not page.locator(".chat-header .chat-answers > .truncate").evaluate(CUT)
    page.set_viewport_size(size)
    expect_no_faults(page)

    field = page.get_by_role("textbox", name="Message")
    expect(field).to_have_attribute("enterkeyhint", "enter")
    field.fill("What time is it in Rome?")
    field.press("Enter")
    expect(field).to_have_value("What time is it in Rome?\n")
    # With a keyboard beside the tablet.
    field.press("Control+Enter")
    expect(field).to_have_value("")
    expect(page.locator(".user-message").last).to_contain_text("Rome")
    expect_idle(page)


def test_the_way_to_what_waits_lies_over_nothing(new_context: NewContext) -> None:
    """REL-2153: whoever reads above finds the button below the messages, which end where it begins."""
    page = new_context(viewport={"width": 390, "height": 700}, bypass_csp=True).new_page()
    enter(page, MEMBER)
    open_chat(page, "Notes", "What do I grow this year?\n" * 30 + 'Delete the note "old"')
    expect(page.get_by_role("button", name="Allow once")).to_be_visible()
    messages = page.locator(".chat-scroll")
    messages.evaluate("(box) => box.scrollTo(0, 0)")
    button = page.get_by_role("button", name="Waiting for you", exact=True)
    expect(button).to_be_in_viewport(ratio=1)
    above, below = messages.bounding_box(), button.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]
    expect_no_faults(page, "the way to what waits")
    button.click()
    expect(page.get_by_role("button", name="Allow once")).to_be_in_viewport(ratio=1)
    expect(button).to_have_count(0)
    page.get_by_role("button", name="Refuse…").click()
    page.get_by_role("button", name="Refuse the call").click()
    expect_idle(page)
