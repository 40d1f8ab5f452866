"""Servers that other people wrote: the reference servers of the protocol, pinned, over every transport they have."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_servers.client.connections import calls, completion, runtime
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.connections.hooks import hooks
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.inputs import InputKind, TaskStarted
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.transports.targets import StdioSpec
from tests.mcp_servers.client.helpers import Person, send, spec_for, text_of, within
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.servers.install import Installed, installed_servers

WAYS = ["stdio", "streamable_http", "sse"]
ARCHITECTURE = "demo://resource/static/document/architecture.md"
MODEL_ANSWER = {"role": "assistant", "model": "m-1", "content": {"type": "text", "text": "hi"}}


@pytest.fixture(scope="session")
def servers() -> Installed:
    """The servers, installed once."""
    return installed_servers()


@contextlib.contextmanager
def running(command: tuple[str, ...], port: int = 0) -> Iterator[int]:
    """A server on a free port, or on this one, for the length of a block."""
    if not port:
        port = free_port()
    process = subprocess.Popen(
        command,
        env={"PATH": os.environ["PATH"], "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def everything(servers: Installed, way: str, home: Path, **fields: Any) -> Iterator[ConnectionSpec]:
    """server-everything, over one of its transports; the automatic choice finds out which."""
    command = servers.node("server-everything")
    if way == "stdio":
        yield spec_for(StdioSpec(argv=(*command, "stdio"), home=home), **fields)
        return
    name, path = ("sse", "sse") if way == "sse" else ("streamableHttp", "mcp")
    with running((*command, name)) as port:
        yield spec_for(f"http://127.0.0.1:{port}/{path}", **fields)


def program(command: tuple[str, ...], home: Path, *arguments: str, **env: str) -> ConnectionSpec:
    return spec_for(StdioSpec(argv=(*command, *arguments), home=home, env=env))


@pytest.mark.parametrize("way", WAYS)
async def test_server_everything(servers: Installed, tmp_path: Path, way: str) -> None:
    """Every feature that the reference server has."""
    options: dict[str, Any] = {"allows_sampling": True, "roots": (("file:///work", "work"),)}
    with everything(servers, way, tmp_path / "home", **options) as spec:
        listing = await runtime.run(pool.list_offers(spec))
        assert listing.facts.transport == way
        assert listing.facts.protocol_revision == "2025-11-25"
        assert listing.warnings == ()
        names = {tool["name"] for tool in listing.tools}
        assert names >= {"echo", "get-sum", "trigger-elicitation-request", "get-roots-list"}
        assert len(listing.resources) >= 7
        assert len(listing.resource_templates) == 2
        assert {prompt["name"] for prompt in listing.prompts} >= {"args-prompt", "simple-prompt"}

        assert await text_of(send(spec, "echo", {"message": "hi"})) == "Echo: hi"
        person = Person(content={"name": "Anna"})
        await send(
            spec, "trigger-long-running-operation", {"duration": 0.4, "steps": 4}, listener=person
        )
        assert [one.progress for one in person.progress] == [1, 2, 3, 4]

        answered: Any = await send(spec, "trigger-elicitation-request", listener=person)
        assert person.asked[0].kind is InputKind.FORM
        assert "Name: Anna" in answered.content[1].text
        answered = await send(
            spec, "trigger-url-elicitation", {"url": "https://example.com/"}, listener=person
        )
        assert (person.asked[1].kind, person.asked[1].url) == (
            InputKind.URL,
            "https://example.com/",
        )
        model = Person(content=MODEL_ANSWER)
        answered = await send(
            spec, "trigger-sampling-request", {"prompt": "say hi"}, listener=model
        )
        assert "m-1" in answered.content[0].text
        assert "file:///work" in await text_of(send(spec, "get-roots-list"))

        read = await calls.read_resource(spec, ARCHITECTURE, limits=within(PATIENCE))
        assert "everything" in str(read).lower()
        prompt: Any = await calls.get_prompt(
            spec, "args-prompt", {"city": "Bern"}, limits=within(PATIENCE)
        )
        assert "Bern" in prompt.messages[0].content.text
        found = await completion.complete(
            spec, ref="prompt", name="completable-prompt", argument="department", value="E"
        )
        assert found == ["Engineering"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_that_must_run_as_a_task(servers: Installed, tmp_path: Path, way: str) -> None:
    """MCP 2025-11-25, Tasks: started, a question in the course of it, and its result."""
    with everything(servers, way, tmp_path / "home") as spec:
        arguments = {"topic": "bees", "ambiguous": True}
        started = await send(
            spec,
            "simulate-research-query",
            arguments,
            as_task=True,
            limits=within(PATIENCE, PATIENCE),
        )
        assert isinstance(started, TaskStarted)
        person = Person(content={"interpretation": "academic"})
        result = await calls.follow_task(
            spec, started.task_id, limits=within(PATIENCE, PATIENCE), listener=person
        )
        assert "academic" in str(result.content[0])
        assert [asked.kind for asked in person.asked] == [InputKind.FORM]


@pytest.mark.parametrize("way", WAYS)
async def test_a_watched_resource_of_server_everything(
    servers: Installed, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MCP 2025-11-25, Resources, Subscriptions."""
    listed: list[tuple[Any, ...]] = []
    monkeypatch.setattr(hooks, "resource_updated", lambda *facts: listed.append(facts))
    with everything(servers, way, tmp_path / "home", watched=(ARCHITECTURE,)) as spec:
        await send(spec, "echo", {"message": "hi"})
        await asyncio.sleep(0.5)  # the subscription is taken beside the call
        await send(spec, "toggle-subscriber-updates")
        async with asyncio.timeout(PATIENCE):
            while not listed:
                await asyncio.sleep(0.05)
        assert listed[0] == (spec.workspace_id, spec.server_id, ARCHITECTURE)


