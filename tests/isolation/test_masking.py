"""What one workspace calls a secret, walked through every field that keeps one and every place that masks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import mcp_types
import pytest
from django.db import models

from audit.actions import Action, Outcome
from audit.bodies import read_body
from audit.services import EntryDraft, Ref, record
from chat.services.exports import ExportFormat, export_conversation
from mcp_servers.client.connections.hooks import TraceRecord
from mcp_servers.client.results import read_contents, read_prompt, read_result
from mcp_servers.models import TraceMessage
from mcp_servers.registry import services
from mcp_servers.registry.specs import connection_spec
from mcp_servers.registry.trace import sink
from tests.factories import CANARY
from tests.isolation.state import tenant_models
from tests.isolation.world import Side, World
from workspaces import secret_memory
from workspaces.redaction import MASK, remember_secret
from workspaces.secrets import EncryptedJSONField, EncryptedTextField, Secret, encrypted_fields

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_known_secrets")]

WORDS = f"{CANARY} question about the yearly figures"
"""Ordinary words of the other side, which somebody of this side calls a secret."""


def secret_fields() -> Iterator[tuple[type[models.Model], EncryptedTextField]]:
    """Every field of a workspace's rows that keeps a secret."""
    for model in tenant_models():
        for field in encrypted_fields(model):
            yield model, field


FIELDS = {f"{model._meta.label}.{field.name}": (model, field) for model, field in secret_fields()}


def in_result(side: Side) -> str:
    """What a tool's result, a resource and a prompt become for people and models."""
    block = mcp_types.TextContent(type="text", text=WORDS)
    workspace_id = side.tenant.workspace.pk
    outcome = read_result(
        mcp_types.CallToolResult(content=[block], structured_content={WORDS: WORDS}),
        workspace_id=workspace_id,
        limit_bytes=10_000,
        output_schema=None,
        duration_ms=0,
    )
    contents = mcp_types.TextResourceContents(uri="note://x", text=WORDS)
    parts, _ = read_contents(
        mcp_types.ReadResourceResult(contents=[contents]),
        workspace_id=workspace_id,
        limit_bytes=10_000,
    )
    messages, _ = read_prompt(
        mcp_types.GetPromptResult(messages=[mcp_types.PromptMessage(role="user", content=block)]),
        workspace_id=workspace_id,
        limit_bytes=10_000,
    )
    assert isinstance(outcome.structured, dict)
    return " ".join(
        [
            *(json.dumps(part.as_json()) for part in (*outcome.content, *parts)),
            *(json.dumps(message.as_json()) for message in messages),
            *(str(value) for value in outcome.structured.values()),
        ]
    )


def in_log(side: Side) -> str:
    """An entry, and its body, which is sealed with it."""
    raw = json.dumps({"text": WORDS}).encode()
    entry = record(
        EntryDraft(
            action=Action.TOOL_CALL_FINISHED,
            outcome=Outcome.OK,
            actor=side.tenant.actor("member"),
            workspace_id=side.tenant.workspace.pk,
            server=Ref(id=None, name=WORDS),
            result=raw,
            details={"reason": WORDS},
        )
    )
    body = read_body(entry)
    assert body is not None
    return f"{entry.server_name} {entry.result_preview} {entry.details} {body.result}"


def in_trace(side: Side) -> str:
    """A message of a server as it is kept."""
    server = side["server"]
    sink.store(
        [
            TraceRecord(
                workspace_id=server.workspace_id,
                server_id=server.pk,
                principal="workspace",
                connection="c",
                at=datetime.now(UTC),
                direction="received",
                kind="notification",
                method="notifications/message",
                rpc_id="",
                body={"params": {"data": WORDS}},
                text=WORDS,
                size=1,
            )
        ]
    )
    rows = TraceMessage.objects.for_workspace(server.workspace_id).filter(server=server)
    row = rows.order_by("pk").last()
    assert row is not None
    assert row.body is not None
    return f"{row.text} {row.outline} {row.body.reveal('looking', is_credential=False)}"


def in_export(side: Side) -> str:
    """A conversation as a file."""
    message = side["message"]
    message.text = WORDS
    message.save(update_fields=["text"])
    return export_conversation(side["conversation"], ExportFormat.JSON).body


SINKS: dict[str, Callable[[Side], str]] = {
    "results": in_result,
    "log": in_log,
    "trace": in_trace,
    "exports": in_export,
}


def declare(side: Side, model: type[models.Model], field: EncryptedTextField) -> None:
    """Keep the words as a secret in a row of this side, and use it."""
    row: Any = model._base_manager.filter(workspace_id=side.tenant.workspace.pk).first()
    is_json = isinstance(field, EncryptedJSONField)
    setattr(row, field.attname, {"x": WORDS} if is_json else WORDS)
    row.save()
    row = model._base_manager.get(pk=row.pk)
    secret: Secret = getattr(row, field.attname)
    if is_json:
        secret.reveal_json("using it")
    else:
        secret.reveal("using it")


@pytest.mark.parametrize("name", FIELDS)
def test_a_secret_of_one_side_is_masked_there_and_nowhere_else(world: World, name: str) -> None:
    """SEC-220: every field that keeps a secret, every place that masks."""
    declare(world.a, *FIELDS[name])
    for place, look in SINKS.items():
        assert WORDS not in look(world.a), place
        assert MASK in look(world.a), place
        shown = look(world.b)
        assert WORDS in shown, place
        assert MASK not in shown, place


def test_an_address_of_one_side_masks_nothing_of_the_other(world: World) -> None:
    """SEC-220, SEC-221: words in a URL's query are no secrets; what is named as one is masked at home only."""
    words = WORDS.replace(" ", "%20")
    services.add_server(
        workspace_id=world.a.tenant.workspace.pk,
        draft=services.ServerDraft(
            name="new", url=f"https://new.example.org/mcp?q={words}&{words}&token={words}1x"
        ),
        actor=world.a.tenant.actor("owner"),
    )
    for place, look in SINKS.items():
        assert WORDS in look(world.a), place
        assert WORDS in look(world.b), place


def test_a_flood_of_one_side_uncovers_nothing_of_the_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-220, SEC-222: nor anything that its own open connections carry."""
    monkeypatch.setattr(secret_memory, "_MOST_REMEMBERED", 50)
    declare(world.b, *FIELDS["chat.ModelProvider.api_key"])
    server = world.a["server"]
    server.headers = {"Authorization": WORDS}
    server.save()
    spec = connection_spec(server)
    for number in range(500):
        remember_secret(f"flood-{number:04}", workspace_id=world.a.tenant.workspace.pk)
    assert spec.secrets is not None
    for side in (world.a, world.b):
        for place, look in SINKS.items():
            assert WORDS not in look(side), place
