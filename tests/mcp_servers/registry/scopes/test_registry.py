"""The platform's own servers, from its file to the workspaces."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core import serializers
from pytest_django import Settings

from audit.models import AuditEntry
from mcp_servers.client.transports.targets import HttpSpec, StdioSpec
from mcp_servers.models import GlobalServer, McpServer, ServerScope
from mcp_servers.registry import services
from mcp_servers.registry.files.file_format import (
    MalformedServerList,
    MissingVariable,
    read_server_list,
)
from mcp_servers.registry.files.platform_file import registry
from mcp_servers.registry.scopes import platform
from mcp_servers.registry.services import ServerDraft
from mcp_servers.registry.specs import connection_spec
from tests.factories import Tenant, make_tenant
from workspaces.errors import Conflict, InvalidInput, PermissionDenied

pytestmark = pytest.mark.django_db

SECRET = "v3ry-s3cret-of-the-file"

Write = Callable[[object], Path]


@pytest.fixture
def write(tmp_path: Path, settings: Settings) -> Write:
    """Write the platform's file; each time with a date of its own."""
    path = tmp_path / "mcp-servers.json"
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"mcp_servers_file": path})
    dates = iter(range(1_000_000_000, 2_000_000_000, 10))

    def write_down(content: object) -> Path:
        text = content if isinstance(content, str) else json.dumps({"mcpServers": content})
        path.write_text(text)
        moment = next(dates)
        os.utime(path, (moment, moment))
        return path

    registry.forget()
    return write_down


def weather(**fields: Any) -> dict[str, Any]:
    """An entry of the file with a secret in every place."""
    return {
        "type": "http",
        "url": f"https://weather.example.org/{SECRET}/mcp?key={SECRET}",
        "headers": {"Authorization": f"Bearer {SECRET}"},
        **fields,
    }


def rows_of(tenant: Tenant) -> list[McpServer]:
    """The workspace's rows of platform servers."""
    rows = McpServer.objects.for_workspace(tenant.workspace).filter(scope=ServerScope.GLOBAL)
    return list(rows.select_related("global_server"))


def test_that_a_workspace_switches_a_platform_server_on_and_off(
    tenant: Tenant, write: Write
) -> None:
    """The row says that it is on; where it is stays in the file."""
    write({"weather": weather()})
    platform.sync()
    (offer,) = platform.offers_for(tenant.workspace.pk)
    assert (offer.row, offer.problem, offer.server.target_label) == (
        None,
        "",
        "https://weather.example.org:443",
    )
    row = platform.switch_on(
        workspace_id=tenant.workspace.pk, global_server=offer.server, actor=tenant.actor()
    )
    target = connection_spec(row).target
    assert isinstance(target, HttpSpec)
    assert target.headers == {"Authorization": f"Bearer {SECRET}"}
    with pytest.raises(Conflict):
        platform.switch_on(
            workspace_id=tenant.workspace.pk, global_server=offer.server, actor=tenant.actor()
        )
    platform.switch_off(
        workspace_id=tenant.workspace.pk, global_server=offer.server, actor=tenant.actor()
    )
    assert rows_of(tenant) == []


def test_that_only_administrators_switch_platform_servers(tenant: Tenant, write: Write) -> None:
    """A member may neither."""
    write({"weather": weather()})
    platform.sync()
    known = GlobalServer.objects.get()
    for change in (platform.switch_on, platform.switch_off):
        with pytest.raises(PermissionDenied):
            change(
                workspace_id=tenant.workspace.pk, global_server=known, actor=tenant.actor("member")
            )


