"""A workspace admin: their rooms in the admin, servers, tools, secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.people import ADMIN, MEMBER, enter, say
from tests.fakes.mcp_server import CountingServer
from tests.fakes.scripted_model import ScriptedModel

CANARY = "canary-header-value-5417"


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    server = CountingServer()
    yield server
    server.stop()


def test_the_admin_shows_the_workspaces_rooms_and_no_others(page: Page) -> None:
    """Journey 2: how things are; members, invitations, buds, servers, tools, audit; nothing of the platform's."""
    enter(page, ADMIN, at="/admin/")
    expect(page.get_by_role("heading", name="How things are")).to_be_visible()
    for name in ("Buds", "Servers", "Tools", "People, all fields", "Invitations", "Audit log"):
        expect(page.get_by_role("link", name=name).first).to_be_visible()
    for name in ("Users", "Stdio programs"):
        expect(page.get_by_role("link", name=name)).to_have_count(0)
    screenshot(page, "admin")
    note = page.locator(".overview-note").first
    note.evaluate("(note) => { note.textContent = 'most by ' + 'a'.repeat(60) + '@example.org'; }")
    assert note.evaluate("({ parentElement: tile }) => tile.scrollWidth <= tile.clientWidth")
    for path in ("/admin/", "/admin/chat/bud/", "/admin/chat/bud/add/"):
        page.goto(path)
        expect_no_faults(page)
    page.goto("/admin/workspaces/user/")
    expect(page.get_by_role("heading", name=re.compile("users to", re.I))).to_have_count(0)


def test_a_member_asks_is_shut_out_and_comes_back(page: Page, new_context: NewContext) -> None:
    """SEC-01, REL-520, REL-525, REL-1832: the admin is for admins; a request is answered; a suspension is told on its page."""
    enter(page, MEMBER, at="/admin/")
    expect(page.get_by_role("link", name="Memberships")).to_have_count(0)
    page.goto("/w/demo/requests/?kind=tool&name=Weather")
    page.get_by_label("What you need it for").fill("Trips to customers")
    page.get_by_role("button", name="Send the request").click()
    admin = new_context().new_page()
    enter(admin, ADMIN, at="/w/demo/requests/")
    admin.get_by_label("Note").first.fill("Use it with care")
    admin.get_by_role("button", name="Grant Weather").click()
    page.goto("/w/demo/requests/")
    expect(page.get_by_text("Use it with care")).to_be_visible()
    page.goto("/w/demo/")
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    admin.goto("/w/demo/people/?q=member@")
    admin.get_by_role("link", name="Max Member").click()
    admin.get_by_label("Reason to suspend them").fill("Lost laptop")
    admin.get_by_role("button", name="Suspend", exact=True).click()
    expect(page.get_by_text("Your access to this workspace is suspended.")).to_be_visible()
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_text("Lost laptop")).to_be_visible()
    admin.get_by_role("button", name="Let them in again").click()
    expect(admin.get_by_text("may enter again")).to_be_visible()
    page.goto("/w/demo/")
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()


def test_a_request_is_decided_in_the_list_of_what_waits(
    page: Page, new_context: NewContext
) -> None:
    """REL-584, REL-586: it comes and goes live, with the number in header and title; the member reads the note."""
    enter(page, MEMBER)
    ask_for(page, "server", "Umbrella store")
    context = new_context(bypass_csp=True)
    admin = context.new_page()
    enter(admin, ADMIN)
    button = admin.get_by_role("button", name=re.compile("^Waiting for you: "))
    button.click()
    dialog = admin.get_by_role("dialog", name="Waiting for you")
    card = dialog.get_by_role("group", name="Max Member asks for Umbrella store")
    expect(card).to_contain_text("For a test")
    expect(card.get_by_role("link", name="Look for it in the catalogue")).to_have_attribute(
        "href", "/w/demo/catalogue/?q=Umbrella+store"
    )
    before = dialog.locator(".approval").count()
    ask_for(page, "tool", "umbrella.open")
    expect(dialog.locator(".approval")).to_have_count(before + 1)
    expect(admin).to_have_title(re.compile(rf"^\({before + 1}\) "))
    for scheme in ("light", "dark"):
        admin.emulate_media(color_scheme=scheme)
        screenshot(admin, f"waiting-requests-{scheme}")
        expect_no_faults(admin)
    card.get_by_label("Note to them").fill("From tomorrow")
    card.get_by_role("button", name="Grant").click()
    expect(card).to_have_count(0)
    expect(admin.get_by_text("Granted. Max Member was told.")).to_be_visible()
    page.goto("/w/demo/requests/")
    expect(page.get_by_text("From tomorrow")).to_be_visible()
    page.get_by_role("button", name="Withdraw umbrella.open").click()
    expect(dialog.locator(".approval")).to_have_count(before - 1)


