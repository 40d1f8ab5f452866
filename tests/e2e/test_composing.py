"""What people write, and what goes along with it: files, resources, prompts, tools, another bud."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Dialog, Locator, Page, Route, expect

from tests import documents
from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import (
    HOME,
    MEMBER,
    enter,
    expect_idle,
    leave_sidebar,
    open_account,
    open_chat,
    open_sidebar,
    say,
    send,
    sign_in,
    tool_card,
)
from tests.e2e.screens import Screen


def test_a_resource_is_attached(member: Page) -> None:
    """SEC-73: picked by name, shown on the message, read once it is sent."""
    open_chat(member, "Notes", 'Read the note "ideas"')
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    member.get_by_role("button", name="Add to this message").click()
    member.get_by_role("button", name="Attach a resource").click()
    dialog = member.get_by_role("dialog")
    dialog.get_by_role("searchbox").fill("all")
    dialog.get_by_role("button", name=re.compile("All notes")).click()
    expect(member.get_by_role("list", name="Attachments")).to_contain_text("All notes")
    say(member, "What is in them?")
    expect(member.locator("article.answer").last).to_contain_text("this is what came with")
    expect_idle(member)  # what is above an answer moves while it comes
    expect(member.locator("article.answer").last).to_contain_text("Grow beans up the trellis")
    member.locator("article.user-message .chip").last.click()
    expect(member.get_by_role("dialog")).to_contain_text("note://all")


def test_another_bud_and_a_file_are_named_while_typing(member: Page) -> None:
    """REL-650, REL-1357: by keyboard: `@` asks another bud this once, `#` takes a resource along; both are seen and taken back."""
    open_chat(member, "Notes", 'Read the note "ideas"')
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    composer = member.get_by_role("textbox", name="Message").first
    composer.press_sequentially("@cl")
    menu = member.get_by_role("listbox", name="Ask another bud this once")
    expect(menu.get_by_role("option")).to_contain_text("Clock")
    composer.press("Enter")
    expect(menu).to_have_count(0)
    expect(composer).to_have_value("")
    chips = member.get_by_role("list", name="With this message")
    expect(chips).to_contain_text("Asks Clock this once")
    composer.press("Backspace")
    expect(chips).to_have_count(0)
    composer.press_sequentially("@cl")
    composer.press("Tab")
    expect_no_faults(member)
    screenshot(member, "mention")
    # Whom it asks is there after a reload, as what is written is.
    member.reload()
    expect(chips).to_contain_text("Asks Clock this once")
    say(member, "What time is it in Tokyo?")
    answer = member.locator("article.answer").last
    expect(answer.get_by_role("heading", name="Clock said")).to_have_count(1)
    expect_idle(member)
    expect(answer.locator(".answer-who")).to_have_text("Clock")
    expect(answer).to_contain_text("Tokyo")
    expect(chips).to_have_count(0)
    composer.press_sequentially("Sum up #all")
    offered = member.get_by_role("listbox", name="Files and resources")
    offered.get_by_role("option", name=re.compile("All notes")).click()
    expect(composer).to_have_value("Sum up ")
    expect(member.get_by_role("list", name="Attachments")).to_contain_text("All notes")
    send(member)
    expect_idle(member)
    last = member.locator("article.answer").last
    expect(last.get_by_role("heading", name="Notes said")).to_have_count(1)
    expect(last).to_contain_text("this is what came with")


def test_the_first_message_takes_a_resource_along(member: Page) -> None:
    """REL-780: found with `#` and in the menu before there is a chat; a bud that does not use its server drops it."""

    def choose(bud: str) -> None:
        member.locator(".bud-card").get_by_role("button", name=bud).first.click()

    member.goto("/w/demo/")
    choose("Notes")
    composer = member.get_by_role("textbox", name="Message Notes")
    composer.press_sequentially("Sum up #all")
    offered = member.get_by_role("listbox", name="Files and resources")
    expect(offered.get_by_role("option")).to_contain_text("All notes")
    composer.press("Enter")
    expect(composer).to_have_value("Sum up ")
    chips = member.get_by_role("list", name="Attachments")
    expect(chips).to_contain_text("All notes")
    choose("Clock")
    expect(chips).to_have_count(0)
    expect(member.get_by_text("the bud that answers does not use notes")).to_be_visible()
    choose("Notes")
    member.get_by_role("button", name="Add to this message").click()
    member.get_by_role("button", name="Attach a resource…").click()
    member.get_by_role("dialog", name="Attach a resource").get_by_role(
        "button", name="All notes"
    ).click()
    expect(chips).to_contain_text("All notes")
    send(member)
    member.wait_for_url("**/c/**")
    expect_idle(member)
    expect(member.locator("article.answer").last).to_contain_text("this is what came with")
    expect(member.get_by_role("list", name="Attachments")).to_contain_text("All notes")


def test_a_chat_says_which_tools_the_model_calls(member: Page) -> None:
    """REL-660, REL-750: before the first message, also after a reload, and later; from a list of what can be called."""
    question = "What time is it in Tokyo?"

    def choose(name: str) -> None:
        member.get_by_role("button", name="Add to this message").click()
        member.get_by_role("button", name="Servers and tools…").click()
        dialog = member.get_by_role("dialog", name="Servers and tools of this chat")
        choice = dialog.get_by_label("Which tools the model calls")
        expect(choice.locator("option", has_text="First time.get_current_time")).to_have_count(1)
        choice.select_option(label=name)
        expect(choice.locator("option:checked")).to_have_text(name)
        expect(dialog.locator("[aria-busy=true]")).to_have_count(0)
        expect_no_faults(member)
        member.keyboard.press("Escape")
        expect(dialog).to_have_count(0)

    member.goto("/w/demo/")
    member.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    choose("None")
    member.reload()
    expect(member.get_by_role("textbox", name="Message Clock")).to_be_visible()
    say(member, question)
    member.wait_for_url("**/c/**")
    expect(member.locator("article.answer").last).to_be_visible()
    expect_idle(member)
    expect(member.locator("article.tool-card")).to_have_count(0)
    choose("As the bud is set")
    say(member, question)
    expect(member.locator("article.answer").last).to_contain_text("In Tokyo it is now")
    expect_idle(member)
    expect(member.locator("article.tool-card")).to_have_count(1)


def test_tools_that_are_switched_quickly_all_stay_so(member: Page) -> None:
    """REL-1249: the second one before the first has been kept."""
    member.goto("/w/demo/")
    open_chat(member, "Notes", "Which notes do I have?")
    expect_idle(member)
    member.get_by_role("button", name="Add to this message").click()
    member.get_by_role("button", name="Servers and tools…").click()
    dialog = member.get_by_role("dialog", name="Servers and tools of this chat")
    dialog.get_by_role("button", name="Tools of notes").click()
    boxes = dialog.locator(".check input[type=checkbox]")
    boxes.evaluate_all("boxes => boxes.slice(0, 2).forEach((box) => box.click())")
    expect(dialog).to_contain_text("4 of 6 tools")
    for at, is_on in enumerate((False, False, True)):
        expect(boxes.nth(at)).to_be_checked(checked=is_on)


def test_tools_that_two_tabs_switch_both_stay_so(member: Page) -> None:
    """REL-1345: each tab changes what it touches; the other shows it while its dialog is open."""
    member.goto("/w/demo/")
    open_chat(member, "Notes", "Which notes do I have?")
    expect_idle(member)
    other = member.context.new_page()
    other.goto(member.url)

    def boxes(page: Page) -> Locator:
        page.get_by_role("button", name="Add to this message").click()
        page.get_by_role("button", name="Servers and tools…").click()
        dialog = page.get_by_role("dialog", name="Servers and tools of this chat")
        dialog.get_by_role("button", name="Tools of notes").click()
        return dialog.locator(".check input[type=checkbox]")

    here, there = boxes(member), boxes(other)
    expect(there.first).to_be_checked()
    here.nth(0).click()
    expect(there.nth(0)).not_to_be_checked()
    there.nth(1).click()
    expect(there.nth(1)).not_to_be_checked()
    for page in (here, there):
        for at, is_on in enumerate((False, False, True)):
            expect(page.nth(at)).to_be_checked(checked=is_on)
    # What cannot be kept goes back, and is told.
    member.context.set_offline(True)
    here.nth(2).click()
    expect(member.locator(".toast-box").last).to_contain_text("connection")
    expect(here.nth(2)).to_be_checked()
    member.context.set_offline(False)
    other.close()


def test_the_next_chat_uses_prompts_and_tools_of_a_server_that_was_just_added(
    member: Page,
) -> None:
    """REL-1220: its tools are shown and switched before the first message, and its prompts are found with a slash."""
    member.goto("/w/demo/")
    member.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    composer = member.get_by_role("textbox", name="Message Clock")
    composer.fill("/tid")
    menu = member.get_by_role("listbox", name="Commands and prompts")
    expect(menu).to_contain_text("No command or prompt matches.")
    composer.fill("")
    member.get_by_role("button", name="Add to this message").click()
    member.get_by_role("button", name="Servers and tools…").click()
    dialog = member.get_by_role("dialog", name="Servers and tools of this chat")
    dialog.get_by_role("button", name="notes", exact=True).click()
    dialog.get_by_role("button", name="Tools of notes").click()
    expect(dialog).to_contain_text("Added to this chat")
    writes = dialog.get_by_role("checkbox", name=re.compile("write", re.IGNORECASE)).first
    expect(writes).to_be_checked()
    writes.click()
    expect(writes).not_to_be_checked()
    screenshot(member, "tools-before-the-first-message")
    expect_no_faults(member)
    member.keyboard.press("Escape")
    composer.fill("/tid")
    expect(menu.get_by_role("option")).to_contain_text("Tidy up a note")
    composer.press("Enter")
    prompt = member.get_by_role("dialog", name="Tidy up a note")
    expect(prompt.locator("datalist option").first).to_have_attribute("value", "ideas")
    prompt.get_by_label(re.compile("^name")).fill("ideas")
    member.keyboard.press("Enter")
    expect(composer).to_have_value(re.compile('Read the note "ideas" and say it again, brief'))
    send(member)
    member.wait_for_url("**/c/**")
    expect_idle(member)
    member.get_by_role("button", name="Add to this message").click()
    member.get_by_role("button", name="Servers and tools…").click()
    expect(dialog.get_by_role("switch", name="Use notes in this chat")).to_be_checked()


def test_who_answers_is_chosen_in_the_head_of_the_chat(
    new_context: NewContext, screen: Screen
) -> None:
    """REL-1221: by keyboard, before the first message and later; in both themes, on a phone too."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, MEMBER)
    page.goto("/w/demo/")
    page.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    head = page.locator(".chat-header")
    head.get_by_role("button", name=re.compile("^Bud and model: Clock")).focus()
    page.keyboard.press("Enter")
    choosing = page.get_by_role("dialog", name="Bud and model")
    choosing.get_by_role("combobox").fill("Writ")
    page.keyboard.press("Enter")
    expect(head.get_by_role("button", name=re.compile("^Bud and model: Writer"))).to_be_visible()
    say(page, "What can you do?")
    page.wait_for_url("**/c/**")
    expect_idle(page)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        expect_no_faults(page)
        screenshot(page, f"head-{screen.width}-{theme}")
    head.get_by_role("button", name=re.compile("^Bud and model: Writer")).click()
    choosing.get_by_role("option", name=re.compile("Clock")).click()
    expect(head.get_by_role("button", name=re.compile("^Bud and model: Clock"))).to_be_visible()


