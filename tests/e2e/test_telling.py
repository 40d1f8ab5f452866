"""How people away from the page learn that an answer is finished."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.people import MEMBER, enter, expect_idle, open_chat, open_sidebar, sign_in
from tests.isolation.world import BROWSER_KEY

pytestmark = pytest.mark.service_worker

IN_THE_BACKGROUND = (
    "Object.defineProperty(document, 'visibilityState', {get: () => 'hidden', configurable: true})"
)

A_PUSH_SERVICE = """
// This build of Chromium has no push service. What it would give is kept as a real one keeps it: per browser.
const point = Uint8Array.from(atob('KEY'), (one) => one.charCodeAt(0)).buffer;
const kept = () => {
  const key = localStorage.getItem('test.push');
  return key && {
    endpoint: 'https://127.0.0.1:40009/send/me',
    options: {applicationServerKey: Uint8Array.from(JSON.parse(key)).buffer},
    getKey: (name) => (name === 'auth' ? point.slice(0, 16) : point),
    unsubscribe: async () => localStorage.removeItem('test.push'),
  };
};
PushManager.prototype.getSubscription = async () => kept();
PushManager.prototype.subscribe = async ({applicationServerKey}) => {
  localStorage.setItem('test.push', JSON.stringify([...applicationServerKey]));
  return kept();
};
""".replace("KEY", BROWSER_KEY.replace("-", "+").replace("_", "/") + "=")


A_CLICK = """(url) => {
  // Only a person's click may bring a page to the front, and scripts see no notification in a worker that was not asked.
  WindowClient.prototype.focus = async function () { return this; };
  const click = new ExtendableEvent('notificationclick');
  click.notification = {close: () => undefined, data: {url}};
  dispatchEvent(click);
}"""


def test_a_new_answer_is_marked_on_every_device_until_one_shows_it(
    page: Page, new_context: NewContext
) -> None:
    """REL-608: asked on one device that nobody looks at, seen on another."""
    page.add_init_script(IN_THE_BACKGROUND)
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Lisbon?")
    expect(page.locator("article.answer").last).to_contain_text("In Lisbon it is now")
    expect_idle(page)
    open_sidebar(page).get_by_role("button", name="New chat", exact=True).click()
    new_here = (
        open_sidebar(page)
        .locator("li.chat-row", has_text="Lisbon")
        .first.get_by_role("img", name="new answer")
    )
    expect(new_here).to_be_visible()

    other = new_context().new_page()
    sign_in(other, MEMBER)
    row = open_sidebar(other).locator("li.chat-row", has_text="Lisbon").first
    expect(row.get_by_role("img", name="new answer")).to_be_visible()
    row.get_by_role("link").click()
    expect(other.locator("article.answer").last).to_be_visible()
    expect(new_here).to_have_count(0)
    other.goto("/w/demo/")
    open_sidebar(other)
    expect(row).to_be_visible()
    expect(row.get_by_role("img", name="new answer")).to_have_count(0)


def test_a_link_leads_to_the_exact_message(page: Page) -> None:
    """REL-609: as mails and notifications give it; a reload stays where the reader is."""
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Oslo?")
    expect(page.locator("article.answer").last).to_contain_text("In Oslo it is now")
    expect_idle(page)
    message = page.locator("article.answer[data-messages]").last.get_attribute("data-messages")
    assert message
    where = page.url
    page.goto("/w/demo/")
    page.goto(f"{where}#message-{message.split()[0]}")
    expect(page.locator("[data-found]")).to_be_visible()
    assert page.url == where


def test_people_are_notified_on_a_device_while_trellis_is_closed(new_context: NewContext) -> None:
    """REL-616: switched on, known again after a reload, tried, and removed; with permission, and without it."""
    page = new_context(permissions=["notifications"]).new_page()
    page.add_init_script(A_PUSH_SERVICE)
    enter(page, MEMBER, at="/w/demo/reminders/")
    page.get_by_role("switch", name="Show titles of chats in notifications").check()
    switch_on = page.get_by_role("button", name="Notify me on this device")
    switch_on.click()
    expect(page.get_by_text("You are notified on this device from now on.")).to_be_visible()
    device = page.locator(".device-row", has_text="Chrome on Linux")
    expect(device.get_by_text("this one")).to_be_visible()
    expect(device).to_contain_text("Shows titles of chats.")
    expect(switch_on).to_have_count(0)
    screenshot(page, "notifications-on-devices")
    device.get_by_role("button", name="Send a test").click()
    expect(
        page.get_by_text("We could not hand the test to this device's push service.")
    ).to_be_visible()
    expect(device).to_contain_text("It could not be reached.")
    device.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("You are notified on no device yet.")).to_be_visible()
    expect(switch_on).to_be_visible()

    blocked = new_context(permissions=[]).new_page()
    blocked.add_init_script("Notification.requestPermission = async () => 'denied'")
    enter(blocked, MEMBER, at="/w/demo/reminders/")
    blocked.get_by_role("button", name="Notify me on this device").click()
    expect(blocked.get_by_text("Your browser blocks notifications of this site.")).to_be_visible()


def test_a_switch_that_the_browser_refuses_stays_off_and_says_why(new_context: NewContext) -> None:
    """REL-786: in the chat, for notifications of an open page; and on, then off again, where the browser agrees."""
    for permissions in ([], ["notifications"]):
        page = new_context(permissions=permissions).new_page()
        enter(page, MEMBER)
        open_chat(page, "Notes", 'Delete the note "old"')
        page.locator(".waiting-button:visible").first.click()
        dialog = page.get_by_role("dialog", name="Waiting for you")
        switch = dialog.get_by_role("switch", name="Notify me while Trellis is in the background")
        switch.click()
        if permissions:
            expect(switch).to_be_checked()
            switch.click()
            expect(switch).not_to_be_checked()
            page.reload()
            page.locator(".waiting-button:visible").first.click()
        else:
            expect(dialog).to_contain_text("Your browser blocks notifications of this site.")
        expect(switch).not_to_be_checked()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Stop").click()


def test_the_browser_shows_what_is_pushed_to_it(
    new_context: NewContext, trellis: RunningTrellis
) -> None:
    """REL-618: also while no page of Trellis is open; a newer one about the same takes the older one's place.

    A click leads the open page to what it is about.
    """
    context = new_context(permissions=["notifications"])
    page = context.new_page()
    enter(page, MEMBER)
    page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
    session = context.new_cdp_session(page)
    found: list[dict[str, str]] = []
    session.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(event["registrations"]),
    )
    session.send("ServiceWorker.enable")
    page.wait_for_function("() => true")
    registration = next(one for one in found if one["scopeURL"] == f"{trellis.url}/")
    for number in (1, 2):
        event = {
            "title": f"The answer is finished {number}",
            "body": "Demo",
            "url": "/w/demo/reminders/",
            "tag": "trellis-1",
        }
        session.send(
            "ServiceWorker.deliverPushMessage",
            {
                "origin": trellis.url,
                "registrationId": registration["registrationId"],
                "data": json.dumps(event),
            },
        )
        page.wait_for_function(
            """async (title) => {
              const {ready} = navigator.serviceWorker;
              const shown = await (await ready).getNotifications();
              return shown.length === 1 && shown[0].title === title && shown[0].data.url === '/w/demo/reminders/';
            }""",
            arg=event["title"],
        )
    [worker] = context.service_workers
    worker.evaluate(A_CLICK, "/w/demo/reminders/")
    page.wait_for_url("**/w/demo/reminders/")
