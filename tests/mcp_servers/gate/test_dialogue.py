"""What servers ask while they work, in both eras, against a real server that asks."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome
from audit.models import AuditEntry
from mcp_servers.client.errors import CallRefused, InputMissing
from mcp_servers.client.inputs import AskedInput, InputAction, InputKind
from mcp_servers.client.values import (
    EmbeddedResourcePart,
    PromptRequest,
    Protocol,
    ResourceRequest,
    TextPart,
    ToolCallOutcome,
)
from mcp_servers.gate import abandon_call, call_tool, get_prompt, read_resource
from mcp_servers.models import InputRequest, InputStatus, McpPrompt, McpServer, McpTool
from mcp_servers.registry import elicitation, sampling
from mcp_servers.registry.elicitation.services import MOST_IN_CALL
from mcp_servers.registry.sampling import SamplingResult, SamplingTask
from tests.factories import Tenant
from tests.fakes.asking_server import LINK, AskingServer
from tests.fakes.mcp_server import RawServer, reply, reply_result
from tests.mcp_servers.factories import (
    ListeningCaller,
    a_request,
    actor_of,
    http_server,
    looked_at,
    tool_of,
)
from tests.patience import PATIENCE
from workspaces.errors import Conflict, InvalidInput, PermissionDenied

ERAS = ["legacy", "2026-07-28"]
ANSWER = {"name": "Ada", "guests": 3, "seat": "garden"}


@pytest.fixture
def asking() -> Iterator[AskingServer]:
    """A server that asks."""
    server = AskingServer()
    yield server
    server.stop()


def in_era(tenant: Tenant, asking: AskingServer, era: str, **fields: Any) -> McpServer:
    draft = {
        "name": f"asking {era}",
        "protocol": Protocol(era),
        "trusts_annotations": True,
        **fields,
    }
    later = {key: draft.pop(key) for key in tuple(draft) if key in _ROW_FIELDS}
    server = http_server(tenant, asking.url, **draft)
    McpServer.objects.for_workspace(tenant.workspace).filter(pk=server.pk).update(**later)
    server.refresh_from_db()
    return looked_at(tenant, server)


_ROW_FIELDS = {"sampling", "sampling_daily_tokens", "answers_elicitation", "roots"}


@pytest.fixture(params=ERAS)
def server(request: pytest.FixtureRequest, tenant: Tenant, asking: AskingServer) -> McpServer:
    """The asking server, in each era."""
    return in_era(tenant, asking, request.param)


async def call(
    tenant: Tenant, server: McpServer, name: str, arguments: Any = None, **more: Any
) -> Any:
    tool = await sync_to_async(tool_of)(server, name)
    caller = more.pop("caller", None)
    return await call_tool(a_request(tenant, tool, arguments, can_ask=True, **more), caller=caller)


def rows(tenant: Tenant) -> list[InputRequest]:
    return list(InputRequest.objects.for_workspace(tenant.workspace).order_by("pk"))


async def pending(tenant: Tenant) -> InputRequest:
    [row] = [row for row in await sync_to_async(rows)(tenant) if row.status == InputStatus.PENDING]
    return row


async def answer(
    row: InputRequest, tenant: Tenant, action: InputAction, content: Any = None
) -> None:
    await sync_to_async(elicitation.answer_input)(
        input_request=row, action=action, content=content, actor=actor_of(tenant, "member")
    )


def actions(tenant: Tenant) -> list[str]:
    entries = AuditEntry.objects.for_workspace(tenant.workspace).order_by("pk")
    return [
        entry.action
        for entry in entries
        if entry.action.startswith(("tool_call", "input", "sampling", "resource", "prompt"))
    ]


async def asked_while_calling(
    tenant: Tenant, server: McpServer, name: str, arguments: Any = None
) -> tuple[asyncio.Task[ToolCallOutcome], InputRequest, ListeningCaller]:
    """A call that runs until it waits for a person."""
    caller = ListeningCaller()
    task = asyncio.create_task(call(tenant, server, name, arguments, caller=caller))
    waiting = asyncio.create_task(caller.waits.get())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
    assert not task.done(), task
    assert waiting.result() is True
    return task, await pending(tenant), caller


async def test_a_form_is_asked_and_its_answer_reaches_the_tool(
    tenant: Tenant, server: McpServer, asking: AskingServer
) -> None:
    """MCP specification, "Elicitation": accept, in each era; SEC-69: the form names its server and tool."""
    task, row, caller = await asked_while_calling(tenant, server, "book_table", {"when": "noon"})
    assert (row.server_name, row.tool_name, row.kind) == (server.name, "book_table", "form")
    assert row.message == "For whom is the table?"
    await answer(row, tenant, InputAction.ACCEPT, ANSWER)
    outcome = await asyncio.wait_for(task, PATIENCE)
    assert "Ada, 3 at the garden, noon" in outcome.as_model_text()
    assert asking.done == [("book_table", {"when": "noon", **ANSWER})]
    assert await caller.waits.get() is False
    # The newest revision has the call sent again with its answers; each sending is in the log.
    again = ["tool_call.requested"] if server.state.protocol_revision == "2026-07-28" else []
    assert await sync_to_async(actions)(tenant) == [
        "tool_call.requested",
        "input.requested",
        "input.answered",
        *again,
        "tool_call.finished",
    ]


@pytest.mark.parametrize(
    ("action", "words"),
    [(InputAction.DECLINE, "declined"), (InputAction.CANCEL, "cancelled")],
)
async def test_a_form_can_be_declined(
    tenant: Tenant, server: McpServer, asking: AskingServer, action: InputAction, words: str
) -> None:
    """SEC-69: can be declined."""
    task, row, _ = await asked_while_calling(tenant, server, "book_table", {"when": "noon"})
    await answer(row, tenant, action)
    assert words in (await asyncio.wait_for(task, PATIENCE)).as_model_text()
    assert asking.done == []


async def test_an_answer_is_checked_given_once_and_by_the_person_asked(
    tenant: Tenant, server: McpServer
) -> None:
    """SEC-69: only fitting answers of the person who was asked; a second one comes too late."""
    task, row, _ = await asked_while_calling(tenant, server, "book_table", {"when": "noon"})
    for content, field in [
        ({"name": "Ada", "guests": 99}, "content.guests"),
        ({"guests": 2}, "content.name"),
        ({**ANSWER, "seat": "roof"}, "content.seat"),
        ({**ANSWER, "tip": 5}, "content.tip"),
    ]:
        with pytest.raises(InvalidInput) as caught:
            await answer(row, tenant, InputAction.ACCEPT, content)
        assert field in caught.value.fields
    stranger = dataclasses.replace(actor_of(tenant, "member"), user_id=tenant.people["admin"].pk)
    with pytest.raises(PermissionDenied):
        await sync_to_async(elicitation.answer_input)(
            input_request=row, action=InputAction.DECLINE, actor=stranger
        )
    await answer(row, tenant, InputAction.ACCEPT, ANSWER)
    with pytest.raises(Conflict):
        await answer(row, tenant, InputAction.DECLINE)
    await asyncio.wait_for(task, PATIENCE)


async def test_the_clock_of_the_call_stands_still_while_a_person_answers(
    tenant: Tenant, asking: AskingServer
) -> None:
    """MCP notes: the SDK's timeout runs on meanwhile, ours does not."""
    config = {"connection_config": {"call_seconds": 1.0}}
    server = await sync_to_async(in_era)(tenant, asking, "legacy", **config)
    task, row, _ = await asked_while_calling(tenant, server, "ask_old")
    done, _ = await asyncio.wait([task], timeout=1.5)
    assert not done
    await answer(row, tenant, InputAction.ACCEPT, ANSWER)
    assert "accept" in (await asyncio.wait_for(task, PATIENCE)).as_model_text()