def ask_for(page: Page, kind: str, name: str) -> None:
    """Ask for something on the page of requests."""
    page.goto(f"/w/demo/requests/?kind={kind}&name={name}")
    page.get_by_label("What you need it for").fill("For a test")
    page.get_by_role("button", name="Send the request").click()
    expect(page.get_by_text("Your request waits for an administrator.")).to_be_visible()


def test_an_http_server_with_a_secret_header_is_added_tested_and_used(
    page: Page, trellis: RunningTrellis, counting: CountingServer
) -> None:
    """Journey 2: added on the servers page; status, latency, revision, badges; its secret is never shown again."""
    enter(page, ADMIN, at="/w/demo/servers/")
    page.get_by_role("link", name="Add a server").click()
    form = page.locator("#add-form")
    form.locator("input[name=name]").fill("counting")
    form.locator("input[name=url]").fill(counting.url)
    form.get_by_text("Advanced").click()
    form.locator("textarea[name=headers], input[name=headers]").first.fill(f"X-Secret: {CANARY}")
    form.get_by_role("button", name=re.compile("^Add")).last.click()
    card = page.locator("article.server", has_text="counting").first
    expect(card).to_be_visible()
    card.get_by_role("button", name=re.compile("Test connection")).click()
    expect(card).to_contain_text("Connected")
    expect(card).to_contain_text(re.compile(r"\d+ ms"))
    expect(card).to_contain_text(re.compile(r"20\d\d-\d\d-\d\d"))
    card.locator("summary.tools-summary").click()
    expect(card).to_contain_text("destroy")
    expect(card).to_contain_text(re.compile("destructive", re.I))
    screenshot(page, "servers")
    assert any(headers.get("x-secret") == CANARY for headers in counting.headers)
    for path in ("/w/demo/servers/", "/admin/mcp_servers/mcpserver/", "/api/servers/"):
        page.goto(path)
        assert CANARY not in page.content()


