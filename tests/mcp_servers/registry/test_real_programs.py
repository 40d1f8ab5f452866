"""Servers that other people wrote, as programs of a workspace: set up, looked at and called as an administrator does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_servers.client import transports
from mcp_servers.client.transports.stdio import MAX_STDERR_LINE
from mcp_servers.client.transports.targets import LONGEST_CONNECT_SECONDS
from mcp_servers.gate import tester
from mcp_servers.models import McpServer, StdioProgram
from mcp_servers.pages.cards import cards_of
from mcp_servers.registry import services
from mcp_servers.registry.services import ConnectionReport, ServerDraft
from mcp_servers.registry.services.inspection import MAX_SAID
from mcp_servers.registry.specs import connection_spec
from tests.factories import Tenant
from tests.mcp_servers.factories import interpreter, tool_of
from tests.servers.install import Installed, installed_servers
from workspaces.redaction import MASK, remember_secret


@pytest.fixture(scope="session")
def servers() -> Installed:
    """The servers, installed once."""
    return installed_servers()


def offered(command: tuple[str, ...], *args: str, **fields: Any) -> StdioProgram:
    """A program in the platform's catalogue."""
    return StdioProgram.objects.create(
        slug="real",
        title="Real",
        command=command[0],
        args=[*command[1:], *args],
        **fields,
    )


def added(tenant: Tenant, program: StdioProgram, **fields: Any) -> McpServer:
    """A server of the workspace that runs it."""
    draft = ServerDraft(name="real", transport=transports.STDIO, program=program, **fields)
    return services.add_server(
        workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor("admin")
    )


def looked_at(tenant: Tenant, server: McpServer) -> ConnectionReport:
    return services.test_connection(server=server, actor=tenant.actor("admin"))


def tried(tenant: Tenant, server: McpServer, tool: str, **arguments: Any) -> Any:
    return tester.try_tool(
        tool=tool_of(server, tool),
        arguments=arguments,
        actor=tenant.actor("admin"),
        is_confirmed=True,
    )