async def test_progress_extends_a_call_up_to_its_hard_limit(
    tenant: Tenant, asking: AskingServer
) -> None:
    """A call that tells of progress may take longer than one that is silent, but not for ever."""
    config = {"connection_config": {"call_seconds": 1.0, "hard_call_seconds": 60.0}}
    hard = await sync_to_async(in_era)(tenant, asking, "2026-07-28", **config)
    limit = 3.0  # on a busy machine too, two signs of life come within it; all of them do not
    outcome = await call(
        tenant, hard, "slow_echo", {"text": "x", "steps": 30}, timeout_seconds=limit
    )
    assert outcome.outcome == Outcome.OK
    silent = await call(tenant, hard, "slow_echo", {"text": "x"}, timeout_seconds=0.1)
    assert silent.outcome == Outcome.TIMEOUT


async def test_nobody_is_asked_when_nobody_is_there(
    tenant: Tenant, server: McpServer, asking: AskingServer
) -> None:
    """A call without a person gets "cancel", and the log says why."""
    tool = await sync_to_async(tool_of)(server, "book_table")
    outcome = await call_tool(a_request(tenant, tool, {"when": "noon"}))
    assert "cancelled" in outcome.as_model_text()
    assert await sync_to_async(rows)(tenant) == []
    assert Action.INPUT_REFUSED.value in await sync_to_async(actions)(tenant)