async def test_a_restarted_server_is_found_again(servers: Installed, tmp_path: Path) -> None:
    """REL-34, REL-200: it says in its own way, by status 400, that it has forgotten the session; the next call has a new one."""
    command = (*servers.node("server-everything"), "streamableHttp")
    with running(command) as port:
        spec = spec_for(f"http://127.0.0.1:{port}/mcp")
        assert await text_of(send(spec, "echo", {"message": "1"})) == "Echo: 1"
        first = pool._connections[spec.key]
    with running(command, port):
        with pytest.raises(CallFailed) as caught:
            await send(spec, "echo", {"message": "2"})
        assert caught.value.kind == "session_refused"
        assert await text_of(send(spec, "echo", {"message": "2"})) == "Echo: 2"
        assert pool._connections[spec.key] is not first


async def test_server_filesystem(servers: Installed, tmp_path: Path) -> None:
    """Reads and writes within its folder, and nowhere else; it has no resources, and is not asked for any."""
    folder = tmp_path / "files"
    folder.mkdir()
    spec = program(servers.node("server-filesystem"), tmp_path / "home", str(folder))
    listing = await runtime.run(pool.list_offers(spec))
    assert (len(listing.tools), listing.resources, listing.warnings) == (14, (), ())
    path = str(folder / "note.txt")
    await send(spec, "write_file", {"path": path, "content": "hello"})
    assert Path(path).read_text() == "hello"
    assert await text_of(send(spec, "read_text_file", {"path": path})) == "hello"
    outside: Any = await send(spec, "read_text_file", {"path": "/etc/hostname"})
    assert outside.is_error


async def test_server_memory(servers: Installed, tmp_path: Path) -> None:
    """Keeps what it is told across its restarts; has a resource of its own."""
    home = tmp_path / "home"
    kept = str(tmp_path / "memory.jsonl")
    spec = program(servers.node("server-memory"), home, MEMORY_FILE_PATH=kept)
    entity = {"name": "Anna", "entityType": "person", "observations": ["likes tea"]}
    await send(spec, "create_entities", {"entities": [entity]})
    await runtime.run(pool.drop(spec.server_id))
    graph: Any = await send(spec, "read_graph")
    assert graph.structured_content["entities"][0]["name"] == "Anna"
    listing = await runtime.run(pool.list_offers(spec))
    assert len(listing.tools) == 9
    assert [one["uri"] for one in listing.resources] == ["memory://knowledge-graph"]


@pytest.mark.parametrize(
    ("name", "arguments", "tool", "given", "words"),
    [
        (
            "mcp-server-time",
            ["--local-timezone", "UTC"],
            "get_current_time",
            {"timezone": "UTC"},
            "UTC",
        ),
        (
            "mcp-server-git",
            ["--repository", "{repo}"],
            "git_status",
            {"repo_path": "{repo}"},
            "branch",
        ),
    ],
)
async def test_servers_of_the_newest_revision(
    servers: Installed,
    tmp_path: Path,
    name: str,
    arguments: list[str],
    tool: str,
    given: dict[str, str],
    words: str,
) -> None:
    """Found out by negotiation, without a word in any setting."""
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    filled = [text.format(repo=repository) for text in arguments]
    spec = program(servers.python(name), tmp_path / "home", *filled)
    listing = await runtime.run(pool.list_offers(spec))
    assert listing.facts.protocol_revision == "2026-07-28"
    assert listing.facts.was_negotiated
    assert tool in {one["name"] for one in listing.tools}
    sent = {key: text.format(repo=repository) for key, text in given.items()}
    assert words in await text_of(send(spec, tool, sent))


async def test_server_fetch(servers: Installed, tmp_path: Path) -> None:
    """It lives apart from our packages, with another HTTP library."""
    with running(
        (
            str(servers.python("mcp-server-fetch")[0]).replace("mcp-server-fetch", "python"),
            "-c",
            PAGE,
        )
    ) as port:
        spec = program(
            servers.python("mcp-server-fetch"),
            tmp_path / "home",
            "--ignore-robots-txt",
            "--allow-private-ips",
        )
        url = f"http://127.0.0.1:{port}/"
        text = await text_of(send(spec, "fetch", {"url": url}))
        assert "a page of our own" in text
        prompt: Any = await calls.get_prompt(spec, "fetch", {"url": url}, limits=within(PATIENCE))
        assert "a page of our own" in prompt.messages[0].content.text


PAGE = """
import http.server, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<html><body><p>a page of our own</p></body></html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Page).serve_forever()
"""
