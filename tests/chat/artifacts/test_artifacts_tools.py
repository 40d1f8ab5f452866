"""Built-in tools of a bud that makes files: through the gate, once each, and content that the model never sees."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import mcp_types
import pytest
from django.db import connection

from audit.models import AuditEntry
from chat.artifacts import rows, services, storage
from chat.artifacts.calls import run_builtin
from chat.engine import calls, runner
from chat.engine.leases import LeaseLost
from chat.models import ArtifactVersion, Turn
from chat.services.approvals import decide
from chat.services.turns import stop_turn
from chat.tools.builtin.files import SPECS, find_target
from chat.tools.offered import OfferedTool
from chat.tools.toolset import resolve_toolset
from chat.values import ArtifactOrigin, Decision
from mcp_servers.client.canonical import arguments_hash, canonical_json
from mcp_servers.models import Approval
from tests.chat.conftest import Chat
from tests.fakes.mcp_server import CountingServer, listening, reply
from tests.patience import PATIENCE
from tests.threads import Threads
from workspaces.errors import Conflict, InvalidInput

SECRET_TEXT = "The model must never read this line."


@pytest.fixture
def making(chat: Chat) -> Chat:
    """A conversation whose bud makes files."""
    chat.bud.makes_artifacts = True
    chat.bud.save(update_fields=["makes_artifacts"])
    return chat


def files(chat: Chat) -> dict[str, list[bytes]]:
    """Every file's versions."""
    return {
        artifact.name: [
            storage.read(version.path)
            for version in ArtifactVersion.objects.for_workspace(artifact.workspace_id)
            .filter(artifact=artifact)
            .order_by("number")
        ]
        for artifact, _ in rows.artifacts_of(chat.conversation)
    }


def upload(chat: Chat, name: str, content: bytes) -> services.SavedFile:
    return services.create_artifact(
        conversation=chat.conversation,
        name=name,
        content=content,
        actor=chat.actor,
        origin=ArtifactOrigin.UPLOAD,
    )


def entries(chat: Chat) -> list[tuple[str, str, str]]:
    found = AuditEntry.objects.for_workspace(chat.tenant.workspace).order_by("id")
    return [
        (entry.action, entry.server_name, entry.tool_name)
        for entry in found
        if entry.action.startswith(("tool_call", "approval", "resource_read"))
    ]


def test_only_a_bud_that_makes_files_is_offered_the_tools(chat: Chat) -> None:
    """SEC-65: the names of built-in tools and of servers' tools cannot meet, and each is offered as what it is."""
    assert not any(tool.builtin for tool in resolve_toolset(chat.bud, chat.conversation).tools)
    chat.bud.makes_artifacts = chat.bud.has_knowledge = True
    offered = resolve_toolset(chat.bud, chat.conversation)
    names = {tool.function_name for tool in offered.tools if tool.builtin}
    assert names == {spec.name.value for spec in SPECS}
    assert all("__" in tool.function_name for tool in offered.tools if not tool.builtin)
    chat.bud.mcp_config = {"servers": []}
    chat.bud.takes_all_tools = False
    alone = {tool.function_name for tool in resolve_toolset(chat.bud, chat.conversation).tools}
    assert alone == names - {"send_artifact_to_mcp", "retrieve_file_from_mcp"}


def test_lines_are_those_of_the_outline(making: Chat) -> None:
    """REL-324: a page break or another end of Unicode's within a line shifts none of those below it."""
    model = making.model
    model.call(
        ("create_artifact", {"name": "a.md", "content": "one\f\u2028one\n# Two\n\x85three\n"})
    )
    model.call(("read_artifact", {"name": "a.md", "first_line": 2, "last_line": 2}))
    model.call(("create_artifact", {"name": "b.txt", "content": "one\rtwo\rthree"}))
    model.call(("read_artifact", {"name": "b.txt", "first_line": 2, "last_line": 2}))
    model.say("done")
    making.ask()
    assert making.results()[1].endswith("lines 2 to 2 of 3:\n# Two\n")
    assert making.results()[3].endswith("lines 2 to 2 of 3:\ntwo\r")