async def test_a_server_that_may_not_ask_people_does_not(
    tenant: Tenant, asking: AskingServer
) -> None:
    """An administrator can switch questions off; the server is not even told that it could ask."""
    server = await sync_to_async(in_era)(tenant, asking, "legacy", answers_elicitation=False)
    outcome = await call(tenant, server, "book_table", {"when": "noon"})
    assert outcome.is_error
    assert await sync_to_async(rows)(tenant) == []
    assert asking.done == []


async def test_a_form_that_asks_for_a_secret_warns(tenant: Tenant, server: McpServer) -> None:
    """SEC-69: `password` field → warned, and masked afterwards."""
    task, row, _ = await asked_while_calling(tenant, server, "log_in")
    assert any("password" in warning for warning in row.warnings)
    await answer(row, tenant, InputAction.ACCEPT, {"password": "hunter2-canary"})
    await asyncio.wait_for(task, PATIENCE)
    [row] = await sync_to_async(rows)(tenant)
    assert "hunter2-canary" not in str(await sync_to_async(elicitation.input_json)(row))
    entries = AuditEntry.objects.for_workspace(tenant.workspace).values()
    assert "hunter2-canary" not in str([entry async for entry in entries])


async def test_a_parked_call_goes_on_from_its_checkpoint(
    tenant: Tenant, asking: AskingServer
) -> None:
    """A pending question of the newest revision needs no process: the call goes on from the kept text alone."""
    server = await sync_to_async(in_era)(tenant, asking, "2026-07-28")
    tool = await sync_to_async(tool_of)(server, "book_table")
    caller = ListeningCaller()
    request = a_request(tenant, tool, {"when": "noon"}, can_ask=True, can_wait_elsewhere=True)
    with pytest.raises(InputMissing):
        await call_tool(request, caller=caller)
    [checkpoint] = caller.checkpoints
    again = dataclasses.replace(request, checkpoint=checkpoint)
    with pytest.raises(InputMissing):
        await call_tool(again, caller=caller)
    await answer(await pending(tenant), tenant, InputAction.ACCEPT, ANSWER)
    outcome = await call_tool(again, caller=caller)
    assert "Ada, 3 at the garden, noon" in outcome.as_model_text()
    assert caller.checkpoints[1:] == [""]  # forgotten before the server may act
    assert asking.done == [("book_table", {"when": "noon", **ANSWER})]
    assert await sync_to_async(actions)(tenant) == [
        "tool_call.requested",
        "input.requested",
        "input.answered",
        "tool_call.resumed",
        "tool_call.requested",
        "tool_call.finished",
    ]


async def test_a_server_that_has_forgotten_its_question_is_called_again_and_nobody_asked_twice(
    tenant: Tenant, asking: AskingServer
) -> None:
    """A pending question outlives the server's own process, and the time for which it remembers."""
    server = await sync_to_async(in_era)(tenant, asking, "2026-07-28")
    tool = await sync_to_async(tool_of)(server, "book_table")
    caller = ListeningCaller()
    request = a_request(tenant, tool, {"when": "noon"}, can_ask=True, can_wait_elsewhere=True)
    with pytest.raises(InputMissing):
        await call_tool(request, caller=caller)
    await sync_to_async(asking.restart)()
    await answer(await pending(tenant), tenant, InputAction.ACCEPT, ANSWER)
    again = dataclasses.replace(request, checkpoint=caller.checkpoints[0])
    outcome = await call_tool(again, caller=caller)
    assert "Ada, 3 at the garden, noon" in outcome.as_model_text()
    assert asking.done == [("book_table", {"when": "noon", **ANSWER})]
    assert len(await sync_to_async(rows)(tenant)) == 1