def hold_requests(page: Page, address: str, method: str) -> list[Route]:
    """Let no request of this kind go on before the journey does; gives those that wait."""
    waiting: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method == method:
            waiting.append(route)
        else:
            route.continue_()

    page.route(address, hold)
    return waiting


@pytest.fixture
def held(member: Page) -> list[Route]:
    """Requests that begin a chat, on the start page."""
    member.goto(HOME)
    member.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    return hold_requests(member, "**/api/conversations/", "POST")


def begin(member: Page, words: str) -> None:
    """Send the first words, and wait until they are asked of the server."""
    with member.expect_request(lambda one: one.method == "POST" and "/conversations/" in one.url):
        say(member, words)


@pytest.mark.sees_requests
def test_words_typed_while_a_chat_begins_go_along(member: Page, held: list[Route]) -> None:
    """REL-1259: on a slow network people have written on when the new chat opens."""
    begin(member, "What time is it in Tokyo?")
    field = member.get_by_role("textbox", name="Message").first
    expect(field).to_have_value("")
    field.press_sequentially("And in Rome?")
    held[0].continue_()
    member.wait_for_url("**/c/**")
    expect(member.locator(".user-message")).to_contain_text("What time is it in Tokyo?")
    expect(field).to_have_value("And in Rome?")
    expect_idle(member)
    member.goto("/w/demo/")
    expect(field).to_have_value("")


