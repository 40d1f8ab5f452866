"""Questions of servers reach the person by their client, and an answer serves that one call, once."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx2
import mcp
import mcp_types
import pytest
from django.test import Client
from mcp.client.streamable_http import streamable_http_client
from pytest_django.live_server_helper import LiveServer

from audit.models import AuditEntry
from mcp_servers.client.connections.runtime import run_sync
from mcp_servers.endpoint import asking, unanswered_questions
from mcp_servers.models import InputRequest, McpServer
from tests.factories import Tenant
from tests.mcp_servers.endpoint.client import BEFORE, TODAYS, McpClient, token_for
from tests.patience import PATIENCE
from workspaces.database import database_now

pytestmark = pytest.mark.django_db(transaction=True)

TOOL = "notes__plan_garden_day"
DAY: dict[str, Any] = {"when": "2026-05-01", "work": "weeding", "helpers": 2, "has_lunch": True}
PREFIX = "io.modelcontextprotocol"


@pytest.fixture(autouse=True)
def asks(notes: McpServer) -> None:
    """The server may ask people."""
    notes.answers_elicitation = True
    notes.save()


class Asked(McpClient):
    """A client that can put forms to its person."""

    def send(self, name: str = TOOL, **params: Any) -> Any:
        values = {
            "name": name,
            "arguments": {},
            **params,
            "_meta": {
                f"{PREFIX}/protocolVersion": TODAYS,
                f"{PREFIX}/clientInfo": {"name": "test", "version": "1"},
                f"{PREFIX}/clientCapabilities": {"elicitation": {"form": {}}},
            },
        }
        return (
            Client()
            .post(
                self.url,
                json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": values}),
                content_type="application/json",
                headers={
                    "Authorization": f"Bearer {self.token}",
                    "Accept": "application/json, text/event-stream",
                    "Mcp-Protocol-Version": TODAYS,
                    "Mcp-Method": "tools/call",
                    "Mcp-Name": name,
                },
            )
            .json()
        )

    def answering(self, asked: Any, **changed: Any) -> dict[str, Any]:
        (key,) = asked["inputRequests"]
        answer = {"action": "accept", "content": DAY}
        return {
            "inputResponses": {key: answer},
            "requestState": asked["requestState"],
            **changed,
        }


def test_a_question_goes_to_the_client_and_its_answer_to_the_server(tenant: Tenant) -> None:
    """SEC-112: the call ends with the question, and goes on with the answer."""
    client = Asked(tenant, token_for(tenant), TODAYS)
    asked = client.send()["result"]
    assert asked["resultType"] == "input_required"
    (question,) = asked["inputRequests"].values()
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"].startswith("notes: ")
    assert "when" in question["params"]["requestedSchema"]["properties"]
    assert "checkpoint" not in asked["requestState"]
    answer = client.send(**client.answering(asked))["result"]
    assert not answer.get("isError"), answer
    assert "weeding" in answer["content"][0]["text"]
    log = AuditEntry.objects.for_workspace(tenant.workspace)
    steps = set(log.filter(call_id__isnull=False).values_list("action", flat=True))
    assert {"tool_call.requested", "input.requested", "input.answered"} <= steps
    assert "tool_call.finished" in steps
    assert len(set(log.filter(action__startswith="tool_call.").values_list("call_id"))) == 1


def test_an_answer_serves_once(tenant: Tenant) -> None:
    """SEC-112: whatever it says the second time."""
    client = Asked(tenant, token_for(tenant), TODAYS)
    asked = client.send()["result"]
    assert "result" in client.send(**client.answering(asked))
    again = client.send(**client.answering(asked))
    assert again["error"]["message"] == asking.UNFIT


def test_a_state_is_of_one_person_client_tool_and_call(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-112: others, other arguments, an altered one and one that comes late are refused; nothing is answered."""
    client = Asked(tenant, token_for(tenant), TODAYS)
    asked = client.send()["result"]
    state = asked["requestState"]
    other_person = Asked(tenant, token_for(tenant, role="admin"), TODAYS)
    other_client = Asked(tenant, token_for(tenant), TODAYS)
    middle = len(state) // 2
    altered = state[:middle] + ("A" if state[middle] != "A" else "B") + state[middle + 1 :]
    listed = [
        other_person.send(**client.answering(asked)),
        other_client.send(**client.answering(asked)),
        client.send("notes__list_notes", **client.answering(asked)),
        client.send(**client.answering(asked), arguments={"x": 1}),
        client.send(**client.answering(asked, requestState=altered)),
        client.send(**client.answering(asked, requestState="nothing")),
    ]
    later = database_now() + asking.LIFE + timedelta(seconds=1)
    with monkeypatch.context() as patched:
        patched.setattr(asking, "database_now", lambda: later)
        listed.append(client.send(**client.answering(asked)))
    assert [one["error"]["message"] for one in listed] == [asking.UNFIT] * len(listed)
    assert InputRequest.objects.for_workspace(tenant.workspace).get().status == "pending"
    assert "weeding" in str(client.send(**client.answering(asked)))


def test_an_answer_has_to_fit_its_form(tenant: Tenant) -> None:
    """SEC-112: it can be given again."""
    client = Asked(tenant, token_for(tenant), TODAYS)
    asked = client.send()["result"]
    (key,) = asked["inputRequests"]
    wrong = {key: {"action": "accept", "content": {"when": "2026-05-01", "helpers": "many"}}}
    assert client.send(**client.answering(asked, inputResponses=wrong))["result"]["isError"]
    assert "weeding" in str(client.send(**client.answering(asked)))


def test_without_an_answer_the_server_hears_that_there_is_none(tenant: Tenant) -> None:
    """SEC-112: also from a client that cannot ask."""
    client = Asked(tenant, token_for(tenant), TODAYS)
    asked = client.send()["result"]
    assert "was not answered" in str(client.send(**client.answering(asked, inputResponses={})))
    for revision in (BEFORE, TODAYS):
        cannot = McpClient(tenant, client.token, revision)
        assert "was not answered" in str(cannot.call(TOOL))


def test_a_call_that_nobody_takes_up_has_an_end(tenant: Tenant) -> None:
    """SEC-112: in the log, once its question has run out."""
    Asked(tenant, token_for(tenant), TODAYS).send()
    rows = InputRequest.objects.for_workspace(tenant.workspace)
    assert unanswered_questions.end_unanswered() == 0
    rows.update(status="expired", expires_at=database_now() - timedelta(hours=2))
    assert unanswered_questions.end_unanswered() == 1
    assert unanswered_questions.end_unanswered() == 0
    log = AuditEntry.objects.for_workspace(tenant.workspace)
    assert log.get(action="tool_call.finished").outcome == "cancelled"


def test_the_official_client_puts_the_question(tenant: Tenant, live_server: LiveServer) -> None:
    """SEC-112: over HTTP, with the answer of its person."""
    url = f"{live_server.url}/w/{tenant.workspace.slug}/mcp/"
    headers = {"Authorization": f"Bearer {token_for(tenant)}"}

    async def answer(_context: Any, params: Any) -> mcp_types.ElicitResult:
        return mcp_types.ElicitResult(action="accept", content=dict(DAY))

    callback: Any = answer

    async def use() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
            mcp.Client(
                streamable_http_client(url, http_client=http),
                mode=TODAYS,
                elicitation_callback=callback,
            ) as client,
        ):
            return await client.call_tool(TOOL, {})

    assert "weeding" in str(run_sync(use(), PATIENCE))