def test_a_model_makes_reads_changes_and_lists_files(making: Chat) -> None:
    """Ours: each call is one version, shown on its card, and on record as requested and finished."""
    model = making.model
    model.call(("create_artifact", {"name": "../note.md", "content": "one\ntwo\nthree\n"}))
    model.call(("read_artifact", {"name": "note.md", "first_line": 2, "last_line": 2}))
    model.call(
        ("update_artifact", {"name": "note.md", "replace": {"old": "two", "new": "2"}}),
    )
    model.call(("update_artifact", {"name": "note.md", "content": "whole"}))
    model.call(("list_artifacts", {}))
    model.say("done")
    assert making.ask().status == "completed"
    assert files(making) == {"note.md": [b"one\ntwo\nthree\n", b"one\n2\nthree\n", b"whole"]}
    results = making.results()
    assert results[1].endswith("two\n")
    assert "note.md: version 3, text/markdown" in results[4]
    cards = [call["artifact"] for call in making.snapshot()["tool_calls"]]
    assert [card and card["version"] for card in cards] == [1, 1, 2, 3, None]
    assert entries(making) == [
        (f"tool_call.{what}", "", tool)
        for tool in (
            "create_artifact",
            "read_artifact",
            "update_artifact",
            "update_artifact",
            "list_artifacts",
        )
        for what in ("requested", "finished")
    ]
    [row] = making.snapshot()["artifacts"]
    assert (row["name"], row["version"]["origin"]) == ("note.md", "model")


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("create_artifact", {"name": "taken.md", "content": "x"}, "update_artifact"),
    ("create_artifact", {"name": "x.md"}, "content"),
    ("read_artifact", {"name": "no.md"}, "taken.md"),
    ("read_artifact", {"name": "taken.md", "version": 7}, "not found"),
    ("read_artifact", {"name": "picture.bin"}, "no text"),
    ("update_artifact", {"name": "taken.md"}, "Give either"),
    ("update_artifact", {"name": "taken.md", "replace": {"old": "z", "new": ""}}, "not at all"),
    ("update_artifact", {"name": "taken.md", "replace": {"old": "a", "new": ""}}, "2 times"),
    ("send_artifact_to_mcp", {"artifact": "taken.md"}, "server"),
    (
        "send_artifact_to_mcp",
        {"artifact": "no.md", "server": "counting", "tool": "echo", "argument": "text"},
        "taken.md",
    ),
    (
        "send_artifact_to_mcp",
        {"artifact": "taken.md", "server": "counting", "tool": "еcho", "argument": "text"},
        "counting.echo",
    ),
    (
        "send_artifact_to_mcp",
        {
            "artifact": "picture.bin",
            "server": "counting",
            "tool": "echo",
            "argument": "text",
            "encoding": "text",
        },
        "base64",
    ),
    (
        "send_artifact_to_mcp",
        {"artifact": "taken.md", "server": "counting", "tool": "echo"},
        "argument",
    ),
    (
        "send_artifact_to_mcp",
        {
            "artifact": "taken.md",
            "server": "counting",
            "tool": "echo",
            "argument": "text",
            "arguments": "x",
        },
        "object",
    ),
    ("retrieve_file_from_mcp", {"server": "counting", "tool": "echo"}, "name"),
    ("retrieve_file_from_mcp", {"server": "other", "name": "x"}, "URI"),
    ("retrieve_file_from_mcp", {"server": "other", "resource": "a:b", "name": "x"}, "counting"),
    (
        "retrieve_file_from_mcp",
        {"server": "counting", "tool": "fail", "arguments": {"text": "broken"}, "name": "x"},
        "broken",
    ),
]


def test_what_cannot_be_done_is_said_and_changes_nothing(making: Chat) -> None:
    """Ours: every mistake of a model is an answer that helps it, and leaves the files as they were."""
    upload(making, "taken.md", b"a a")
    upload(making, "picture.bin", b"\0")
    making.model.call(*((tool, arguments) for tool, arguments, _ in MISTAKES))
    making.model.say("sorry")
    assert making.ask().status == "completed"
    for (tool, arguments, words), answer in zip(MISTAKES, making.results(), strict=True):
        assert words in answer, (tool, arguments, answer)
    assert files(making) == {"taken.md": [b"a a"], "picture.bin": [b"\0"]}
    assert "echo" not in [name for name, _ in making.server.calls]