def choose_notes_slowly(member: Page) -> list[Route]:
    """Choose the bud *Notes*; the server is not asked before the request that this gives goes on."""
    held = hold_requests(member, "**/api/conversations/*/", "PATCH")
    member.locator(".composer-bar").get_by_role("button", name=re.compile("^Bud and model")).click()
    choosing = member.get_by_role("dialog", name="Bud and model")
    with member.expect_request(lambda one: one.method == "PATCH"):
        choosing.get_by_role("option", name=re.compile("Notes")).click()
    return held


@pytest.mark.sees_requests
def test_words_wait_for_the_bud_that_was_chosen(member: Page) -> None:
    """REL-1702: on a slow network they go to the bud that stands chosen, and not to the one before."""
    open_chat(member, "Clock", "What time is it in Tokyo?")
    expect_idle(member)
    held = choose_notes_slowly(member)
    say(member, 'Read the note "ideas"')
    expect(member.locator(".user-message").last).to_contain_text("ideas")
    held[0].continue_()
    expect(tool_card(member)).to_contain_text("notes")
    expect_idle(member)


@pytest.mark.sees_requests
def test_words_wait_where_the_chosen_bud_is_refused(member: Page) -> None:
    """REL-1802: they stand in the field again, in their order, and the bud before gets none of them."""
    open_chat(member, "Clock", "What time is it in Perth?")
    expect_idle(member)
    held = choose_notes_slowly(member)
    for words in ("First of all", "And then"):
        say(member, words)
        expect(member.locator(".user-message").last).to_contain_text(words)
    why = {"code": "conflict", "detail": "An answer is being written.", "attr": None}
    held[0].fulfill(status=409, json={"errors": [why]})
    expect(member.get_by_text("is in the message field again")).to_be_visible()
    expect(member.get_by_role("textbox", name="Message").first).to_have_value(
        "First of all\n\nAnd then"
    )
    expect(member.locator(".user-message")).to_have_count(1)
    screenshot(member, "held-back")