def test_that_secrets_of_the_file_stay_in_the_file(
    tenant: Tenant, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    """No row, no entry of the log, no page and no error holds them."""
    caplog.set_level(logging.DEBUG)
    write(
        {
            "weather": weather(trellis={"required": True}),
            "program": {"command": sys.executable, "args": [SECRET], "env": {"KEY": SECRET}},
            "broken": weather(url=f"https://user:{SECRET}@example.org/"),
        }
    )
    platform.sync()
    page = tenant.client("admin").get(f"/w/{tenant.workspace.slug}/servers/")
    stored = serializers.serialize(
        "json", [*GlobalServer.objects.all(), *rows_of(tenant), *AuditEntry.unscoped.all()]
    )
    offers = [offer.as_json() for offer in platform.offers_for(tenant.workspace.pk)]
    for where in (stored, page.content.decode(), str(offers), caplog.text, repr(registry.state())):
        assert SECRET not in where
    assert GlobalServer.objects.count() == 3


def test_that_a_required_server_is_in_every_workspace_and_stays(
    tenant: Tenant, write: Write
) -> None:
    """Also in those that come later; it can neither be deleted nor switched off."""
    write({"rules": weather(trellis={"required": True})})
    platform.sync()
    other = make_tenant("later")
    platform.sync()
    platform.sync()
    (row,) = rows_of(tenant)
    assert len(rows_of(other)) == 1
    for attempt in (
        lambda: services.delete_server(server=row, actor=tenant.actor()),
        lambda: services.set_server_active(server=row, is_active=False, actor=tenant.actor()),
        lambda: platform.switch_off(
            workspace_id=row.workspace_id,
            global_server=GlobalServer.objects.get(),
            actor=tenant.actor(),
        ),
    ):
        with pytest.raises(Conflict):
            attempt()
    write({"rules": weather()})
    platform.sync()
    row.refresh_from_db()
    services.delete_server(server=rows_of(tenant)[0], actor=tenant.actor())


def test_that_nobody_points_a_platform_server_elsewhere(tenant: Tenant, write: Write) -> None:
    """An administrator decides on its behaviour, not on its address or credentials."""
    write({"rules": weather(trellis={"required": True})})
    platform.sync()
    (row,) = rows_of(tenant)
    for draft in (
        ServerDraft(url="https://elsewhere.example.org/"),
        ServerDraft(headers={"X-Key": "1"}),
    ):
        with pytest.raises(InvalidInput):
            services.update_server(server=row, draft=draft, actor=tenant.actor())
    changed = services.update_server(
        server=row, draft=ServerDraft(trusts_annotations=True), actor=tenant.actor()
    )
    assert changed.trusts_annotations


def test_that_a_workspaces_own_name_is_not_taken_away(tenant: Tenant, write: Write) -> None:
    """The platform's server stands beside it under another name."""
    McpServer.objects.create(workspace=tenant.workspace, name="weather", url="https://a.example/")
    write({"weather": weather(trellis={"required": True})})
    platform.sync()
    assert [row.name for row in rows_of(tenant)] == ["weather (platform)"]


def test_that_no_name_keeps_a_required_server_out(tenant: Tenant, write: Write) -> None:
    """A workspace cannot evade it by taking the names that it would get, long ones included."""
    long = "w" * 60
    for name in ("weather", "weather (platform)", "weather (platform 2)", long):
        McpServer.objects.create(workspace=tenant.workspace, name=name, url="https://a.example/")
    required = weather(trellis={"required": True})
    write({"weather": required, long: required})
    platform.sync()
    names = {row.name for row in rows_of(tenant)}
    assert names == {"weather (platform 3)", "w" * 49 + " (platform)"}


def test_that_a_broken_file_is_told_and_changes_nothing(tenant: Tenant, write: Write) -> None:
    """With line and column; what it said before stays in force until it can be read again."""
    write({"weather": weather()})
    platform.sync()
    write('{"mcpServers": {\n  "weather": oops\n}}')
    platform.sync()
    state = registry.state()
    assert "line 2, column 14" in state.error
    assert set(state.definitions) == {"weather"}
    assert GlobalServer.objects.get().is_present
    write({"other": weather()})
    platform.sync()
    assert registry.state().error == ""
    assert dict(GlobalServer.objects.values_list("name", "is_present")) == {
        "weather": False,
        "other": True,
    }


def test_that_a_missing_variable_makes_one_server_unavailable(
    tenant: Tenant, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named; a default stands in where there is one; the other servers are not affected."""
    monkeypatch.setenv("TEST_SET", "from-the-environment")
    monkeypatch.delenv("TEST_UNSET", raising=False)
    write(
        {
            "a": weather(headers={"X-Key": "${TEST_UNSET}", "trellis": "x"}),
            "b": weather(headers={"X-Key": "${TEST_SET}", "X-Other": "${TEST_UNSET:-fallback}"}),
            "c": weather(headers={"X-Key": "${SECRET_KEY}"}),
        }
    )
    platform.sync()
    problems = {one.server.name: one.problem for one in platform.offers_for(tenant.workspace.pk)}
    assert problems == {
        "a": "The variable TEST_UNSET is not set.",
        "b": "",
        "c": "The variable SECRET_KEY is not set.",
    }
    definition = registry.definition("b")
    assert definition is not None
    assert definition.entry.headers == {"X-Key": "from-the-environment", "X-Other": "fallback"}
    row = platform.switch_on(
        workspace_id=tenant.workspace.pk,
        global_server=GlobalServer.objects.get(name="a"),
        actor=tenant.actor(),
    )
    with pytest.raises(InvalidInput, match="TEST_UNSET"):
        connection_spec(row)


def test_that_a_program_of_the_file_is_run_as_the_file_says(tenant: Tenant, write: Write) -> None:
    """With a folder of its own, which is also the root that it is told of."""
    write({"program": {"command": sys.executable, "args": ["-m", "this"], "env": {"A": "1"}}})
    platform.sync()
    row = platform.switch_on(
        workspace_id=tenant.workspace.pk,
        global_server=GlobalServer.objects.get(),
        actor=tenant.actor(),
    )
    spec = connection_spec(row)
    assert isinstance(spec.target, StdioSpec)
    assert spec.target.argv == (sys.executable, "-m", "this")
    assert spec.target.env == {"A": "1"}
    assert spec.roots[0][0].endswith(str(row.pk))


def test_that_a_changed_definition_changes_the_connection(tenant: Tenant, write: Write) -> None:
    """What was opened from the old one is not used any more."""
    write({"weather": weather()})
    platform.sync()
    row = platform.switch_on(
        workspace_id=tenant.workspace.pk,
        global_server=GlobalServer.objects.get(),
        actor=tenant.actor(),
    )
    before = connection_spec(row).fingerprint
    write({"weather": weather(headers={"Authorization": "Bearer another"})})
    platform.sync()
    assert connection_spec(row).fingerprint != before


def test_that_what_was_learned_goes_with_the_definition(tenant: Tenant, write: Write) -> None:
    """Another server behind the same name is not judged by the last one; a mere flag changes nothing."""
    write({"weather": weather()})
    platform.sync()
    row = platform.switch_on(
        workspace_id=tenant.workspace.pk,
        global_server=GlobalServer.objects.get(),
        actor=tenant.actor(),
    )
    learned: dict[str, Any] = {
        "status": "error",
        "status_reason": "It is gone.",
        "consecutive_failures": 7,
        "resolved_transport": "sse",
        "protocol_revision": "2025-06-18",
        "capabilities": {"tools": {}},
    }
    row.state.write(**learned)
    write({"weather": weather(trellis={"required": True})})
    platform.sync()
    row.refresh_from_db()
    assert {name: getattr(row.state, name) for name in learned} == learned
    write({"weather": weather(url="https://elsewhere.example.org/mcp", trellis={"required": True})})
    platform.sync()
    row.refresh_from_db()
    forgotten = {name: getattr(row.state, name) for name in learned}
    assert forgotten == {
        "status": "disconnected",
        "status_reason": "",
        "consecutive_failures": 0,
        "resolved_transport": "",
        "protocol_revision": "",
        "capabilities": {},
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1, column 1"),
        ("[]", "needs an object"),
        ('{"a": 1}', "mcpServers"),
        ('{"mcpServers": {"a": {}, "a": {}}}', "given twice"),
        ("[" * 100_000, "nested too deep"),
        ("9" * 5000, "number that is too long"),
        (b'{"mcpServers": "\xff"}', "not UTF-8"),
        (b" " * 10_000_000, "at most 1024 KB"),
    ],
)
def test_that_a_text_that_is_no_list_is_refused_in_plain_words(
    text: str | bytes, reason: str
) -> None:
    """REL-2310: never with a stack trace or words of Python's own, and never after reading ten megabytes."""
    with pytest.raises(MalformedServerList, match=reason):
        read_server_list(text)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({}, "Either"),
        ({"url": "https://a.example/", "command": "x"}, "Either"),
        ({"url": "https://a.example/", "type": "carrier pigeon"}, "none of"),
        ({"command": "x", "type": "http"}, "of the type stdio"),
        ({"command": "x", "args": "y"}, "list of texts"),
        ({"command": "x", "env": {"A": {}}}, "no text"),
        ({"url": "https://a.example/", "trellis": {"requierd": True}}, "may hold"),
        ("https://a.example/", "not an object"),
    ],
)
def test_that_one_wrong_entry_does_not_hide_the_others(entry: object, reason: str) -> None:
    """It is named with its fault."""
    found = read_server_list(
        json.dumps({"mcpServers": {"bad": entry, "good": {"url": "https://b.example/"}}})
    )
    assert [one.name for one in found.entries] == ["good"]
    assert reason in found.problems["bad"]


