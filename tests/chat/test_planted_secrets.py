"""Secrets planted in every place that takes one, and a search for them in everything that is written."""

from __future__ import annotations

import base64
import io
import json
import logging
import re
import zipfile
from collections.abc import Iterator
from secrets import token_hex
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from audit.exports import FORMATS
from audit.models import AlertRule, AuditStream
from audit.sealing.sealer import seal_pending
from chat.models import ModelProvider, WebhookEndpoint
from config.telemetry.logs import configure_logging
from mcp_servers.models.server_credentials import AuthType
from mcp_servers.registry import services
from tests.chat.conftest import make_chat
from tests.chat.database_dump import as_text, dump
from tests.factories import PASSWORD, Tenant
from tests.fakes.mcp_server import CountingServer
from tests.fakes.scripted_model import DONE, Answer, ScriptedModel, chunk, usage
from tests.mcp_servers.factories import http_server, looked_at, tool_of, zoo_server
from tests.workspaces.api.tokens import bearer, token_of

# What people and models write into a conversation is kept there and in the index of its words, for them; it is nowhere else.
CONVERSATION = {
    *("chat_message", "chat_toolcall", "snapshot"),
    *("chat_message_words", "chat_message_words_content"),
    *("chat_beside_words", "chat_beside_words_content"),
}
# A server's address is a setting that administrators read and change, with its query.
ADDRESSES = {"mcp_servers_mcpserver", "settings"}


class Planted:
    """The canaries by their place; each is another one, with characters that every coding changes."""

    def __init__(self) -> None:
        self.by_place: dict[str, str] = {}
        self.in_conversation: set[str] = set()

    def __call__(self, place: str, *, in_conversation: bool = False) -> str:
        assert place not in self.by_place
        canary = f"cn/{token_hex(9)}+{token_hex(9)}"
        self.by_place[place] = canary
        if in_conversation:
            self.in_conversation.add(place)
        return canary

    def found(self, text: str, where: str = "") -> list[str]:
        """Whose canary the text holds, in whatever coding."""
        lower = text.lower()
        return [
            place
            for place, canary in self.by_place.items()
            if not (where in CONVERSATION and place in self.in_conversation)
            and not (where in ADDRESSES and place == "server URL query")
            and any(form.lower() in lower for form in _forms(canary))
        ]


def _forms(canary: str) -> set[str]:
    """Forms to look for; of base64 the middle, wherever in a longer text it began."""
    raw = canary.encode()
    middles = {base64.b64encode(b"x" * shift + raw).decode()[4:-4] for shift in range(3)}
    return {canary, quote(canary, safe=""), raw.hex(), json.dumps(canary)[1:-1], *middles}


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """All that is logged meanwhile."""
    configure_logging(level="DEBUG", as_json=True)
    handler = logging.getLogger().handlers[-1]
    assert isinstance(handler, logging.StreamHandler)
    out = io.StringIO()
    handler.setStream(out)
    yield out
    configure_logging(level="WARNING", as_json=False)