@pytest.mark.sees_requests
def test_a_chat_that_begins_takes_nobody_along(member: Page, held: list[Route]) -> None:
    """REL-1701: who looks at another chat meanwhile stays there, and reads that theirs has begun."""
    begin(member, "What time is it in Lagos?")
    sidebar = open_sidebar(member)
    held[0].continue_()
    here = sidebar.locator(".chat-row-link[aria-current=page]")
    expect(here).to_be_visible()
    expect(sidebar).to_be_visible()
    first = here.get_attribute("href")
    expect(member.locator(".user-message")).to_contain_text("Lagos")
    expect_idle(member)

    member.goto(HOME)
    begin(member, "What time is it in Accra?")
    open_sidebar(member).locator(f'a[href="{first}"]').click()
    expect(member.locator(".user-message")).to_contain_text("Lagos")
    held[1].continue_()
    told = member.get_by_text("Your new chat has begun.")
    expect(told).to_be_visible()
    expect(member.locator(".user-message")).to_contain_text("Lagos")
    screenshot(member, "begun-elsewhere")
    member.get_by_role("button", name="Open", exact=True).click()
    expect(member.locator(".user-message")).to_contain_text("Accra")
    expect_idle(member)


def test_words_that_begin_no_chat_stand_in_the_field_again(member: Page) -> None:
    """REL-750, REL-752: a chosen server has gone since; the person is told, and sends them once more."""
    member.goto("/w/demo/")
    expect(member.locator(".bud-card").first).to_be_visible()
    member.evaluate(
        """() => {
          const kept = JSON.parse(sessionStorage.getItem("trellis.home"));
          kept.overrides.additional_servers = [crypto.randomUUID()];
          sessionStorage.setItem("trellis.home", JSON.stringify(kept));
        }"""
    )
    member.reload()
    expect(member.locator(".bud-card").first).to_be_visible()
    say(member, "What can you do?")
    expect(
        member.get_by_text("A model or server that you chose is no longer there.")
    ).to_be_visible()
    composer = member.get_by_role("textbox", name="Message").first
    expect(composer).to_have_value("What can you do?")
    expect_no_faults(member)
    send(member)
    member.wait_for_url("**/c/**")
    expect_idle(member)