def test_a_switched_off_bud_makes_nothing_and_the_refusal_is_on_record(making: Chat) -> None:
    """Ours: a tool that was offered and is taken away before it runs is refused by the gate, with an entry."""
    making.model.call(("create_artifact", {"name": "a.md", "content": "x"}))
    making.model.say("sorry")
    begun = calls.start_call

    def switch_off(*args: Any) -> Any:
        making.bud.makes_artifacts = False
        making.bud.save(update_fields=["makes_artifacts"])
        return begun(*args)

    with patch("chat.engine.calls.start_call", switch_off):
        making.ask()
    assert files(making) == {}
    assert making.calls()[0].status == "refused"
    assert entries(making) == [("tool_call.refused", "", "create_artifact")]


def test_a_call_that_is_made_again_makes_one_version(making: Chat) -> None:
    """REL-04: the process dies after the version is written: the call runs again, and the version is that one."""
    making.model.call(("create_artifact", {"name": "a.md", "content": "once"}))
    making.model.call(("update_artifact", {"name": "a.md", "replace": {"old": "once", "new": "1"}}))
    making.model.say("done")
    making.ask()
    for call in making.calls():
        again = run_builtin(call, making.conversation, making.bud, making.actor)
        assert not again.is_error
        assert again.details["artifact"] == call.artifact
    assert files(making) == {"a.md": [b"once", b"1"]}


def test_a_file_of_a_dead_holder_is_made_once(making: Chat) -> None:
    """REL-04: the process dies between *finished* and its own row: another one makes the call again, one version
    and one pair of entries are there."""
    making.model.call(("create_artifact", {"name": "a.md", "content": "once"}))
    making.model.say("done")
    died = threading.Event()

    def die(*_: Any, **__: Any) -> None:
        died.set()
        raise LeaseLost

    with patch("chat.engine.calls.finish_call", die):
        sent = making.send()
        assert died.wait(PATIENCE)
        turns = Turn.objects.for_workspace(making.tenant.workspace).filter(pk=sent.turn.pk)
        turns.update(status="running", lease_until=None, lease_token=41)
        making.watching.forget()
    runner.wake(sent.turn.pk, making.tenant.workspace.pk)
    making.watching.turn("completed")
    assert files(making) == {"a.md": [b"once"]}
    assert [call.status for call in making.calls()] == ["succeeded"]
    assert [action for action, _, _ in entries(making)] == [
        "tool_call.requested",
        "tool_call.finished",
    ]


def test_of_many_who_save_at_once_one_is_first(making: Chat, folder: Path) -> None:
    """Ours: eight save after the same version: one does, seven are told; nothing is overwritten, nothing left behind."""
    artifact = upload(making, "a.md", b"one").artifact

    def save(number: int) -> bool:
        try:
            services.add_version(
                artifact=artifact,
                content=b"by %d" % number,
                actor=making.actor,
                origin=ArtifactOrigin.EDIT,
                base=1,
            )
        except Conflict:
            return False
        finally:
            connection.close()
        return True

    with Threads(8) as pool:
        saved = list(pool.map(save, range(8)))
    assert sum(saved) == 1
    assert files(making) == {"a.md": [b"one", b"by %d" % saved.index(True)]}
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 2


