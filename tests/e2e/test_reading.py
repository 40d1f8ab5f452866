"""What an answer holds beside words: seen, used, and with nothing of it reaching further than its own place."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Literal

import pypdfium2
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_fits, expect_no_faults, trying_others
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import (
    MEMBER,
    attach,
    enter,
    expect_idle,
    open_chat,
    open_search,
    open_sidebar,
    say,
)
from tests.e2e.screens import DESK
from tests.fakes.scripted_model import ScriptedModel
from tests.patience import PATIENCE

HOSTILE = """
async (text) => {
  const frame = document.querySelector("iframe.diagram-painter");
  const answer = new Promise((resolve) => addEventListener("message", (event) => {
    if (event.source === frame.contentWindow && event.data.id === "hostile") resolve(event.data.svg);
  }));
  frame.contentWindow.postMessage({ id: "hostile", text, theme: "light" }, "*");
  return await answer;
}
"""


EDGES = """
(box) => {
  const text = box.firstChild, at = document.createRange();
  const left = (from) => (at.setStart(text, from), at.setEnd(text, from + 1), at.getBoundingClientRect().left);
  return [left(0), left(text.length - 1)];
}
"""
"""Where the first and the last letter of a message stand."""


@pytest.mark.parametrize(
    ("words", "runs_from_the_right"), [("مرحبا بكم.", True), ("Hello all.", False)]
)
def test_a_message_runs_as_its_letters_do(
    page: Page, words: str, runs_from_the_right: bool
) -> None:
    """REL-1248, REL-1908: its full stop stands at its end, and so does the title that the chat has from it."""
    enter(page, MEMBER)
    open_chat(page, "Clock", words)
    bubble = page.locator(".user-message .bubble").last
    expect(bubble).to_have_text(words)
    deadline = time.monotonic() + PATIENCE
    first = last = 0
    while first == last:  # what was sent is drawn anew once it is confirmed
        assert time.monotonic() < deadline
        first, last = bubble.evaluate(EDGES)
    assert (last < first) == runs_from_the_right
    direction = "rtl" if runs_from_the_right else "ltr"
    row = (
        open_sidebar(page).locator(".chat-row .truncate", has_text=words).first
    )  # others may be pinned above it
    for title in (page.locator("h1.chat-title"), row):
        expect(title).to_have_text(words)
        expect(title).to_have_css("direction", direction)
    expect(page.locator("h1.chat-title")).to_have_css("text-align", "left")


def test_an_answer_is_read_with_all_that_it_holds(page: Page) -> None:
    """REL-420, REL-421, SEC-345, SEC-346: formulas, a diagram, a table that sorts, and a link that says where it leads."""
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect(page.locator("article.answer").last).to_contain_text("In Tokyo it is now")
    expect_idle(page)
    heavy = ("/maths-", "/mermaid", "/KaTeX")
    assert not [url for url in loaded if any(part in url for part in heavy)]

    open_chat(page, "Clock", "Show me all formats")
    answer = page.locator("article.answer").last
    diagram = answer.locator(".md-diagram img")
    expect(diagram).to_be_visible()
    expect(answer.locator(".md-math-block .katex math")).to_have_count(1)
    expect_idle(page)
    assert diagram.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    answer.get_by_role("button", name="Show source").click()
    expect(answer.get_by_text("flowchart LR")).to_be_visible()

    answer.get_by_role("button", name="People").click()
    expect(answer.locator("tbody tr").first).to_contain_text("Ulm")
    answer.get_by_role("button", name="People").click()
    expect(answer.locator("tbody tr").first).to_contain_text("Bonn")

    answer.get_by_role("link", name="link").click()
    dialog = page.get_by_role("dialog", name="Open this link?")
    expect(dialog).to_contain_text("https://example.org/docs")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    svg = page.evaluate(
        HOSTILE,
        'flowchart LR\n A["<img src=x onerror=alert(1)><script>alert(1)</script>"] --> B\n'
        ' click A href "javascript:alert(1)"\n click B call alert(1)',
    )
    assert "<script" not in (svg or "")
    assert "onerror=" not in (svg or "")
    assert "javascript:" not in (svg or "")


@pytest.mark.screens(DESK, reason="is about phones, in sizes of its own")
def test_what_is_nested_many_times_stays_on_the_page(
    new_context: NewContext, keeper: ScriptedModel
) -> None:
    """REL-1354, REL-1353: and what may be no link says where it leads. REL-2441: headings of all levels are bold.

    REL-3145: the words of a wide diagram are large enough to be read.
    """
    keeper.clear()
    # The model says it word by word, so it indents by tabs.
    levels = "\n".join("\t" * level + f"- level {level}" for level in range(30))
    quotes = "> " * 30 + "deep quote"
    chain = " --> ".join(f"Station{number}" for number in range(9))
    drawing = f"```mermaid\ngraph LR; {chain}\n```"
    link = "[Call us](tel:+41441234567)"
    for _ in range(2):  # one of them is the title
        keeper.say(f"## Part\n\n### Section\n\n{levels}\n\n{quotes}\n\n{drawing}\n\n{link}")
    page = new_context(viewport={"width": 390, "height": 800}).new_page()
    enter(page, MEMBER)
    open_chat(page, "Keeper", "What is nested?")
    expect_idle(page)
    answer = page.locator("article.answer").last
    expect(answer).to_contain_text("Call us (tel:+41441234567)")
    for heading in ("Part", "Section"):
        expect(answer.get_by_role("heading", name=heading)).to_have_css("font-weight", "620")
    assert answer.locator("li li li li li li li li").count() > 0
    for words in ("level 29", "deep quote"):
        box = answer.get_by_text(words).last.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390, words
    diagram = answer.locator(".md-diagram img")
    expect(diagram).to_be_visible()
    assert diagram.evaluate("one => one.width / Number(one.getAttribute('width'))") >= 0.64
    wide = page.locator(".chat-scroll").evaluate("one => one.scrollWidth - one.clientWidth")
    assert wide == 0
    screenshot(page, "nested-on-a-phone")


def squeezed(text: str) -> str:
    """Without blanks: where the text of a PDF has some is a guess of whoever reads it."""
    return "".join(text.split())


def text_on_paper(page: Page) -> str:
    pages = [one.get_textpage().get_text_bounded() for one in pypdfium2.PdfDocument(page.pdf())]
    return squeezed("".join(pages))


def test_a_chat_is_printed(new_context: NewContext) -> None:
    """REL-1158, REL-2035, REL-2218, REL-2599: by the keys that print and from its menu, on a page that looks as paper does, in the dark theme too; all of it is in the PDF."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, MEMBER)
    folded = "\n".join(f"Line {number}" for number in range(60))
    open_chat(page, "Clock", f"Show me all formats\n{folded}\nThe last line")
    expect(page.locator("article.answer .md-diagram img")).to_be_visible()
    expect_idle(page)
    chat = page.url
    page.emulate_media(color_scheme="dark")
    page.keyboard.press("Control+P")
    page.wait_for_url("**/print/")
    page.goto(chat)
    expect(page.locator("article.answer .md-diagram img")).to_be_visible()
    browsers_own = text_on_paper(page)
    assert squeezed("Show me all formats") in browsers_own
    assert squeezed("The last line") in browsers_own
    assert squeezed("City People Share") in browsers_own
    for control in ("Message Clock", "New chat", "Copy", "Answer again"):
        assert squeezed(control) not in browsers_own
    page.emulate_media(media="print")
    # Firefox draws no narrow container on paper.
    expect(page.locator(".chat-header")).to_have_css("container-type", "normal")
    page.emulate_media(media="screen")
    page.locator(".chat-header").get_by_role("button", name=re.compile("^More for")).click()
    page.get_by_role("link", name="Print or save as PDF").click()
    expect(page.locator("article.answer .md-diagram img")).to_be_visible()
    expect(page.locator(".md-math-block .katex math")).to_have_count(1)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        screenshot(page, f"print-{width}")
        expect_fits(page, f"print {width}")
        expect_no_faults(page, f"print {width}", seen="at another width" if width < 1280 else "")
    page.evaluate("window.print = () => { window.printed = true; }")
    page.get_by_role("button", name="Print or save as PDF").click()
    assert page.evaluate("window.printed")
    page.emulate_media(media="print")
    screenshot(page, "print-paper")
    text = text_on_paper(page)
    assert squeezed("Show me all formats") in text
    assert squeezed("Answers may be wrong.") in text
    assert squeezed("City People Share") in text
    assert squeezed("Back to the chat") not in text
    assert squeezed("Copy") not in text
    page.emulate_media(media="screen")


