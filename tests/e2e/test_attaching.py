"""Files and resources that go along with a message."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Dialog, Page, Route, expect

from tests import documents
from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import (
    MEMBER,
    attach,
    enter,
    expect_idle,
    open_account,
    open_chat,
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


def test_files_go_along_with_a_message_and_are_read(
    page: Page, screen: Screen, tmp_path: Path
) -> None:
    """REL-323, REL-321, REL-2464: from the start page on; one that cannot be read says why, and each opens beside the chat."""
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
    expect(page.locator(".composer-hint")).to_have_text("Remove the file that is too large.")
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


def test_a_file_that_was_chosen_by_mistake_leaves_the_chat(member: Page) -> None:
    """REL-2075: models read what is in a chat. It can be brought back."""
    open_chat(member, "Clock", "What time is it in Berlin?")
    expect_idle(member)
    chosen = member.get_by_role("list", name="Attachments")
    field = member.get_by_role("textbox", name="Message").first
    with member.expect_response("**/artifacts/"):
        field.evaluate(GIVE, ["paste", "wrong.txt", "Of somebody else"])
    expect(chosen.get_by_role("progressbar")).to_have_count(0)
    expect(chosen.get_by_role("listitem")).to_have_count(1)
    with member.expect_response(lambda answer: answer.request.method == "DELETE") as removed:
        member.get_by_role("button", name="Remove wrong.txt").click()
    assert removed.value.status == 204
    expect(chosen).to_have_count(0)
    member.get_by_role("button", name="Undo").click()
    expect(chosen).to_contain_text("wrong.txt")
    member.get_by_role("button", name="Remove wrong.txt").click()
    expect(chosen).to_have_count(0)
