"""Trellis as an app of its own, and without a connection."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import PATIENCE_MS, RunningTrellis, screenshot
from tests.e2e.people import ADMIN, MEMBER, enter, expect_idle, open_account, open_chat, say

pytestmark = pytest.mark.service_worker

WORKER_IS_READY = "navigator.serviceWorker.ready.then(() => undefined)"
"""Else the browser shows its own page without a connection."""


def test_trellis_can_be_installed_and_says_that_it_cannot_be_reached(page: Page) -> None:
    """REL-552: with its signs, and a page of ours in place of the browser's."""
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
    expect(page.locator("article.user-message")).to_have_count(0)
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


def take_along_notes(page: Page) -> None:
    """Attach the resource with all notes to the next message."""
    composer = page.get_by_role("textbox", name="Message").first
    composer.fill("#all")
    expect(page.get_by_role("option")).to_contain_text("All notes")
    composer.press("Enter")
    expect(page.locator(".composer")).to_contain_text("All notes")


def test_what_is_written_without_a_connection_is_sent_with_its_resource(page: Page) -> None:
    """REL-801: in a chat, and as the beginning of one, there without a word; also after the page was closed."""
    enter(page, MEMBER)
    open_chat(page, "Notes", "Show me the formatting")
    expect(
        page.locator(".md-diagram img")
    ).to_be_visible()  # before a turn has begun, all is idle too
    expect_idle(page)
    chat = page.url
    wait_for_shell(page)
    attached = page.locator("article.user-message").last.get_by_role("list", name="Attachments")

    take_along_notes(page)
    page.context.set_offline(True)
    say(page, "Sum up what is attached")
    expect(page.get_by_text("Sends when the connection is back")).to_be_visible()
    expect(page.get_by_text("with All notes")).to_be_visible()
    page.goto(chat)
    expect(page.get_by_text("with All notes")).to_be_visible()
    page.context.set_offline(False)
    expect(attached).to_contain_text("All notes")
    expect_idle(page)
    expect(page.locator("article.user-message")).to_have_count(2)

    page.goto("/w/demo/")
    page.locator(".bud-card").get_by_role("button", name="Notes").first.click()
    take_along_notes(page)
    page.context.set_offline(True)
    say(page, "")
    expect(page.get_by_text("Sends when the connection is back")).to_be_visible()
    page.goto("/w/demo/")
    expect(page.get_by_text("with All notes")).to_be_visible()
    page.context.set_offline(False)
    page.wait_for_url("**/c/**")
    expect(attached).to_contain_text("All notes")
    expect_idle(page)
    expect(page.locator("article.user-message")).to_have_count(1)


PAGES_KEPT = """async () => {
  const found = [];
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    for (const request of await cache.keys()) {
      const answer = await cache.match(request);
      const isText = /text|javascript|json/.test(answer.headers.get("content-type") ?? "text");
      found.push([name, new URL(request.url).pathname, isText ? await answer.text() : ""]);
    }
  }
  return found;
}"""
HAS_SHELL = """async ([home, patience]) => {
  for (const end = Date.now() + patience; Date.now() < end; ) {
    for (const name of await caches.keys())
      if (name.startsWith("trellis-shell-") && (await (await caches.open(name)).match(home))) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}"""
STRANGER = "0197d3a0-0000-7000-8000-000000000001"
KEYS = "Object.keys(localStorage).filter((key) => /draft|unsent/.test(key) && localStorage[key] !== '[]')"


def kept(page: Page) -> dict[str, str]:
    """What the browser keeps of our pages, by path."""
    return {path: text for _, path, text in page.evaluate(PAGES_KEPT)}


def wait_for_shell(page: Page) -> None:
    """Wait until the worker has kept the page."""
    assert page.evaluate(HAS_SHELL, ["/w/demo/", PATIENCE_MS])