async def test_the_same_question_put_twice_needs_two_answers(
    tenant: Tenant, asking: AskingServer
) -> None:
    """SEC-69: a yes is for one question."""
    server = await sync_to_async(in_era)(tenant, asking, "legacy")
    task, first, caller = await asked_while_calling(tenant, server, "ask_twice")
    await answer(first, tenant, InputAction.ACCEPT, ANSWER)
    async with asyncio.timeout(PATIENCE):
        assert [await caller.waits.get(), await caller.waits.get()] == [False, True]
    second = await pending(tenant)
    assert second.pk != first.pk
    await answer(second, tenant, InputAction.DECLINE)
    assert "accept, decline" in (await asyncio.wait_for(task, PATIENCE)).as_model_text()


async def test_what_rests_on_a_persons_answers_is_kept_for_nobody(
    tenant: Tenant, asking: AskingServer
) -> None:
    """SEC-10: a kept result never carries one person's answers to another."""
    server = await sync_to_async(in_era)(tenant, asking, "legacy")
    tools = McpTool.objects.for_workspace(tenant.workspace).filter(server=server)
    await tools.aupdate(cache_seconds=60)
    task, row, _ = await asked_while_calling(tenant, server, "book_table", {"when": "noon"})
    await answer(row, tenant, InputAction.ACCEPT, ANSWER)
    assert "Ada" in (await asyncio.wait_for(task, PATIENCE)).as_model_text()
    again, row, _ = await asked_while_calling(tenant, server, "book_table", {"when": "noon"})
    await answer(row, tenant, InputAction.DECLINE)
    assert "declined" in (await asyncio.wait_for(again, PATIENCE)).as_model_text()


async def test_an_abandoned_call_ends_once_in_the_log(tenant: Tenant, asking: AskingServer) -> None:
    """SEC-102: *requested* is followed by exactly one *finished*, whoever writes it."""
    server = await sync_to_async(in_era)(tenant, asking, "2026-07-28")
    tool = await sync_to_async(tool_of)(server, "book_table")
    request = a_request(tenant, tool, {"when": "noon"}, can_ask=True, can_wait_elsewhere=True)
    await sync_to_async(abandon_call)(request)
    assert await sync_to_async(actions)(tenant) == []
    caller = ListeningCaller()
    with pytest.raises(InputMissing):
        await call_tool(request, caller=caller)
    again = dataclasses.replace(request, checkpoint=caller.checkpoints[0])
    for _ in range(2):
        await sync_to_async(abandon_call)(again)
    assert (await sync_to_async(actions)(tenant)).count("tool_call.finished") == 1


async def test_a_call_that_may_not_go_on_ends_in_the_log(
    tenant: Tenant, asking: AskingServer
) -> None:
    """SEC-56: what an administrator decided while the call waited counts when it goes on."""
    server = await sync_to_async(in_era)(tenant, asking, "2026-07-28")
    tool = await sync_to_async(tool_of)(server, "book_table")
    request = a_request(tenant, tool, {"when": "noon"}, can_ask=True, can_wait_elsewhere=True)
    caller = ListeningCaller()
    with pytest.raises(InputMissing):
        await call_tool(request, caller=caller)
    tools = McpTool.objects.for_workspace(tenant.workspace).filter(pk=tool.pk)
    await tools.aupdate(approval_override="confirm")
    await answer(await pending(tenant), tenant, InputAction.ACCEPT, ANSWER)
    with pytest.raises(CallRefused):
        await call_tool(
            dataclasses.replace(request, checkpoint=caller.checkpoints[0]), caller=caller
        )
    assert asking.done == []
    assert (await sync_to_async(actions)(tenant))[-1] == "tool_call.finished"


async def test_a_stopped_call_takes_its_question_back(tenant: Tenant, server: McpServer) -> None:
    """Stop while a person is asked: the question is withdrawn, the log whole."""
    task, row, _ = await asked_while_calling(tenant, server, "book_table", {"when": "noon"})
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await row.arefresh_from_db()
    assert row.status == InputStatus.CANCELLED
    assert (await sync_to_async(actions)(tenant)).count("tool_call.finished") == 1


@pytest.mark.parametrize(("era", "name"), [("legacy", "sign_old"), ("2026-07-28", "sign_new")])
async def test_a_link_is_shown_and_never_fetched(
    tenant: Tenant, asking: AskingServer, era: str, name: str
) -> None:
    """SEC-69: URL mode names the host, and the person goes there, not we."""
    server = await sync_to_async(in_era)(tenant, asking, era)
    task, row, _ = await asked_while_calling(tenant, server, name)
    shown = await sync_to_async(elicitation.input_json)(row)
    assert (shown["url"], shown["url_host"]) == (LINK, "sign.example")
    await answer(row, tenant, InputAction.ACCEPT)
    assert "accept" in (await asyncio.wait_for(task, PATIENCE)).as_model_text()