def test_sending_puts_the_content_in_without_showing_it_to_the_model(making: Chat) -> None:
    """SEC-72: the server's own tool gets the content; the model, its messages and the card do not hold it."""
    upload(making, "data.txt", SECRET_TEXT.encode())
    making.model.call(
        (
            "send_artifact_to_mcp",
            {"artifact": "data.txt", "server": "counting", "tool": "plain", "argument": "text"},
        )
    )
    making.model.say("sent")
    sent = making.send()
    making.watching.turn("waiting_for_approval")
    [call] = making.snapshot()["tool_calls"]
    assert (call["server"]["name"], call["tool"]["name"]) == ("counting", "plain")
    assert call["arguments"] == {
        "text": {
            "file": {
                "name": "data.txt",
                "version": 1,
                "content_type": "text/plain",
                "size": len(SECRET_TEXT),
            }
        }
    }
    assert SECRET_TEXT not in str(making.snapshot())
    # Saved meanwhile: what was shown is what is sent.
    services.add_version(
        artifact=rows.artifacts_of(making.conversation)[0][0],
        content=b"another",
        actor=making.actor,
        origin=ArtifactOrigin.EDIT,
    )
    [row] = making.calls()
    with pytest.raises(InvalidInput, match="can't be edited"):
        decide(
            call=row, decision=Decision.APPROVED, actor=making.actor, arguments={"text": "other"}
        )
    decide(call=row, decision=Decision.APPROVED, actor=making.actor)
    making.watching.turn("completed")
    assert making.reload(sent.turn).status == "completed"
    assert making.server.calls == [("plain", {"text": SECRET_TEXT})]
    approval = Approval.objects.for_workspace(making.tenant.workspace).get()
    assert approval.arguments_hash == arguments_hash({"text": SECRET_TEXT})
    requested = AuditEntry.objects.for_workspace(making.tenant.workspace).get(
        action="tool_call.requested"
    )
    assert requested.tool_name == "plain"
    assert requested.arguments_size == len(canonical_json({"text": SECRET_TEXT}))
    # The model reads what the tool answers, and what it had asked for; nothing of the file before that.
    assert SECRET_TEXT not in str(making.model.requests[0])


def test_a_refused_sending_sends_nothing(making: Chat) -> None:
    """SEC-72: the person's no is final, and on record for the tool that would have got the content."""
    upload(making, "data.txt", SECRET_TEXT.encode())
    making.model.call(
        (
            "send_artifact_to_mcp",
            {"artifact": "data.txt", "server": "counting", "tool": "plain", "argument": "text"},
        )
    )
    making.model.say("all right")
    making.send()
    making.watching.turn("waiting_for_approval")
    decide(call=making.calls()[0], decision=Decision.REFUSED, actor=making.actor)
    making.watching.turn("completed")
    assert making.server.calls == []
    assert ("tool_call.refused", "counting", "plain") in entries(making)


def test_binary_content_is_sent_in_base64(making: Chat) -> None:
    """Ours: what is no text goes in base64 or as a data URL."""
    upload(making, "a.bin", b"\0\1")
    to = {"artifact": "a.bin", "server": "counting", "tool": "echo", "argument": "text"}
    making.model.call(("send_artifact_to_mcp", to))
    making.model.call(("send_artifact_to_mcp", {**to, "encoding": "data_url"}))
    making.model.say("sent")
    making.ask()
    assert making.server.calls == [
        ("echo", {"text": "AAE="}),
        ("echo", {"text": "data:application/octet-stream;base64,AAE="}),
    ]


@pytest.fixture
def canary() -> Iterator[list[str]]:
    """A web server that nobody may ask; first its origin, then what it was asked for."""
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(scope["path"])
            await reply(send, 200, b"taken", "text/plain")

    with listening(app) as place:
        seen.append(place.origin)
        yield seen


@pytest.fixture
def exporting(counting: CountingServer, canary: list[str]) -> CountingServer:
    """Tools and resources that give files, on the server of the conversation that is made next."""
    server = counting.server

    def export(kind: str) -> list[Any]:
        blob = mcp_types.BlobResourceContents(
            uri="file:///etc/shadow",
            mime_type="application/zip",
            blob=base64.b64encode(b"PK\x03\x04\0binary").decode(),
        )
        if kind == "blob":
            return [mcp_types.EmbeddedResource(type="resource", resource=blob)]
        if kind == "link":
            link = {"name": "secret", "uri": f"{canary[0]}/latest/meta-data"}
            return [mcp_types.ResourceLink(type="resource_link", **link)]
        return [mcp_types.TextContent(type="text", text=SECRET_TEXT)]

    server.add_tool(
        export,
        structured_output=False,
        annotations=mcp_types.ToolAnnotations(read_only_hint=True, open_world_hint=True),
    )

    @server.resource("note://page", mime_type="text/csv")
    def page() -> str:
        return "a,b\n1,2\n"

    return counting