@pytest.mark.both_engines
def test_no_planted_secret_is_written_anywhere(
    tenant: Tenant, model: ScriptedModel, counting: CountingServer, written: io.StringIO
) -> None:
    """SEC-93, SEC-94, SEC-95, SEC-96: success and failure, then every table, log line, export, page: 0 found."""
    plant = Planted()
    seen: list[tuple[str, str]] = []
    workspace, slug = tenant.workspace, tenant.workspace.slug

    # Where secrets are kept.
    header, bearer_token = plant("server header"), plant("server bearer token")
    row = http_server(
        tenant,
        f"{counting.url}?key={quote(plant('server URL query'), safe='')}",
        name="counting",
        trusts_annotations=True,
        headers={"X-Tenant-Key": header, "X-Api-Key": plant("second server header")},
        auth_type=AuthType.BEARER,
        auth={"token": bearer_token},
    )
    basic = plant("server basic password")
    services.add_server(
        workspace_id=workspace.pk,
        draft=services.ServerDraft(
            name="basic",
            url=counting.url,
            auth_type=AuthType.BASIC,
            auth={"username": "me", "password": basic},
        ),
        actor=tenant.actor(),
    )
    zoo_server(tenant, "echo", env={"ZOO_TOKEN": plant("program environment")})
    WebhookEndpoint.objects.create(
        workspace=workspace, url="https://hook.example/x", secret=plant("webhook secret")
    )
    AuditStream.objects.create(
        workspace=workspace,
        name="s",
        kind=AuditStream.Kind.WEBHOOK,
        target="https://sink.example/x",
        secret=plant("stream secret"),
        headers={"Authorization": plant("stream header")},  # type: ignore[misc]
        client_key=plant("stream client key"),
        is_paused=True,
    )
    AlertRule.objects.create(
        workspace=workspace,
        name="a",
        threshold=1,
        webhook_secret=plant("alert webhook secret"),
        is_active=False,
    )

    # A server that gives its caller's credential back, in every form.
    def leak() -> str:
        raw = header.encode()
        return json.dumps(
            {
                "plain": header,
                "base64": base64.b64encode(raw).decode(),
                "urlsafe": base64.urlsafe_b64encode(raw).decode(),
                "url": quote(header, safe=""),
                "hex": raw.hex(),
                "HEX": raw.hex().upper(),
                "inside": base64.b64encode(b"me:" + raw).decode(),
                "Basic": f"Basic {base64.b64encode(b'user:' + basic.encode()).decode()}",
                "bearer": f"Bearer {bearer_token}",
            }
        )

    def confess() -> str:
        raise ToolError(f"no entry with {header}")

    reads = ToolAnnotations(read_only_hint=True)
    for tool in (leak, confess):
        counting.server.add_tool(tool, name=tool.__name__, description="x", annotations=reads)
    chat = make_chat(tenant, model, counting, looked_at(tenant, row))
    key = plant("provider key")
    provider = ModelProvider.objects.for_workspace(workspace).get()
    provider.api_key = key
    provider.save()
    try:
        names = ("password", "api_key", "client_secret", "access_token", "Authorization")
        arguments: dict[str, Any] = {
            name: plant(f"argument {name}", in_conversation=True) for name in names
        }
        nested = {"deep": [{"privateKey": plant("argument deep inside", in_conversation=True)}]}
        model.call(("counting__leak", {}), ("counting__confess", {}))
        model.call(
            ("counting__echo", {"text": "x", **arguments}),
            ("counting__nope", {**arguments, **nested}),
            ("counting__echo", {"password": plant("unfit argument", in_conversation=True)}),
        )
        # What a model says comes in pieces, and a piece holds no whole secret.
        half = len(key) // 2
        pieces = [chunk({"content": part}) for part in ("Your key: ", key[:half], key[half:], ".")]
        model.give(Answer([*pieces, chunk({}, "stop"), usage(), DONE]))
        seen.append(("turn", chat.ask().status))
        model.fail(401, json.dumps({"error": {"message": f"Incorrect API key: {key}"}}).encode())
        seen.append(("failed turn", chat.ask("again").error_message))
        seen.append(("snapshot", json.dumps(chat.snapshot(), default=str)))
    finally:
        chat.watching.close()

    # People and programs at the door.
    client = Client(raise_request_exception=False)
    login = reverse("account_login")
    for login_name, password in (
        (tenant.member.email, plant("wrong password")),
        ("nobody@example.org", plant("password of nobody")),
    ):
        answer = client.post(login, {"login": login_name, "password": password})
        seen.append(("failed sign-in", answer.content.decode()))
    client.post(login, {"login": tenant.member.email, "password": PASSWORD})
    token = token_of(tenant, "servers:read")
    plant.by_place["personal token"] = token
    for path in ("/api/servers/", "/api/nothing/", f"/api/servers/{slug}/"):
        answer = Client(raise_request_exception=False).get(path, headers=bearer(token))
        seen.append((path, answer.content.decode()))
    answer = Client().get("/api/servers/", headers=bearer(plant("bad token")))
    seen.append(("a bad token", answer.content.decode()))
    admin = tenant.client("admin")
    admin.raise_request_exception = False
    for body in (
        {"name": "x", "url": "nonsense", "headers": {"X-Key": plant("refused header")}},
        {"name": "x", "url": "https://x.example", "env": {"K": plant("refused environment")}},
    ):
        answer = admin.post(
            "/api/servers/",
            data=json.dumps(body),
            content_type="application/json",
            headers={"X-Workspace": slug},
        )
        seen.append(("refused server", answer.content.decode()))
    echo = tool_of(row, "echo")
    given = {"text": "x", "password": plant("argument of a try")}
    url = reverse("mcp_servers:tool_try", args=[slug, row.pk, echo.pk])
    seen.append(("try", admin.post(url, {"arguments": json.dumps(given)}).content.decode()))
    for page in ("server", "settings", "trace"):
        answer = admin.get(reverse(f"mcp_servers:{page}", args=[slug, row.pk]))
        seen += [(page, answer.content.decode())]

    # And everything that is left of it.
    assert len(plant.by_place) >= 25
    seal_pending()
    auditor = tenant.client("auditor")
    for extension in FORMATS:
        answer = auditor.get(reverse("audit:export", args=[slug, extension]))
        assert answer.status_code == 200
        raw = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
        if extension == "xlsx":
            with zipfile.ZipFile(io.BytesIO(raw)) as book:
                raw = b"".join(book.read(name) for name in book.namelist())
        seen.append((f"export {extension}", raw.decode("utf-8", "replace")))
    proof = auditor.get(reverse("audit:proof-export", args=[slug]))
    seen.append(("proof", b"".join(proof.streaming_content).decode()))  # type: ignore[attr-defined]
    seen.append(
        ("admin history", " ".join(LogEntry.objects.values_list("change_message", flat=True)))
    )
    seen.append(("logs", written.getvalue()))
    seen += dump()
    if settings.TRELLIS.redis_url:
        seen += _redis(settings.TRELLIS.redis_url)
    assert re.search(r"tool_call\.finished", " ".join(text for _, text in seen))
    hits = sorted({(where, place) for where, text in seen for place in plant.found(text, where)})
    assert hits == [], "\n".join(f"{where}: {place}" for where, place in hits)


def _redis(url: str) -> Iterator[tuple[str, str]]:
    import redis

    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter():
            kind = client.type(key)
            value: Any = client.dump(key) if kind != b"string" else client.get(key)
            yield "redis", f"{key!r} {as_text(value)}"