async def test_a_tool_that_needs_a_visit_first_is_called_again_after_it(
    tenant: Tenant, asking: AskingServer
) -> None:
    """MCP specification 2025-11-25: URLElicitationRequiredError; the refused call did nothing."""
    server = await sync_to_async(in_era)(tenant, asking, "legacy")
    task, row, _ = await asked_while_calling(tenant, server, "sign_first")
    assert row.params == {"is_required": True}
    asking.visited.set()
    await answer(row, tenant, InputAction.ACCEPT)
    assert "signed" in (await asyncio.wait_for(task, PATIENCE)).as_model_text()
    assert asking.done == [("sign_first", {})]


async def test_a_resource_that_needs_a_visit_first_is_read_again_after_it(tenant: Tenant) -> None:
    """MCP specification 2025-11-25: URLElicitationRequiredError; reads take the same road as calls."""
    raw = RawServer()
    asked: list[str] = []

    async def visit_first(body: Any, scope: Any, send: Any) -> None:
        asked.append("read")
        if len(asked) > 1:
            contents = [{"uri": "menu://members", "text": "# Truffles"}]
            await reply_result(send, body, {"contents": contents})
            return
        link = {"mode": "url", "message": "Join first.", "url": LINK, "elicitationId": "join"}
        error = {"code": -32042, "message": "Join first.", "data": {"elicitations": [link]}}
        answer = {"jsonrpc": "2.0", "id": (body or {}).get("id"), "error": error}
        await reply(send, 200, json.dumps(answer).encode())

    raw.handlers["resources/read"] = visit_first
    try:
        server = await sync_to_async(lambda: looked_at(tenant, http_server(tenant, raw.url)))()
        request = ResourceRequest(
            call_id=uuid7(),
            workspace_id=tenant.workspace.pk,
            server_id=server.pk,
            uri="menu://members",
            actor=actor_of(tenant, "member"),
        )
        caller = ListeningCaller()
        task = asyncio.create_task(read_resource(request, caller=caller))
        assert await asyncio.wait_for(caller.waits.get(), PATIENCE)
        await answer(await pending(tenant), tenant, InputAction.ACCEPT)
        [part] = (await asyncio.wait_for(task, PATIENCE)).content
    finally:
        raw.stop()
    assert "Truffles" in str(part)
    reads = [action for action in await sync_to_async(actions)(tenant) if "read" in action]
    steps = ["resource_read.requested"] * 2 + ["resource_read.finished"]
    assert reads == steps


async def test_a_server_is_told_its_roots_and_no_others(
    tenant: Tenant, asking: AskingServer
) -> None:
    """MCP specification, "Roots": what the administrator set."""
    roots = [{"uri": "file:///srv/shared", "name": "Shared"}]
    for era in ERAS:
        server = await sync_to_async(in_era)(tenant, asking, era, roots=roots)
        assert "file:///srv/shared" in (await call(tenant, server, "where")).as_model_text()


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> list[SamplingTask]:
    """A model that answers every request alike, and what it was asked."""
    asked: list[SamplingTask] = []

    async def write(task: SamplingTask) -> SamplingResult:
        asked.append(task)
        return SamplingResult(text="roses are red", model="poet-1", tokens=40)

    monkeypatch.setattr(sampling, "_ask_model", write)
    return asked


async def test_sampling_is_off_unless_switched_on(
    tenant: Tenant, server: McpServer, model: list[SamplingTask]
) -> None:
    """SEC-68: sampling is off by default."""
    outcome = await call(tenant, server, "rhyme", {"topic": "soup"})
    assert outcome.is_error
    assert model == []


@pytest.mark.parametrize("era", ERAS)
async def test_sampling_asks_counts_and_sends_nothing_else(
    tenant: Tenant, asking: AskingServer, model: list[SamplingTask], era: str
) -> None:
    """SEC-68: sampling asks, has its budget, and never contains other servers' data."""
    server = await sync_to_async(in_era)(
        tenant, asking, era, sampling="ask", sampling_daily_tokens=50
    )
    task, row, _ = await asked_while_calling(tenant, server, "rhyme", {"topic": "soup"})
    assert row.kind == "sampling"
    await answer(row, tenant, InputAction.ACCEPT)
    assert "poet-1: roses are red" in (await asyncio.wait_for(task, PATIENCE)).as_model_text()
    [asked] = model
    assert [message.text for message in asked.messages] == ["Write about soup"]
    assert (asked.system_prompt, asked.max_tokens) == ("Rhyme.", 50)
    await row.arefresh_from_db()
    assert row.tokens_used == 40
    assert "sampling.finished" in await sync_to_async(actions)(tenant)