def test_a_passage_of_an_answer_is_quoted(page: Page, screen: Screen) -> None:
    """REL-661: what is selected goes into the next message, below what is written there, and is seen as a quote."""
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    said = page.locator("article.answer p", has_text="In Tokyo it is now").last
    expect(said).to_be_visible()
    expect_idle(page)
    composer = page.get_by_role("textbox", name="Message").first
    composer.fill("Look at this.")
    button = page.get_by_role("button", name="Quote")
    expect(button).to_have_count(0)
    said.click(click_count=3)
    expect(button).to_be_in_viewport(ratio=1)
    expect_no_faults(page)
    screenshot(page, f"quote-{screen.name}")
    button.click()
    expect(button).to_have_count(0)
    expect(composer).to_be_focused()
    expect(composer).to_have_value(re.compile(r"^Look at this\.\n\n> In Tokyo it is now .*\n\n$"))
    composer.press_sequentially("Is that right?")
    send(page)
    sent = page.locator(".user-message").last
    expect(sent.locator("blockquote")).to_contain_text("In Tokyo it is now")
    expect(sent.locator(".bubble > p")).to_have_text(["Look at this.", "Is that right?"])
    expect_idle(page)
    expect_no_faults(page)


def test_a_prompt_is_used_by_keyboard(member: Page) -> None:
    """Ours: a slash, a choice, an argument with suggestions; the text waits for a look before it is sent."""
    open_chat(member, "Notes", 'Read the note "ideas"')
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    composer = member.get_by_role("textbox", name="Message").first
    composer.fill("/tid")
    expect(member.get_by_role("listbox", name="Commands and prompts")).to_contain_text(
        "Tidy up a note"
    )
    composer.press("Enter")
    dialog = member.get_by_role("dialog", name="Tidy up a note")
    dialog.get_by_role("button", name="Insert into message").click()
    expect(dialog).to_contain_text("This field is required.")
    expect(dialog.locator("datalist option").first).to_have_attribute("value", "ideas")
    dialog.get_by_label(re.compile("^name")).fill("ideas")
    member.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(composer).to_have_value(re.compile('Read the note "ideas" and say it again, brief'))
    send(member)
    expect_idle(member)
    expect(tool_card(member)).to_contain_text("succeeded")
    # By keyboard as well: another bud goes on in the same conversation.
    expect(member.locator("article.tool-card")).to_have_count(2)
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    composer.fill("/bu")
    composer.press("Enter")
    choosing = member.get_by_role("dialog", name="Bud and model")
    choosing.get_by_role("button", name="Pin Writer").press("Enter")
    expect(choosing.get_by_role("button", name="Unpin Writer")).to_be_visible()
    expect(choosing.get_by_role("option").first).to_contain_text("Writer")
    member.get_by_role("combobox", name="Search buds and models").fill("clock")
    member.keyboard.press("Enter")
    head = member.locator(".chat-header")
    expect(head.get_by_role("button", name="Bud and model: Clock")).to_be_visible()
    composer.fill("Put the time into my notes")
    expect(member.get_by_role("status").filter(has_text="notes is not used")).to_be_visible()
    member.get_by_role("button", name="Add it").click()
    say(member, "What time is it in Tokyo?")
    expect(tool_card(member)).to_contain_text("time")
    expect_idle(member)
    member.reload()  # as on another device: what is pinned is the server's to know
    member.keyboard.press("Control+Shift+M")
    expect(choosing.get_by_role("button", name="Unpin Writer")).to_be_visible()
    expect(choosing.get_by_role("option").first).to_contain_text("Writer")
    choosing.get_by_role("button", name="Unpin Writer").press("Enter")
    expect(choosing.get_by_role("button", name="Pin Writer", exact=True)).to_be_visible()


def attach(page: Page, folder: Path, *files: tuple[str, bytes]) -> None:
    """Choose files of a folder by the composer's menu."""
    for name, content in files:
        (folder / name).write_bytes(content)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add to this message").click()
        page.get_by_role("button", name="Add files…").click()
    chooser.value.set_files([folder / name for name, _ in files])