def test_retrieving_saves_what_the_model_never_reads(
    exporting: CountingServer, making: Chat
) -> None:
    """SEC-72: text, a binary file and a resource become files; the model reads only that they did."""

    def retrieve(**arguments: Any) -> None:
        making.model.call(("retrieve_file_from_mcp", {"server": "counting", **arguments}))

    retrieve(tool="export", arguments={"kind": "text"}, name="report.txt")
    retrieve(tool="export", arguments={"kind": "blob"}, name="pack.zip")
    retrieve(resource="note://page", name="table.csv")
    retrieve(resource="note://page", name="table.csv")
    making.model.say("saved")
    making.ask()
    assert files(making) == {
        "report.txt": [SECRET_TEXT.encode()],
        "pack.zip": [b"PK\x03\x04\0binary"],
        "table.csv": [b"a,b\n1,2\n"] * 2,
    }
    assert SECRET_TEXT not in str(making.model.requests)
    assert SECRET_TEXT not in str(making.snapshot())
    assert "version 2" in making.results()[3]
    assert entries(making)[-2:] == [
        ("resource_read.requested", "counting", "note://page"),
        ("resource_read.finished", "counting", "note://page"),
    ]
    # What came from outside counts as read once the model reads it.
    making.model.call(("read_artifact", {"name": "report.txt"}))
    making.model.say("read")
    turn = making.send("again").turn
    making.watching.forget()
    making.watching.turn("completed")
    assert making.reload(turn).has_read_untrusted


def test_addresses_are_only_ever_asked_of_their_server(
    exporting: CountingServer, canary: list[str], making: Chat
) -> None:
    """SEC-72: a URI goes to the server that named it, and is opened by nobody else; a link in a result is not followed."""
    uris = [
        "file:///etc/passwd",
        "http://169.254.169.254/latest/",
        f"{canary[0]}/asked",
        "note://other",
    ]
    making.model.call(
        (
            "retrieve_file_from_mcp",
            {"server": "counting", "tool": "export", "arguments": {"kind": "link"}, "name": "x"},
        ),
        *(
            ("retrieve_file_from_mcp", {"server": "counting", "resource": uri, "name": "y"})
            for uri in uris
        ),
    )
    making.model.say("nothing")
    making.ask()
    assert files(making) == {}
    assert "only names a resource" in making.results()[0]
    assert all(answer.startswith("Error") for answer in making.results()[1:])
    assert canary[1:] == []
    asked = b"".join(exporting.bodies)
    assert all(uri.encode() in asked for uri in uris)


def test_a_transfer_reaches_the_tool_that_was_named_or_none() -> None:
    """SEC-65: names are compared to the letter, so a look-alike, another server's tool or a prefix is no match."""

    def offered(server: str, tool: str, function: str) -> OfferedTool:
        return OfferedTool(
            function_name=function,
            server_id=uuid4(),
            server_name=server,
            tool_id=uuid4(),
            tool_name=tool,
            title="",
            description="",
            input_schema={},
            annotations={},
            definition_hash="",
        )

    one, two = offered("a", "b__c", "a__b__c"), offered("a__b", "c", "a__b__c_12345678")
    three = offered("a", "a__b__c", "a__a__b__c")
    tools = (one, two, three)

    def find(server: str, tool: str) -> OfferedTool | str:
        arguments = {"artifact": "x", "server": server, "tool": tool, "argument": "y"}
        return find_target(tools, "send_artifact_to_mcp", arguments)

    assert find("a", "b__c") is one
    assert find("a__b", "c") is two
    assert find("a", "a__b__c") is three
    assert find("", "a__b__c_12345678") is two
    for server, tool in (("а", "b__c"), ("a", "c"), ("A", "b__c"), ("a__b", "a__b__c")):
        assert isinstance(find(server, tool), str)


def test_stopping_between_the_entries_leaves_no_call_open(making: Chat) -> None:
    """REL-09: a call that was let through and then stopped has its end on record, whoever ends it."""
    making.model.call(("create_artifact", {"name": "a.md", "content": "x"}))
    stopped: list[Any] = []

    def stop(_self: Any, name: str, content: Any) -> str:
        if not stopped:
            stopped.append(stop_turn(turn=making.calls()[0].turn, actor=making.actor))
        return saved(_self, name, content)

    saved = storage.DiskStorage._save
    with patch.object(storage.DiskStorage, "_save", stop):
        making.send()
        making.watching.turn("cancelled")
    actions = [entry[0] for entry in entries(making)]
    assert actions == ["tool_call.requested", "tool_call.finished"]