def test_that_all_missing_variables_are_named_at_once() -> None:
    """So that nobody has to find them one by one."""
    found = read_server_list(
        json.dumps({"mcpServers": {"a": {"url": "https://${B}/${A}?${env:C:-x}"}}})
    )
    with pytest.raises(MissingVariable, match="A, B"):
        found.entries[0].expanded({})
    assert found.entries[0].expanded({"A": "1", "B": "h.example"}).url == "https://h.example/1?x"


OF_EDITORS = {
    "VS Code": """{
        // They ask for a password.
        "inputs": [{"id": "gh-key", "type": "promptString", "password": true}],
        "servers": {
            "far": {
                "type": "http", "url": "https://a.example//mcp", /* "x": 1, */
                "headers": {"Authorization": "Bearer ${input:gh-key}",},
            },
            "near": {"command": "npx", "args": ["-y", "// no comment", ",]"], "env": {"KEY": "${env:KEY}"}},
        },
    }""",
    "Zed": """"context_servers": {
        "far": {"url": "https://a.example//mcp", "headers": {"Authorization": "Bearer ${input:gh-key}"}},
        "near": {"source": "custom", "command": "npx", "args": ["-y", "// no comment", ",]"], "env": {"KEY": "${KEY}"}},
    }, // of somebody's settings
    """,
    "Zed before": """{"context_servers": {
        "far": {"url": "https://a.example//mcp", "headers": {"Authorization": "Bearer ${input:gh-key}"}},
        "near": {"command": {"path": "npx", "args": ["-y", "// no comment", ",]"], "env": {"KEY": "${KEY}"}}},
    }}""",
    "OpenCode": """{"$schema": "https://opencode.ai/config.json", "mcp": {
        "far": {"type": "remote", "url": "https://a.example//mcp",
                "headers": {"Authorization": "Bearer {file:gh-key}"}, "enabled": true},
        "near": {"type": "local", "command": ["npx", "-y", "// no comment", ",]"], "environment": {"KEY": "{env:KEY}"}},
    }}""",
    "Codex, in a fence": """```toml
# Of somebody's settings.
model = "x"
[mcp_servers.far]
url = "https://a.example//mcp"
bearer_token_env_var = "gh_key"
startup_timeout_sec = 20
[mcp_servers.near]
command = "npx"
args = ["-y", "// no comment", ",]"]
[mcp_servers.near.env]
KEY = "${KEY}"
```
""",
}