def test_files_go_along_with_a_message_and_are_read(
    page: Page, screen: Screen, tmp_path: Path
) -> None:
    """REL-323, REL-321: from the start page on; one that cannot be read says why, and each opens beside the chat."""
    enter(page, MEMBER)
    attach(
        page,
        tmp_path,
        ("plan.docx", documents.docx("Project plan", "We begin on Monday.")),
        ("red.png", documents.png(600, 300)),
        ("scan.pdf", documents.pdf([""])),
    )
    chosen = page.get_by_role("list", name="Attachments")
    expect(chosen.get_by_role("listitem")).to_have_count(3)
    page.get_by_role("button", name="Send").click()
    answer = page.locator("article.answer")
    expect(answer).to_contain_text("We begin on Monday.")
    expect(answer).to_contain_text("the picture “red.png”")
    question = page.locator(".user-message")
    expect(question).to_contain_text("Its pages hold no text. It may be a scan.")
    picture = question.get_by_role("img", name="red.png")
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("naturalWidth", 600)
    expect_idle(page)
    expect_no_faults(page)
    screenshot(page, f"attached-{screen.name}")
    question.get_by_role("button", name="Open plan.docx").click()
    expect(page.locator("#files-panel")).to_contain_text("# Project plan")
    page.keyboard.press("Escape")
    # What is too large is told before it is sent, and can be taken out again.
    attach(page, tmp_path, ("huge.txt", b"x" * 30_000_000), ("note.txt", b"The word is apple"))
    expect(page.locator(".composer").get_by_role("alert")).to_contain_text("Too large")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    page.get_by_role("button", name="Remove huge.txt").click()
    page.get_by_role("button", name="Send").click()
    expect(answer.last).to_contain_text("The word is apple")


def test_files_for_a_chat_that_has_not_begun_survive_a_reload(
    new_context: NewContext, tmp_path: Path
) -> None:
    """REL-1237: until the chat begins; not those for a temporary one. SEC-599: when somebody signs out, they are gone."""
    page = new_context(bypass_csp=True).new_page()
    sign_in(page, MEMBER)
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    def reload() -> None:
        """Once the browser would not ask, since it has them."""
        page.wait_for_function(
            "() => dispatchEvent(new Event('beforeunload', { cancelable: true }))"
        )
        page.reload()

    page.on("dialog", leave)
    temporary = page.context.new_page()
    temporary.goto("/w/demo/")
    temporary.get_by_role("button", name="Temporary chat").click()
    attach(page, tmp_path, ("note.txt", b"The word is quince"), ("second.txt", b"And fig"))
    chosen = page.get_by_role("list", name="Attachments")
    expect(chosen.get_by_role("listitem")).to_have_count(2)
    reload()
    expect(chosen.get_by_role("listitem")).to_have_count(2)
    # In a tab that begins a temporary chat they wait for a usual one.
    temporary.reload()
    mode = temporary.get_by_role("button", name="Temporary chat")
    expect(mode).to_have_attribute("aria-pressed", "true")
    waiting = temporary.get_by_role("list", name="Attachments").get_by_role("listitem")
    expect(waiting).to_have_count(0)
    mode.click()
    expect(waiting).to_have_count(2)
    temporary.close()
    page.get_by_role("button", name="Remove second.txt").click()
    page.get_by_role("button", name="Temporary chat").click()
    expect(chosen).to_contain_text("note.txt")
    page.get_by_role("button", name="Temporary chat").click()
    reload()
    expect(chosen).to_contain_text("note.txt")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/c/**")
    expect(page.locator("article.answer")).to_contain_text("The word is quince")
    expect_idle(page)
    page.goto("/w/demo/")
    expect(page.locator(".bud-card").first).to_be_visible()
    expect(chosen).to_have_count(0)
    attach(page, tmp_path, ("secret.txt", b"Of the member alone"))
    expect(chosen).to_contain_text("secret.txt")
    reload()
    expect(chosen).to_contain_text("secret.txt")
    assert asked == []
    open_account(page)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login/**")
    page.wait_for_function(
        "async () => !(await indexedDB.databases()).some((one) => one.name === 'trellis.files')"
    )


GIVE = """
(element, [kind, name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name, { type: "text/plain" }));
  const about = { bubbles: true, cancelable: true };
  if (kind === "paste") element.dispatchEvent(new ClipboardEvent("paste", { ...about, clipboardData: files }));
  else for (const one of ["dragenter", "dragover", "drop"])
    element.dispatchEvent(new DragEvent(one, { ...about, dataTransfer: files }));
}
"""


@pytest.mark.sees_requests
def test_files_are_pasted_and_dropped_and_taken_back_on_their_way(member: Page) -> None:
    """REL-1148: on the start page and in a chat. One that is on its way shows how far it is, and can be taken back."""
    field = member.get_by_role("textbox", name="Message").first
    field.evaluate(GIVE, ["paste", "pasted.txt", "The word is pear"])
    member.locator(".drop-area").first.evaluate(GIVE, ["drop", "dropped.txt", "The word is plum"])
    chosen = member.get_by_role("list", name="Attachments")
    expect(chosen.get_by_role("listitem")).to_have_count(2)
    member.get_by_role("button", name="Send").click()
    answer = member.locator("article.answer")
    expect(answer).to_contain_text("The word is pear")
    expect(answer).to_contain_text("The word is plum")
    expect_idle(member)

    held: list[Route] = []
    member.route("**/artifacts/", lambda route: held.append(route))  # noqa: PLW0108  the page marks what it is given
    field = member.get_by_role("textbox", name="Message").first
    field.evaluate(GIVE, ["paste", "slow.txt", "The word is late"])
    expect(chosen.get_by_role("progressbar", name="slow.txt")).to_be_visible()
    expect(member.get_by_role("button", name="Send")).to_be_disabled()
    with member.expect_event("requestfailed"):
        member.get_by_role("button", name="Remove slow.txt").click()
    expect(member.get_by_text("slow.txt")).to_have_count(0)
    assert held


