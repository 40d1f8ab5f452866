"""Trellis as an app of its own, and without a connection."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.people import MEMBER, enter, expect_idle, open_chat, say

WORKER_IS_READY = "navigator.serviceWorker.ready.then(() => undefined)"
"""Else the browser shows its own page without a connection."""


def test_trellis_can_be_installed_and_says_that_it_cannot_be_reached(page: Page) -> None:
    """REL-552, SEC-396: with its signs; a page of ours in place of the browser's, and nothing of anybody's data kept."""
    enter(page, MEMBER)
    manifest = page.evaluate(
        "async () => (await fetch(document.querySelector('link[rel=manifest]').href)).json()"
    )
    assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
    for icon in manifest["icons"]:
        answer = page.request.get(icon["src"])
        assert answer.ok
        assert answer.headers["content-type"] == "image/png"
    page.evaluate(WORKER_IS_READY)
    where = page.url
    page.context.set_offline(True)
    page.goto("/w/demo/reminders/")
    expect(page.get_by_role("heading", name="Trellis cannot be reached")).to_be_visible()
    kept = page.evaluate(
        "async () => (await Promise.all((await caches.keys()).map(async (name) =>"
        " (await (await caches.open(name)).keys()).map((one) => new URL(one.url).pathname)))).flat()"
    )
    files = ("favicon.svg", "offline.js", "plain.css")
    assert sorted(kept) == ["/offline/", *(f"/static/web/{name}" for name in files)]
    expect(page.get_by_role("link", name="Try again")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_role("heading", name="Reminders")).to_be_visible()
    page.goto(where)
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()


def test_what_is_written_without_a_connection_is_sent_when_it_is_back(page: Page) -> None:
    """REL-652: also when its person has gone to another chat, and closed the page before."""
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect(page.locator("article.answer").last).to_contain_text("In Tokyo it is now")
    expect_idle(page)
    page.evaluate(WORKER_IS_READY)
    where = page.url
    page.context.set_offline(True)
    say(page, "What time is it in Oslo?")
    expect(page.get_by_text("Sends when the connection is back")).to_be_visible()
    page.keyboard.press("Control+Shift+O")
    expect(page.get_by_text("What time is it in Oslo?")).to_have_count(0)
    page.go_back()
    expect(page.get_by_text("What time is it in Oslo?").last).to_be_visible()
    page.goto("/w/demo/reminders/")
    expect(page.get_by_role("heading", name="Trellis cannot be reached")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_role("heading", name="Reminders")).to_be_visible()
    page.goto("/w/demo/")
    page.goto(where)
    expect_idle(page)
    expect(page.locator("article.answer").last).to_contain_text("Oslo")
    expect(page.locator("article.user-message")).to_have_count(2)