def test_server_filesystem_works_in_the_folder_that_it_was_given(
    tenant: Tenant, servers: Installed, tmp_path: Path
) -> None:
    """REL-1601: it forgets its own folder for those that its client names, so none is named."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "note.txt").write_text("hello")
    program = offered(
        servers.node("server-filesystem"),
        "{folder}",
        parameters=[{"name": "folder", "title": "Folder", "type": "word"}],
    )
    server = added(tenant, program, parameters={"folder": str(folder)})
    assert looked_at(tenant, server).ok
    read = tried(tenant, server, "read_text_file", path=str(folder / "note.txt"))
    assert (read.is_error, read.content[0].text) == (False, "hello")
    assert tried(tenant, server, "read_text_file", path="/etc/hostname").is_error


def test_a_program_without_a_folder_is_told_of_its_own(tenant: Tenant, servers: Installed) -> None:
    """REL-1601: where nothing is set up, a program learns where it may work."""
    server = added(tenant, offered(servers.node("server-everything"), "stdio"))
    assert looked_at(tenant, server).ok
    assert str(server.pk) in tried(tenant, server, "get-roots-list").content[0].text


def test_the_picture_of_server_everything_is_shown(tenant: Tenant, servers: Installed) -> None:
    """REL-1606: its colour profile has a wrong checksum, which browsers overlook."""
    server = added(tenant, offered(servers.node("server-everything"), "stdio"))
    assert looked_at(tenant, server).ok
    kinds = [part.as_json()["type"] for part in tried(tenant, server, "get-tiny-image").content]
    assert kinds == ["text", "image", "text"]


def test_a_wrong_folder_is_told_in_the_servers_words(
    tenant: Tenant, servers: Installed, tmp_path: Path
) -> None:
    """REL-1602: before it is saved and after; a member reads the reason, and not what the program said."""
    program = offered(servers.node("server-filesystem"), str(tmp_path / "nowhere"))
    draft = ServerDraft(name="real", transport=transports.STDIO, program=program)
    before = services.try_connection(
        workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor("admin")
    )
    server = added(tenant, program)
    after = looked_at(tenant, server)
    for report in (before, after):
        assert not report.ok
        assert "ended before it answered" in report.message
        assert "Often a variable, a path or an argument" in report.details
        assert "None of the specified directories are accessible" in report.details
    server = McpServer.objects.for_workspace(tenant.workspace).select_related("state").get()
    card = cards_of([server], actor=tenant.actor("admin"))[0]
    assert "\n" not in card.reason
    assert "None of the specified directories" in card.output
    for_member = cards_of([server], actor=tenant.actor("member"))[0]
    assert card.advice.startswith("Often a variable")
    assert (for_member.reason, for_member.advice, for_member.output) == (card.reason, "", "")


def test_a_program_that_is_not_there_is_told(tenant: Tenant) -> None:
    """REL-1602: that is for whoever installs programs, and no matter of settings."""
    report = looked_at(tenant, added(tenant, offered(("/nowhere/program",))))
    assert report.message == "Trellis could not start the program."
    assert report.details.startswith("The platform's owner has to install it on this machine")
    assert "No such file or directory" in report.details


def test_a_program_that_ends_without_a_word_is_told(tenant: Tenant) -> None:
    """REL-1602: its exit code, or the signal that ended it, is all there is."""
    program = offered((interpreter(), "-c", "raise SystemExit(7)"))
    server = added(tenant, program)
    assert "Its exit code was 7." in looked_at(tenant, server).details
    program.args = ["-c", "import os; os.kill(os.getpid(), 9)"]
    program.save()
    assert "It was ended by signal 9." in looked_at(tenant, server).details
    # As npm ends, by the number of an error: no signal has this one.
    program.args = ["-c", "raise SystemExit(254)"]
    program.save()
    assert "Its exit code was 254." in looked_at(tenant, server).details


def test_a_program_that_is_no_server_shows_what_it_is(tenant: Tenant) -> None:
    """REL-2541: whatever it wrote instead of MCP stands beside the reason, if it ended, waits or does not stop."""
    program = offered((interpreter(), "-c", "print('usage: real [--stdio]')"))
    server = added(tenant, program)
    ended = looked_at(tenant, server)
    assert "ended before it answered" in ended.message
    assert "usage: real [--stdio]" in ended.details
    program.args = ["-c", "while True: print('hello')"]
    program.save()
    endless = looked_at(tenant, server)
    assert endless.message == "The program writes text that is not MCP, and does not stop."
    assert endless.details.count("hello") <= 20
    program.args = ["-c", "print('listening on port 80', flush=True); input(); input(); input()"]
    program.save()
    server.connection_config = {"connect_seconds": 4}
    server.save()
    waiting = looked_at(tenant, server)
    assert "wrote only text that is not MCP" in waiting.details
    assert "If it only starts slowly, give it more" in waiting.details
    assert "listening on port 80" in waiting.details


def test_a_package_runner_gets_all_the_time_there_is(tenant: Tenant) -> None:
    """REL-2542: it fetches the package first, and one that is cut off may never start again."""
    for command in (("/usr/bin/npx", "-y"), ("/usr/bin/env", "A=1", "uvx")):
        StdioProgram.objects.all().delete()
        server = added(tenant, offered(command, "server@1.2.3"))
        assert connection_spec(server).connect_seconds == LONGEST_CONNECT_SECONDS
        services.delete_server(server=server, actor=tenant.actor("admin"))


def test_no_half_of_a_secret_is_among_a_programs_last_words(tenant: Tenant) -> None:
    """SEC-988: the end of what it wrote is shown, and may begin within a secret."""
    secret = "s3cret-of.the-program-77"
    remember_secret(secret, workspace_id=tenant.workspace.pk)
    text = f"import sys; sys.exit('no key: ' + {secret!r} + '.' * {MAX_SAID - 10})"
    server = added(tenant, offered((interpreter(), "-c", text)))
    shown = looked_at(tenant, server).details
    assert shown.endswith(f"{MASK[-4:]}{'.' * (MAX_SAID - 10)}")
    assert secret[-4:] not in shown
    server.state.refresh_from_db()
    assert secret[-4:] not in server.state.status_reason


def test_no_half_of_a_secret_is_in_what_a_program_wrote_instead_of_mcp(tenant: Tenant) -> None:
    """SEC-1032: of a line that is too long to keep, the end is shown."""
    secret = "s3cret-of.the-program-77"
    remember_secret(secret, workspace_id=tenant.workspace.pk)
    text = f"print('.' * {MAX_STDERR_LINE - 10} + {secret!r} + '.' * {MAX_SAID} + 'end')"
    shown = looked_at(tenant, added(tenant, offered((interpreter(), "-c", text)))).details
    assert shown.endswith("end")
    assert secret[:6] not in shown


def test_a_program_that_starts_slowly_is_told_where_it_gets_more_time(tenant: Tenant) -> None:
    """REL-1602, REL-3293: also what it said until then, in plain text. Before it is added it has no settings."""
    text = r"import sys, time; sys.stderr.write('\x1b[31mdownloading\x1b[0m\n'); sys.stderr.flush(); time.sleep(60)"
    program, limits = offered((interpreter(), "-c", text)), {"connect_seconds": 2.0}
    server = added(tenant, program, connection_config=limits)
    report = looked_at(tenant, server)
    assert report.message == "The server did not answer in time."
    assert report.details == (
        "It had 2 seconds. If it only starts slowly, give it more under “Time to connect” in its settings.\n\ndownloading"
    )
    draft = ServerDraft(
        name="new", transport=transports.STDIO, program=program, connection_config=limits
    )
    before = services.try_connection(
        workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor("admin")
    )
    assert "add it. Its settings then have “Time to connect”." in before.details


PROBE = """
import json, os, resource, socket, sys, tempfile
place = tempfile.mkdtemp()
socket.socket(socket.AF_UNIX).bind(os.path.join(place, "a-name-as-long-as-that-of-a-browser.sock"))
open(os.path.join(os.environ["HOME"], "told"), "w").write(json.dumps([tempfile.gettempdir(), resource.getrlimit(resource.RLIMIT_NOFILE)[0]]))
"""


def test_a_program_can_make_sockets_and_read_many_files(
    tenant: Tenant, settings: Any, tmp_path: Path
) -> None:
    """REL-1603: its folder for temporary files has a short path, is its own, and goes with it."""
    deep = tmp_path / ("d" * 100)
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"data_dir": deep})
    server = added(tenant, offered((interpreter(), "-c", PROBE)))
    looked_at(tenant, server)
    scratch, files = json.loads((deep / "stdio" / str(server.pk) / "told").read_text())
    assert len(scratch) <= 50
    assert not Path(scratch).exists()
    assert files >= 1024