def test_the_chat_opens_without_a_connection_and_sends_what_was_written(page: Page) -> None:
    """REL-575, SEC-396: a chat and a new one; nothing of a conversation is kept, and no token."""
    page.goto("/healthz")
    before = ("trellis-offline-1", "trellis-files-0", "trellis-shell-0-somebody")
    page.evaluate("(names) => Promise.all(names.map((name) => caches.open(name)))", list(before))
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect(page.locator("article.answer").last).to_contain_text("In Tokyo it is now")
    expect_idle(page)
    chat = page.url
    wait_for_shell(page)
    files = kept(page)
    assert {path for path in files if not path.startswith("/static/web/")} == {
        *("/", "/offline/", "/w/demo/"),
    }
    assert '"csrf_token": ""' in files["/w/demo/"]
    # Of the release before nothing is left.
    assert not set(before) & set(page.evaluate("caches.keys()"))
    assert "Tokyo" not in "".join(files.values())
    page.context.set_offline(True)
    page.goto(chat)
    expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    say(page, "What time is it in Oslo?")
    expect(page.get_by_text("Sends when the connection is back")).to_be_visible()
    screenshot(page, "offline-chat")
    page.goto("/")
    expect(page).to_have_url(re.compile("/w/demo/$"))
    expect(page.get_by_text("Your chats show when the connection is back.")).to_be_attached()
    say(page, "What time is it in Lima?")
    expect(page.get_by_text("Sends when the connection is back")).to_be_visible()
    screenshot(page, "offline-home")
    page.goto("/w/elsewhere/")
    expect(page.get_by_role("heading", name="Trellis cannot be reached")).to_be_visible()
    page.goto("/w/demo/")
    expect(page.get_by_text("What time is it in Lima?")).to_be_visible()
    page.context.set_offline(False)
    page.wait_for_url("**/c/**")
    assert page.url != chat
    expect(page.locator("article.answer").last).to_contain_text("Lima")
    expect_idle(page)
    expect(page.locator("article.user-message")).to_have_count(1)
    page.goto(chat)
    expect(page.locator("article.answer").last).to_contain_text("Oslo")
    expect(page.locator("article.user-message")).to_have_count(2)
    assert page.evaluate("JSON.parse(document.getElementById('boot').textContent).csrf_token")


def test_nothing_of_a_person_stays_after_they_sign_out(page: Page) -> None:
    """REL-576, SEC-396: pages, drafts and unsent messages; who has some is asked first. The next person finds nothing."""
    enter(page, MEMBER)
    expect(page.get_by_role("textbox", name="Message")).to_be_enabled()
    wait_for_shell(page)
    page.context.set_offline(True)
    page.goto("/w/demo/")
    open_account(page)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You can sign out when the connection is back.")).to_be_visible()
    page.get_by_role("textbox", name="Message").fill("Half a thought")
    assert page.evaluate(KEYS) != []
    page.context.set_offline(False)
    expect(page.locator(".bud-card").first).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("Half a thought")
    page.evaluate(
        "localStorage.setItem(Object.keys(localStorage).find((key) => key.includes('.draft.'))"
        ".replace('.draft.', '.unsent.').replace(/[.]home.*/, ''), JSON.stringify([{ client_id: 'a' }]))"
    )
    open_account(page)
    page.get_by_role("button", name="Sign out").click()
    asked = page.get_by_role("dialog", name="A message was not sent yet")
    expect(asked).to_be_visible()
    asked.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/accounts/login/**")
    assert page.evaluate(KEYS) == []
    assert all(path == "/offline/" or path.startswith("/static/") for path in kept(page))
    page.context.set_offline(True)
    page.goto("/w/demo/")
    expect(page.get_by_role("heading", name="Trellis cannot be reached")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.evaluate(f"localStorage.setItem('trellis.draft.{STRANGER}.demo.home', 'x')")
    enter(page, ADMIN)
    expect(page.get_by_role("textbox", name="Message")).to_be_enabled()
    wait_for_shell(page)
    assert ADMIN in kept(page)["/w/demo/"]
    assert MEMBER not in "".join(kept(page).values())
    # A draft of their own may have come from the server.
    assert STRANGER not in "".join(page.evaluate(KEYS))


def test_nothing_of_a_person_is_shown_or_sent_after_their_session_ended(
    page: Page, trellis: RunningTrellis
) -> None:
    """SEC-415: it waits for its person, and goes when somebody else signs in, also in a tab that was left open."""
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect(page.locator("article.answer").last).to_contain_text("In Tokyo it is now")
    expect_idle(page)
    page.context.set_offline(True)
    say(page, "Where did I sow the medlar?")  # of which nobody else has a chat
    expect(page.get_by_text("Sends when the connection is back")).to_be_visible()
    page.get_by_role("textbox", name="Message").fill("Half a thought")
    trellis.shell(
        "from django.contrib.sessions.models import Session; Session.objects.all().delete()"
    )
    page.context.set_offline(False)
    expect(page.get_by_text("Your session has ended")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("Half a thought")
    drafts = [key for key in page.evaluate(KEYS) if key.startswith("trellis.draft.")]
    member_id = drafts[0].split(".")[2]
    other = page.context.new_page()
    enter(other, ADMIN)
    expect(other.get_by_role("textbox", name="Message")).to_have_value("")
    expect(page.get_by_role("heading", name="Can't show this conversation")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_count(0)
    for one in (page, other):
        expect(one.get_by_text("medlar")).to_have_count(0)
        expect(one.locator(".user-message")).to_have_count(0)
        # A draft of their own may have come from the server.
        assert member_id not in "".join(one.evaluate(KEYS))
    sent = other.request.get("/api/search/?q=medlar", headers={"X-Workspace": "demo"})
    assert sent.ok
    assert sent.json() == []