def test_a_tool_that_is_switched_off_is_gone_at_once(page: Page, trellis: RunningTrellis) -> None:
    """Journey 2: buds lose it at once, and have it back at once."""
    enter(page, ADMIN, at="/w/demo/servers/")
    card = page.locator("article.server", has_text="mcp-time").first
    card.locator("summary.tools-summary").click()

    def calls() -> list[str]:
        done = trellis.manage(
            "ask", "--workspace", "demo", "--bud", "clock", "What time is it in Rome?"
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return [e["tool_call"]["tool"]["name"] for e in events if e["type"] == "tool_call.changed"]

    switch = card.get_by_role("switch", name=re.compile("get_current_time"))
    switch.click()
    expect(card).to_contain_text("1 switched on")
    assert "get_current_time" not in calls()
    switch.click()
    expect(card).to_contain_text("2 switched on")
    assert "get_current_time" in calls()


def test_what_goes_over_a_connection_appears_live(page: Page, trellis: RunningTrellis) -> None:
    """Ours: a call shows up on the open page by itself; its arguments are shown to whoever made it."""
    enter(page, ADMIN, at="/w/demo/servers/")
    card = page.locator("article.server", has_text="mcp-time").first
    card.get_by_role("button", name=re.compile("More for")).click()
    page.get_by_role("link", name="Watch its messages").first.click()
    rows = page.locator(".trace-row")
    expect(rows.first).to_be_visible()
    requests = rows.filter(has_text="tools/call").filter(has_not_text="answer")
    before = requests.count()
    other = page.context.new_page()
    other.goto("/w/demo/servers/")
    tool = other.locator("article.server", has_text="mcp-time").first
    tool.locator("summary.tools-summary").click()
    tool.get_by_role("link", name=re.compile("Try get_current_time")).click()
    other.get_by_label("Timezone").fill("Europe/Rome")
    other.get_by_role("button", name="Call the tool").click()
    expect(other.locator("#tester-outcome")).to_contain_text("Europe/Rome")
    screenshot(other, "tester")
    expect(requests).to_have_count(before + 1)
    requests.first.get_by_role("button").click()
    detail = page.locator("#trace-detail")
    expect(detail).to_contain_text("get_current_time")
    expect(detail).not_to_contain_text("Europe/Rome")
    detail.get_by_role("button", name="Show what was sent").click()
    expect(detail).to_contain_text("Europe/Rome")
    screenshot(page, "trace")


def test_a_tool_that_asks_first_is_not_called_unconfirmed(
    page: Page, trellis: RunningTrellis
) -> None:
    """Ours: the tester keeps to the same rules as everybody."""
    enter(page, ADMIN, at="/w/demo/servers/")
    card = page.locator("article.server", has_text="notes 1.0").first
    card.locator("summary.tools-summary").click()
    card.get_by_role("link", name="Try delete_note").click()
    page.get_by_label("Name").fill("never there")
    page.get_by_role("button", name="Call the tool").click()
    outcome = page.locator("#tester-outcome")
    expect(outcome).to_contain_text("Nothing was sent")
    page.get_by_role("button", name="Write JSON").click()
    expect(page.get_by_label("Arguments, as JSON")).to_have_value(re.compile("never there"))
    page.get_by_label("I want exactly this call").check()
    page.get_by_role("button", name="Call the tool").click()
    expect(outcome).not_to_contain_text("Nothing was sent")


def test_a_pasted_list_is_shown_before_it_is_taken(page: Page, trellis: RunningTrellis) -> None:
    """SEC-116, REL-2852: what will happen to each entry; nothing is switched on by it. Variables are asked for."""
    enter(page, ADMIN, at="/w/demo/servers/import/")
    listed = {
        "pasted": {"url": "https://pasted.example/mcp", "headers": {"X-Key": CANARY}},
        "asked-for": {"url": "https://${HOST}/mcp"},
        "refused-one": {"command": "npx", "args": ["-y", "thing"]},
    }
    page.get_by_label("List of servers, as JSON").fill(json.dumps({"mcpServers": listed}))
    page.get_by_role("button", name="Show what would happen").click()
    expect(page.get_by_text("Is added, switched off")).to_be_visible()
    expect(page.get_by_text("Is refused")).to_be_visible()
    expect(page.get_by_text("Needs values")).to_be_visible()
    page.get_by_role("button", name="Add the servers").click()
    expect(page.get_by_role("alert")).to_contain_text("Enter a value for HOST.")
    page.get_by_label("HOST").fill("asked.example")
    page.get_by_label("In the buds chosen below").check()
    page.get_by_role("button", name="Add the servers").click()
    expect(page.get_by_text("Choose a bud.")).to_be_visible()
    expect_no_faults(page)
    screenshot(page, "import")
    page.get_by_label("HOST").fill("asked.example")  # pages show no value that was entered
    page.get_by_label("Only in chats where somebody adds it").check()
    page.get_by_role("button", name="Add the servers").click()
    card = page.locator("article.server", has_text="pasted.example").first
    expect(card).to_contain_text("Switched off")
    expect(page.locator("article.server", has_text="refused-one")).to_have_count(0)
    expect(page.locator("article.server", has_text="asked.example")).to_have_count(1)
    assert CANARY not in page.content()


PROGRAM_THAT_FAILS = """
import sys
from mcp_servers.models import StdioProgram
said = "import sys; [print('line', n, file=sys.stderr) for n in range(40)]; sys.exit('GARDEN_KEY is not set')"
StdioProgram.objects.create(slug="fails", title="Fails", command=sys.executable, args=["-c", said])
"""


FORGET_THE_PROGRAM = """
from mcp_servers.models import McpServer, StdioProgram
McpServer.objects.across_workspaces().filter(program__slug="fails").delete()
StdioProgram.objects.filter(slug="fails").delete()
"""


def test_a_program_that_does_not_start_says_why(page: Page, trellis: RunningTrellis) -> None:
    """REL-1602: before it is saved and on its card, in both themes and on a phone; the reason is in sight."""
    trellis.shell(PROGRAM_THAT_FAILS)
    enter(page, ADMIN, at="/w/demo/servers/catalogue/?program=fails")
    page.get_by_role("button", name="Test connection").click()
    report = page.locator(".notice", has_text="No connection")
    expect(report).to_contain_text("Often a variable, a path or an argument is missing")
    expect(report.get_by_role("region", name="What the program said")).to_contain_text(
        "GARDEN_KEY is not set"
    )
    page.get_by_role("button", name="Add program").click()
    card = page.locator("article.server", has_text="Fails").first
    output = card.get_by_role("region", name="What the program said")
    for scheme, width in (("light", 1280), ("dark", 390)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        expect(output).to_contain_text("GARDEN_KEY is not set")
        assert output.evaluate("box => box.scrollTop") == 0, "its end is not in sight"
        expect_no_faults(page, f"a program that does not start, {scheme}")
        screenshot(page, f"program-fails-{scheme}")
    # Its checks would tell every page of the demo again and again that a server has changed.
    trellis.shell(FORGET_THE_PROGRAM)


def test_a_server_is_disconnected_and_connected_by_hand(
    page: Page, trellis: RunningTrellis
) -> None:
    """Ours: and another open page shows both by itself."""
    enter(page, ADMIN, at="/w/demo/servers/")
    watcher = page.context.new_page()
    watcher.goto("/w/demo/servers/")
    card, seen = (
        one.locator("article.server", has_text="notes 1.0").first for one in (page, watcher)
    )
    expect(seen).to_contain_text("Connected")
    card.get_by_role("button", name=re.compile("More for")).click()
    page.get_by_role("button", name="Disconnect").first.click()
    expect(card).to_contain_text("Disconnected")
    expect(seen).to_contain_text("Disconnected")
    card.get_by_role("button", name=re.compile("^Connect ")).click()
    expect(card).to_contain_text("Connected")
    expect(seen).to_contain_text("Connected")


def test_a_server_that_somebody_else_adds_appears_by_itself(
    page: Page, trellis: RunningTrellis, counting: CountingServer
) -> None:
    """Ours: without a reload, and it goes the same way."""
    enter(page, ADMIN, at="/w/demo/servers/")
    expect(page.locator("article.server").first).to_be_visible()
    other = page.context.new_page()
    other.goto("/w/demo/servers/")
    other.get_by_role("link", name="Add a server").click()
    form = other.locator("#add-form")
    form.locator("input[name=name]").fill("newcomer")
    form.locator("input[name=url]").fill(counting.url)
    form.get_by_role("button", name="Add server").click()
    card = page.locator("article.server", has_text="newcomer")
    expect(card).to_have_count(1)
    gone = other.locator("article.server", has_text="newcomer").first
    gone.get_by_role("button", name=re.compile("More for newcomer")).click()
    gone.get_by_role("button", name="Delete").click()
    other.get_by_role("button", name="Delete the server").click()
    expect(card).to_have_count(0)


def test_another_provider_answers_where_the_chosen_one_is_away(page: Page) -> None:
    """REL-643: an admin names the fallback on the form; the chat says which model answers and why."""
    spare, away = ScriptedModel(), ScriptedModel()
    away.stop()
    try:
        spare.say("Hello from the spare model")
        enter(page, ADMIN)
        for name, model, following in (("Spare", spare, ""), ("Main", away, "Spare")):
            page.goto("/admin/chat/modelprovider/add/")
            page.locator("input[name=name]").fill(name)
            page.locator("input[name=base_url]").fill(model.base_url)
            page.locator("input[name=default_model]").fill(f"{name.lower()}-model")
            if following:
                page.locator("select[name=fallback]").select_option(label=following)
            page.get_by_role("button", name="Save", exact=True).click()
            expect(page.get_by_role("heading", name=name)).to_be_visible()
        expect(page.get_by_text("spare-model of Spare answers")).to_be_visible()
        page.goto("/w/demo/")
        page.locator(".bud-card").first.get_by_role("button").first.click()
        page.keyboard.press("Control+Shift+M")
        page.get_by_role("combobox", name="Search buds and models").fill("main-model")
        expect(page.get_by_role("option", name=re.compile("main-model"))).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog", name="Bud and model")).to_be_hidden()
        say(page, "Hello")
        expect(page.get_by_text("Hello from the spare model").first).to_be_visible()
        expect(page.get_by_text("spare-model of “Spare” answers instead").first).to_be_visible()
        screenshot(page, "fallback")
    finally:
        spare.stop()
        page.goto("/admin/chat/modelprovider/")
        for name in ("Main", "Spare"):
            page.get_by_role("link", name=name, exact=True).click()
            page.locator("input[name=is_active]").uncheck()
            page.get_by_role("button", name="Save", exact=True).click()


def test_the_catalogue_asks_in_which_buds_a_server_is_used(page: Page) -> None:
    """REL-763: what was opened stays open when the buds have come, and shows them to those who choose."""
    enter(page, ADMIN, at="/w/demo/catalogue/?q=notion")
    entry = page.get_by_role("listitem", name="Notion")
    entry.get_by_text("Where it is used").first.click()
    buds = entry.locator(".bud-choice")
    expect(buds.locator("input").first).to_be_attached()
    expect(buds).to_be_hidden()
    entry.get_by_label("In the buds chosen below").check()
    buds.get_by_role("checkbox").first.check()