def test_a_browsers_own_print_has_nothing_that_only_a_screen_can_use(
    new_context: NewContext,
) -> None:
    """REL-3297: no buttons of a card, no signs to sort a table by, and no ring around what has the keyboard."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, MEMBER)
    open_chat(page, "Notes", "Show me all formats")
    sorting = page.locator("article.answer th button").first
    expect(sorting).to_be_visible()
    expect_idle(page)
    say(page, 'Delete the note "shopping"')
    card = page.get_by_role("group", name=re.compile("^Allow"))
    expect(card).to_be_focused()
    buttons = card.get_by_role("button", name=re.compile("^(Edit|Raw|Copy|Allow once)$"))
    expect(buttons).to_have_count(4)
    page.emulate_media(media="print")
    expect(buttons).to_have_count(0)
    expect(card).to_have_css("outline-style", "none")
    assert sorting.evaluate("one => getComputedStyle(one, '::after').content") == "none"
    text = text_on_paper(page)
    assert squeezed("name shopping") in text
    for control in ("Edit", "Raw", "Copy"):
        assert squeezed(control) not in text
    page.emulate_media(media="screen")


def test_words_of_a_call_and_of_a_file_are_found(new_context: NewContext, tmp_path: Path) -> None:
    """REL-1160, REL-1161, REL-1166: where they stand, and at the message that they belong to."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, MEMBER)
    attach(page, tmp_path, ("garden.md", b"The hydrangeas need shade."))
    page.get_by_role("button", name="Send").click()
    expect(page.locator("article.answer")).to_contain_text("hydrangeas")
    expect_idle(page)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect_idle(page)
    page.goto("/w/demo/")
    open_search(page)
    dialog = page.get_by_role("dialog", name="Search chats")
    dialog.get_by_role("searchbox").or_(dialog.get_by_role("combobox")).first.fill("asia/tokyo")
    found = dialog.get_by_text("In a tool call, time.get_current_time")
    expect(found.first).to_be_visible()
    themes: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", 1280), ("dark", 390))
    with trying_others(page):
        for theme, width in themes:
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size({"width": width, "height": 844})
            screenshot(page, f"search-in-calls-{width}-{theme}")
            expect_fits(page, f"search {width}")
            expect_no_faults(page, f"search {width} {theme}")
    found.first.click()
    expect(page.locator("article.answer")).to_contain_text("In Tokyo it is now")
    open_search(page)
    dialog.get_by_role("searchbox").or_(dialog.get_by_role("combobox")).first.fill(
        "hydrangeas shade"
    )
    hit = dialog.get_by_text("In a file, garden.md").or_(dialog.get_by_text("hydrangeas")).first
    expect(hit).to_be_visible()
    hit.click()
    expect(page.get_by_role("button", name="Open garden.md").first).to_be_visible()