def test_a_draft_moves_between_open_browsers(
    member: Page, new_context: NewContext, tmp_path: Path
) -> None:
    """REL-754, REL-1159, REL-1224: what is written in one is shown in the other at once, and goes from both when one sends it."""
    open_chat(member, "Clock", "What time is it in Vienna?")
    expect_idle(member)
    other = new_context(storage_state=member.context.storage_state()).new_page()
    other.goto(member.url)
    here, there = (one.get_by_role("textbox", name="Message").first for one in (member, other))
    expect(there).to_be_enabled()
    here.fill("What time is it in")
    expect(there).to_have_value("What time is it in")
    # The open chat shows it itself; in the list of another page it is marked.
    third = new_context(storage_state=member.context.storage_state()).new_page()
    third.goto("/w/demo/")
    link = f".chat-row-link[href='{urlsplit(member.url).path}']"
    row = open_sidebar(third).locator(link)
    mark = row.get_by_role("img", name="not sent yet")
    expect(mark).to_be_visible()
    screenshot(third, "draft-in-the-list")
    expect(open_sidebar(other).locator(link)).to_be_visible()
    expect(other.locator(link).get_by_role("img", name="not sent yet")).to_have_count(0)
    leave_sidebar(other)
    there.fill("What time is it in Graz?")
    expect(here).to_have_value("What time is it in Graz?")
    # A file that one of them takes along is there too, and after a reload.
    attach(member, tmp_path, ("note.txt", b"The word is plum"))
    for page in (member, other):
        expect(page.get_by_role("list", name="Attachments")).to_contain_text("note.txt")
    other.reload()
    expect(other.get_by_role("list", name="Attachments")).to_contain_text("note.txt")
    expect(there).to_have_value("What time is it in Graz?")
    send(other)
    expect(row).to_be_visible()
    expect(mark).to_have_count(0)
    expect(here).to_have_value("")
    expect(member.locator(".composer").get_by_role("list", name="Attachments")).to_have_count(0)
    expect(member.locator(".user-message").last).to_contain_text("note.txt")


def test_of_a_long_message_the_beginning_is_shown(member: Page) -> None:
    """REL-1668: the answer is in sight, and one press shows the rest."""
    lines = "\n".join(f"Line {number} of what was pasted" for number in range(200))
    open_chat(member, "Clock", f"What is this?\n{lines}")
    expect_idle(member)
    more = member.get_by_role("button", name="Show all of it")
    expect(more).to_be_visible()
    bubble = member.locator("article.user-message .bubble")
    expect(member.locator(".bubble[data-pending]")).to_have_count(0)
    assert bubble.evaluate("node => node.clientHeight") < 300
    expect(member.locator("article.answer").last).to_be_in_viewport()
    expect_no_faults(member, "a folded message")
    screenshot(member, "long-message")
    more.click()
    expect(bubble).not_to_have_attribute("data-folded", "true")
    assert bubble.evaluate("node => node.clientHeight") > 3000
    less = member.get_by_role("button", name="Show less")
    less.click()
    expect(member.get_by_role("button", name="Show all of it")).to_be_in_viewport()