async def test_sampling_without_asking_ends_with_the_budget(
    tenant: Tenant, asking: AskingServer, model: list[SamplingTask]
) -> None:
    """SEC-68: budget 0 → refused."""
    server = await sync_to_async(in_era)(
        tenant, asking, "2026-07-28", sampling="auto", sampling_daily_tokens=40
    )
    first = await call(tenant, server, "rhyme", {"topic": "soup"})
    assert "roses" in first.as_model_text()
    second = await call(tenant, server, "rhyme", {"topic": "bread"})
    assert second.is_error
    assert len(model) == 1


async def test_a_resource_is_read_through_the_gate(tenant: Tenant, server: McpServer) -> None:
    """MCP specification, "Resources": read, with its entries."""
    request = ResourceRequest(
        call_id=uuid7(),
        workspace_id=tenant.workspace.pk,
        server_id=server.pk,
        uri="menu://today",
        actor=actor_of(tenant, "member"),
    )
    outcome = await read_resource(request)
    [part] = outcome.content
    assert isinstance(part, EmbeddedResourcePart)
    assert "# Soup" in (part.text or "")
    missing = await read_resource(dataclasses.replace(request, uri="menu://never", call_id=uuid7()))
    assert missing.is_error
    assert (
        await sync_to_async(actions)(tenant)
        == [
            "resource_read.requested",
            "resource_read.finished",
        ]
        * 2
    )


async def test_a_prompt_is_fetched_through_the_gate(tenant: Tenant, server: McpServer) -> None:
    """MCP specification, "Prompts": get, with its entries; a missing argument is told before anything is sent."""
    from django.utils import timezone

    from mcp_servers.client.errors import InvalidArguments

    prompt, _ = await McpPrompt.objects.for_workspace(tenant.workspace).aget_or_create(
        workspace=tenant.workspace,
        server=server,
        name="recommend",
        defaults={
            "arguments": [{"name": "taste", "required": True}, {"name": "budget"}],
            "last_seen_at": timezone.now(),
        },
    )
    request = PromptRequest(
        call_id=uuid7(),
        workspace_id=tenant.workspace.pk,
        prompt_id=prompt.pk,
        arguments={"taste": "spicy"},
        actor=actor_of(tenant, "member"),
    )
    outcome = await get_prompt(request)
    [message] = outcome.messages
    assert message.content == TextPart(text="Recommend something spicy for 20 euros.")
    with pytest.raises(InvalidArguments):
        await get_prompt(dataclasses.replace(request, arguments={}, call_id=uuid7()))
    assert await sync_to_async(actions)(tenant) == [
        "prompt_get.requested",
        "prompt_get.finished",
        "prompt_get.refused",
    ]


async def test_a_server_leaves_no_more_refused_questions_than_it_may_put(
    tenant: Tenant, asking: AskingServer
) -> None:
    """REL-2154: each is in the log, the chat shows some, and they do not use up what may be asked in an hour."""
    server = await sync_to_async(in_era)(tenant, asking, "legacy")
    origin = elicitation.QuestionOrigin(
        call_id=uuid7(),
        server=server,
        tool_name="sign_old",
        actor=actor_of(tenant, "member"),
        conversation_id=uuid7(),
    )
    link = AskedInput(key="1", kind=InputKind.URL, message="x" * 20_000, url="http://sign.example/")
    for _ in range(MOST_IN_CALL + 5):
        await sync_to_async(elicitation.turn_away)(link, origin, "its link is not an https one.")
    kept = await sync_to_async(rows)(tenant)
    assert len(kept) == MOST_IN_CALL
    assert {(row.status, row.url, len(row.message)) for row in kept} == {("refused", "", 501)}
    assert (await sync_to_async(actions)(tenant)).count("input.refused") == MOST_IN_CALL + 5
    form = AskedInput(key="2", kind=InputKind.FORM, message="Who?", schema={"type": "object"})
    row = await sync_to_async(elicitation.open_input)(form, origin)
    assert row.status == InputStatus.PENDING
