"""What the chat takes from a device: its camera, its microphone, its clipboard and its voice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect

from tests import documents
from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import MEMBER, enter, expect_idle, open_chat, open_sidebar
from tests.e2e.screens import DESK

LISTENING: Final = """() => {
  // This browser is built without a recognizer: one that speaks the interface of the Web Speech API.
  class Recognizer extends EventTarget {
    start() { window.listening = this; }
    stop() { this.onend?.(); }
    hear(words) {
      const result = Object.assign([{ transcript: words }], { isFinal: true });
      this.onresult({ resultIndex: 0, results: [result] });
    }
    fail(error) { this.onerror({ error }); this.onend(); }
  }
  window.SpeechRecognition = window.webkitSpeechRecognition = Recognizer;
}"""
SPEAKING: Final = """() => {
  window.spoken = [];
  speechSynthesis.speak = (one) => window.spoken.push(one);
}"""


def test_a_message_is_dictated(new_context: NewContext) -> None:
    """REL-1232: each sentence is added to what is written; who is not let listen reads what to do."""
    context = new_context(bypass_csp=True)
    context.add_init_script(f"({LISTENING})()")
    page = context.new_page()
    enter(page, MEMBER)
    field = page.get_by_role("textbox", name="Message").first
    field.fill("What time is it")
    page.get_by_role("button", name="Dictate", exact=True).click()
    expect(page.get_by_role("button", name="Stop dictating")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.evaluate("listening.hear('in Tokyo?')")
    page.evaluate("listening.hear('And in Rome?')")
    expect(field).to_have_value("What time is it in Tokyo? And in Rome?")
    expect_no_faults(page)
    screenshot(page, "dictating")
    page.get_by_role("button", name="Stop dictating").click()
    dictate = page.get_by_role("button", name="Dictate", exact=True)
    dictate.click()
    page.evaluate("listening.fail('not-allowed')")
    expect(page.locator("#toasts, .toast-stack").get_by_text("microphone")).to_be_visible()
    expect(dictate).to_have_attribute("aria-pressed", "false")


@pytest.mark.screens(DESK, reason="is about phones, in sizes of its own")
def test_a_photo_is_taken_with_a_phones_camera(new_context: NewContext, tmp_path: Path) -> None:
    """REL-1233: the phone's own camera is asked for; the picture goes along with the message."""
    photo = tmp_path / "photo.png"
    photo.write_bytes(documents.png(600, 300))
    phone = new_context(
        viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True, bypass_csp=True
    )
    page = phone.new_page()
    enter(page, MEMBER)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add to this message").click()
        page.get_by_role("button", name="Take a photo…").click()
    asked = chooser.value.element
    assert asked.get_attribute("capture") == "environment"
    assert asked.get_attribute("accept") == "image/*"
    chooser.value.set_files(photo)
    expect(page.get_by_role("list", name="Attachments")).to_contain_text("photo.png")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("article.answer")).to_contain_text("the picture “photo.png”")
    expect_idle(page)


def test_an_answer_is_copied_with_its_look_and_read_aloud(new_context: NewContext) -> None:
    """REL-1234, REL-1355: as rich text for a document, as plain text without marks; and sentence by sentence by the browser's voice."""
    context = new_context(bypass_csp=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.add_init_script(f"({SPEAKING})()")
    page = context.new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "Show me all formats")
    expect_idle(page)
    answer = page.locator("article.answer").last

    def choose(name: str) -> None:
        answer.get_by_role("button", name="Copy or share…").click()
        page.get_by_role("button", name=name, exact=True).click()

    choose("Rich text")
    page.wait_for_function(
        """async () => {
          const [item] = await navigator.clipboard.read();
          if (!item.types.includes("text/html")) return false;
          const html = await (await item.getType("text/html")).text();
          return item.types.includes("text/plain") && html.includes("<strong>bold</strong>");
        }"""
    )
    choose("Plain text")
    page.wait_for_function(
        "async () => (await navigator.clipboard.readText()).startsWith('Text can be bold')"
    )
    answer.get_by_role("button", name=re.compile("Read aloud")).click()
    page.wait_for_function("() => spoken.length > 1 && spoken[0].text.startsWith('Text can be')")
    # Another chat has no button to stop it.
    expect(answer.get_by_role("button", name="Stop reading")).to_have_attribute(
        "aria-pressed", "true"
    )
    address = page.url
    open_sidebar(page).get_by_role("button", name="New chat").first.click()
    open_sidebar(page).locator("li.chat-row a").first.click()
    page.wait_for_url(address)
    expect(answer.get_by_role("button", name="Read aloud")).to_have_attribute(
        "aria-pressed", "false"
    )
    answer.get_by_role("button", name="Read aloud").click()
    stop = answer.get_by_role("button", name="Stop reading")
    expect(stop).to_be_visible()
    page.evaluate("spoken.at(-1).onend()")
    expect(stop).to_have_count(0)