@pytest.mark.parametrize("editor", OF_EDITORS)
def test_that_the_settings_of_an_editor_are_read(editor: str) -> None:
    """REL-2852: with comments and trailing commas. What only the editor can fill in is never sent as it stands there."""
    found = read_server_list(OF_EDITORS[editor])
    assert not found.problems
    far, near = found.entries
    assert (far.url, far.transport in ("auto", "streamable_http")) == (
        "https://a.example//mcp",
        True,
    )
    [variable] = far.variables()
    assert variable in ("file:gh-key", "input:gh-key", "gh_key")
    assert far.headers == {"Authorization": f"Bearer ${{{variable}}}"}
    with pytest.raises(MissingVariable, match=variable):
        far.expanded({})
    filled = near.expanded({"KEY": "k"})
    assert (filled.transport, filled.command) == ("stdio", "npx")
    assert (filled.args, filled.env) == (("-y", "// no comment", ",]"), {"KEY": "k"})


def test_that_what_is_nested_deeply_in_an_entry_of_opencode_does_no_harm() -> None:
    """REL-2852: nobody reads that part."""
    [entry] = read_server_list(
        '{"mcp": {"a": {"type": "remote", "url": "https://a.example/", "x": '
        + "[" * 600
        + "]" * 600
        + "}}}"
    ).entries
    assert entry.url == "https://a.example/"


def test_that_headers_of_codex_are_read() -> None:
    """REL-2852: their values stand in the file, or are those of variables."""
    text = """[mcp_servers.a]
    url = "https://a.example/"
    http_headers = { X-Plain = "1" }
    env_http_headers = { X-Key = "KEY" }"""
    [entry] = read_server_list(text).entries
    assert entry.headers == {"X-Plain": "1", "X-Key": "${KEY}"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[mcp_servers.a]\nurl = x", "Not valid TOML: .*line 2"),
        ("[mcp_servers.a]\n" + "a." * 100_000 + "b = 1", "at most 32 KB"),
        ("[mcp_servers]\na = 1", "not an object"),
        ('a = """\n[mcp_servers.a]\n"""', "needs an object"),
        (
            "[mcp_servers.a]\nurl = 'https://a.example/'\nhttp_headers = [1]",
            "“headers” is an object",
        ),
    ],
)
def test_that_a_faulty_config_of_codex_says_why(text: str, reason: str) -> None:
    """REL-2852: where the fault is."""
    try:
        [problem] = read_server_list(text).problems.values()
    except MalformedServerList as error:
        problem = error.message
    assert re.search(reason, problem)


@pytest.mark.parametrize("text", ['{"a": "b" /* c', '{"a": 1,,}', "/* " * 300_000])
def test_that_comments_hide_no_fault(text: str) -> None:
    """REL-2852: nor do they take long to find."""
    with pytest.raises(MalformedServerList, match="Not valid JSON"):
        read_server_list(text)
