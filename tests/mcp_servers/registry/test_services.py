"""What people do with servers."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from audit.models import AuditEntry
from mcp_servers.client import transports
from mcp_servers.client.errors import AuthenticationRequired
from mcp_servers.models import HealthCheck, McpServer, McpTool
from mcp_servers.models.programs import Parameter, build_argv, check_program, check_values
from mcp_servers.models.server_credentials import AuthType
from mcp_servers.registry import health, services
from mcp_servers.registry.services import ServerDraft, server_notices
from mcp_servers.registry.specs import connection_spec, home_of
from tests.factories import Tenant, make_tenant
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import (
    demo_server,
    http_server,
    looked_at,
    tool_of,
    zoo_program,
    zoo_server,
)
from workspaces.delivery.announcements import Announcement
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.redaction import MASK

CANARY = "canary-5b1e-key"


def stored(server: McpServer) -> dict[str, Any]:
    row = McpServer.objects.for_workspace(server.workspace_id).fetch(server.pk)
    return {
        "headers": row.headers.reveal_json("test") if row.headers else {},
        "auth": row.auth_config.reveal_json("test") if row.auth_config else {},
        "status": row.state.status,
        "reason": row.state.status_reason,
    }


@pytest.fixture
def keyed(tenant: Tenant, counting: CountingServer) -> McpServer:
    """A server with a header and a token."""
    return http_server(
        tenant,
        counting.url,
        name="keyed",
        headers={"X-Key": CANARY, "X-Team": "garden"},
        auth_type=AuthType.BEARER,
        auth={"token": CANARY},
    )


def change(tenant: Tenant, server: McpServer, **fields: Any) -> McpServer:
    return services.update_server(server=server, draft=ServerDraft(**fields), actor=tenant.actor())


def test_the_mask_keeps_what_is_stored(tenant: Tenant, keyed: McpServer) -> None:
    """SEC-93: saving the mask changes nothing; a new value replaces; what is left out goes."""
    change(tenant, keyed, headers={"X-Key": MASK, "X-Team": "kitchen"})
    assert stored(keyed)["headers"] == {"X-Key": CANARY, "X-Team": "kitchen"}
    change(tenant, keyed, headers={"X-Team": MASK})
    assert stored(keyed)["headers"] == {"X-Team": "kitchen"}
    change(tenant, keyed, auth={"token": MASK})
    assert stored(keyed)["auth"] == {"token": CANARY}


def test_another_way_to_a_server_is_tried_at_once(tenant: Tenant, keyed: McpServer) -> None:
    """REL-2692: a changed key or address makes the next check due; a new name or the mask does not."""
    health.note_reading(keyed, health.HealthReading(latency_ms=5))
    change(tenant, keyed, name="renamed", auth={"token": MASK}, headers={"X-Key": MASK})
    assert health.due_servers() == []
    ways: list[dict[str, Any]] = [{"auth": {"token": "another"}}, {"url": keyed.url + "?v=2"}]
    for way in ways:
        changed = change(tenant, keyed, **way)
        assert health.due_servers() == [(keyed.workspace_id, keyed.pk)]
        health.note_reading(changed, health.HealthReading(latency_ms=5))


def test_a_new_key_takes_back_what_was_said_of_the_old_one(
    tenant: Tenant, keyed: McpServer
) -> None:
    """REL-3143: it says that it connects; a new name, and the mask, leave the refusal there.

    REL-3175: what a look says that began with the old one is not said of the new one, which is tried soon.
    """
    keyed.state.write(status="auth_required", status_reason="Refused.")
    change(tenant, keyed, name="renamed", auth={"token": MASK})
    keyed.state.refresh_from_db()
    assert (keyed.state.status, keyed.state.status_reason) == ("auth_required", "Refused.")
    changed = change(tenant, keyed, auth={"token": "another"})
    assert (changed.state.status, changed.state.status_reason) == ("connecting", "")
    health.note_reading(keyed, health.HealthReading(error=AuthenticationRequired("Refused.")))
    changed.state.refresh_from_db()
    assert (changed.state.status, changed.state.next_check_at) == ("connecting", None)
    health.note_reading(changed, health.HealthReading(error=AuthenticationRequired("Refused.")))
    keyed.state.refresh_from_db()
    assert (keyed.state.status, keyed.state.status_reason) == ("auth_required", "Refused.")


def test_another_origin_drops_the_credentials(tenant: Tenant, keyed: McpServer) -> None:
    """SEC-99: a changed address gets no key that was stored for another, also not by the mask."""
    second = CountingServer()
    try:
        changed = change(
            tenant, keyed, url=second.url, headers={"X-Key": MASK}, auth={"token": MASK}
        )
        assert changed.state.status == "auth_required"
        assert "entered" in changed.state.status_reason or "enter" in changed.state.status_reason
        assert stored(keyed)["headers"] == {}
        assert stored(keyed)["auth"] == {}
        services.test_connection(server=changed, actor=tenant.actor())
        assert second.headers
        assert CANARY not in str(second.headers)
    finally:
        second.stop()


def test_the_same_origin_keeps_the_credentials(tenant: Tenant, keyed: McpServer) -> None:
    """SEC-99: another path of the same server is the same server."""
    change(tenant, keyed, url=keyed.url + "?v=2")
    assert stored(keyed)["auth"] == {"token": CANARY}


def test_new_credentials_come_with_the_new_address(tenant: Tenant, keyed: McpServer) -> None:
    """SEC-99: what is given anew in the same step is kept."""
    changed = change(tenant, keyed, url="https://example.org/mcp", auth={"token": "fresh-token"})
    assert stored(keyed)["auth"] == {"token": "fresh-token"}
    assert stored(keyed)["headers"] == {}
    assert changed.state.status == "disconnected"


def test_a_program_gets_no_headers_of_a_url(tenant: Tenant, keyed: McpServer) -> None:
    """SEC-99, SEC-38: a change of transport drops the credentials too, and takes the catalogue's program only."""
    changed = change(
        tenant,
        keyed,
        transport=transports.STDIO,
        program=zoo_program(),
        parameters={"mode": "probe"},
        auth_type=AuthType.NONE,
    )
    assert stored(keyed)["headers"] == {}
    assert connection_spec(changed).is_stdio
    assert changed.url == ""


def test_members_change_nothing(tenant: Tenant, keyed: McpServer) -> None:
    """SEC-24: each verb asks for the permission itself."""
    member = tenant.actor("member")
    outsider = make_tenant("other").actor("owner")
    for actor in (member, outsider):
        for attempt in (
            lambda actor=actor: services.update_server(
                server=keyed, draft=ServerDraft(name="x"), actor=actor
            ),
            lambda actor=actor: services.delete_server(server=keyed, actor=actor),
            lambda actor=actor: services.test_connection(server=keyed, actor=actor),
            lambda actor=actor: services.refresh_tools(server=keyed, actor=actor),
            lambda actor=actor: services.add_server(
                workspace_id=tenant.workspace.pk,
                draft=ServerDraft(name="x", url="https://example.org/"),
                actor=actor,
            ),
        ):
            with pytest.raises(PermissionDenied):
                attempt()
    keyed.refresh_from_db()
    assert keyed.name == "keyed"


def test_changes_are_recorded_without_secrets(tenant: Tenant, keyed: McpServer) -> None:
    """SEC-93: the log says that a secret changed, and not to what."""
    change(tenant, keyed, headers={"X-Key": "another-secret-value"}, name="renamed")
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    text = str(list(rows.values()))
    assert rows.count() == 2
    assert "renamed" in text
    assert CANARY not in text
    assert "another-secret-value" not in text


def test_a_switched_off_server_offers_nothing(tenant: Tenant, trusted: McpServer) -> None:
    """Switching off takes effect at once."""
    assert McpTool.objects.for_workspace(tenant.workspace).callable().count() == 7
    services.set_server_active(server=trusted, is_active=False, actor=tenant.actor())
    assert McpTool.objects.for_workspace(tenant.workspace).callable().count() == 0
    report = services.test_connection(server=trusted, actor=tenant.actor())
    assert not report.ok


def test_trying_keeps_nothing(tenant: Tenant, counting: CountingServer) -> None:
    """A test before saving leaves no server, no tool, no check, no process, no folder."""
    draft = ServerDraft(name="x", url=counting.url)
    report = services.try_connection(
        workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor()
    )
    assert report.ok
    assert report.tool_count == 7
    assert McpServer.objects.for_workspace(tenant.workspace).count() == 0
    assert HealthCheck.objects.for_workspace(tenant.workspace).count() == 0


def test_a_failed_look_is_told_and_kept(tenant: Tenant) -> None:
    """The administrator sees what the program said last."""
    server = zoo_server(tenant, "exit_at_once")
    report = services.test_connection(server=server, actor=tenant.actor())
    assert not report.ok
    assert "ended before it answered in MCP" in report.message
    assert "configuration missing" in report.details
    server.refresh_from_db()
    assert server.state.status == "error"
    assert "configuration missing" in server.state.status_reason


def test_deleting_a_program_ends_its_child(tenant: Tenant) -> None:
    """SEC-41: workspace members delete; the process and its folder go."""
    import time

    server = looked_at(tenant, zoo_server(tenant, "orphan"))
    folder = home_of(server.pk)
    orphan = int((folder / "orphan.pid").read_text())
    services.delete_server(server=server, actor=tenant.actor())
    from pathlib import Path

    deadline = time.monotonic() + 10
    while Path(f"/proc/{orphan}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{orphan}").exists()
    assert not folder.exists()


def test_the_programs_that_come_with_the_platform_work(tenant: Tenant) -> None:
    """The official time server and our notes server, over stdio."""
    clock = looked_at(tenant, demo_server(tenant, "time", parameters={"timezone": "Asia/Tokyo"}))
    notes = looked_at(tenant, demo_server(tenant, "notes", trusts_annotations=True))
    tools = McpTool.objects.for_workspace(tenant.workspace).callable()
    assert set(tools.filter(server=clock).values_list("name", flat=True)) == {
        "get_current_time",
        "convert_time",
    }
    assert set(tools.filter(server=notes).values_list("name", flat=True)) == {
        *("list_notes", "read_note", "write_note", "delete_note", "slow_report"),
        "plan_garden_day",
    }
    assert tool_of(notes, "delete_note").typed_annotations.destructive is True
    assert tool_of(notes, "read_note").typed_annotations.read_only is True


@pytest.mark.parametrize(
    "fields",
    [
        {"command": "npx"},
        {"command": "../bin/sh"},
        {"command": "/usr/../bin/sh"},
        {"args": "x"},
        {"args": [1]},
        {"args": ["{missing}"]},
        {"env_names": ["LD_PRELOAD"]},
        {"env_names": ["PYTHONPATH"]},
        {"env_names": ["lower"]},
        {"parameters": [{"name": "x"}]},
        {"parameters": [{"name": "Bad Name", "title": "x"}]},
        {"parameters": [{"name": "x", "title": "x"}, {"name": "x", "title": "y"}]},
        {"parameters": [{"name": "x", "title": "x", "type": "choice"}]},
        {"parameters": [{"name": "x", "title": "x", "default": "-x"}]},
        {"parameters": {"x": 1}},
    ],
)
def test_a_catalogue_entry_must_be_whole(fields: dict[str, Any]) -> None:
    """SEC-37: the platform owner's mistakes are told, too."""
    values: dict[str, Any] = {
        "command": "python",
        "args": [],
        "parameters": [],
        "env_names": [],
        **fields,
    }
    with pytest.raises(InvalidInput):
        check_program(**values)


def test_a_command_without_its_path_is_told_with_it() -> None:
    """REL-2255, REL-2856: the message says where it is on this machine, and where its arguments belong."""
    with pytest.raises(InvalidInput, match=f"On this machine it is {shutil.which('env')}"):
        check_program(command="env", args=[], parameters=[], env_names=[])
    for command in ("env -i", f"{shutil.which('env')} -i"):
        with pytest.raises(InvalidInput, match="the program alone"):
            check_program(command=command, args=[], parameters=[], env_names=[])


def test_a_parameter_is_one_argument() -> None:
    """SEC-35, SEC-39: put in as it is, once; an argument without its value is left out."""
    parameters = (
        Parameter(name="zone", title="Zone"),
        Parameter(name="level", title="Level", type="integer", minimum=1, maximum=9),
        Parameter(name="mode", title="Mode", type="choice", choices=("fast", "slow")),
    )
    values = check_values(parameters, {"zone": "Asia/Tokyo", "mode": "fast"})
    argv = build_argv(
        "/bin/x", ["--zone={zone}", "--level", "{level}", "{mode}", "${HOME}"], values
    )
    assert argv == ("/bin/x", "--zone=Asia/Tokyo", "--level", "fast", "${HOME}")
    for bad in (
        {"level": "10"},
        {"level": "x"},
        {"level": "-1"},
        {"mode": "other"},
        {"zone": "a{b}"},
        {"zone": ["a"]},
    ):
        with pytest.raises(InvalidInput):
            check_values(parameters, bad)


def test_a_text_reaches_a_program_as_one_argument() -> None:
    """REL-1797: no shell reads it, so blanks and quotes stay; a line break, or what looks like an option, is refused."""
    parameters = (Parameter(name="folder", title="Folder", type="text"),)
    folder = '/srv/My papers/Zoë\'s "notes" {2026}'
    values = check_values(parameters, {"folder": folder})
    assert build_argv("/bin/x", ["--root", "{folder}"], values) == ("/bin/x", "--root", folder)
    for bad in ("--rm", "a\nb", "a\x00", " a", "a\u202eb", "x" * 1001):
        with pytest.raises(InvalidInput):
            check_values(parameters, {"folder": bad})


def test_a_foreign_name_is_no_clash(tenant: Tenant, keyed: McpServer) -> None:
    """SEC-12: names are unique within a workspace only, and tell nothing of others."""
    other = make_tenant("other")
    http_server(other, "https://example.org/", name="keyed")
    with pytest.raises(InvalidInput):
        http_server(tenant, "https://example.org/", name="keyed")


def test_a_program_that_is_taken_off_offer_stops(tenant: Tenant) -> None:
    """SEC-37: the platform owner's word counts at once, for servers that exist, too."""
    server = looked_at(tenant, zoo_server(tenant, "probe"))
    program = zoo_program()
    program.is_enabled = False
    program.save()
    report = services.test_connection(server=server, actor=tenant.actor())
    assert not report.ok
    assert "no longer on offer" in report.message
    with pytest.raises(InvalidInput):
        zoo_server(tenant, "probe")


@pytest.mark.parametrize(
    "query", ["key=abc%2Bdef%2f12345==", "qk-barekey-77777", "a=1&k=abc%20def"]
)
def test_that_the_query_of_an_address_is_not_told(tenant: Tenant, query: str) -> None:
    """SEC-93: a key in the address is in no entry of the log; that it changed is."""
    server = http_server(tenant, f"https://example.org/mcp?{query}")
    # As after a restart: this process has never seen what is stored.
    old = "key=OLD-S3CRET-99999"
    rows = McpServer.objects.for_workspace(tenant.workspace)
    rows.filter(pk=server.pk).update(url=f"https://example.org/mcp?{old}")
    server.refresh_from_db()
    change(tenant, server, url=f"https://example.org/mcp?{query}")
    server = change(tenant, server, url=f"https://example.org/other?{query}")
    services.delete_server(server=server, actor=tenant.actor())
    entries = AuditEntry.objects.for_workspace(tenant.workspace).order_by("pk")
    listed = [
        (one.details["before"].get("url"), one.details["after"].get("url"))
        for one in entries.filter(action="config.changed")
        if "url" in one.details["before"] or "url" in one.details["after"]
    ]
    base = "https://example.org/mcp?(set)"
    assert listed == [
        (None, base),
        (base, "https://example.org/mcp?(changed)"),
        (base, "https://example.org/other?(set)"),
        ("https://example.org/other?(set)", None),
    ]
    everything = str(list(entries.values()))
    for secret in ("OLD-S3CRET", "abc%2Bdef", "abc+def", "barekey", "abc%20def", "abc def"):
        assert secret not in everything


def test_that_a_server_without_its_credentials_can_be_renamed_and_switched_off(
    tenant: Tenant, keyed: McpServer
) -> None:
    """They were dropped; only what needs them asks for them."""
    server = change(tenant, keyed, url="https://elsewhere.example.org/mcp")
    server.state.write(status="error")
    change(tenant, server, name="renamed", auth_type=AuthType.BEARER, url=server.url)
    assert not change(tenant, server, is_active=False).is_active
    for fields in (
        {"is_active": True},
        {"auth": {"token": ""}},
        {"auth_type": AuthType.API_KEY},
        {"url": "https://elsewhere.example.org/other"},
    ):
        with pytest.raises(InvalidInput) as refused:
            change(tenant, server, **fields)
        assert "auth" in refused.value.fields
    assert change(tenant, server, auth={"token": CANARY}, is_active=True).is_active


def test_that_the_tools_of_ones_own_server_are_told_to_its_owner_only(
    tenant: Tenant, counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id and its comings and goings are nobody else's business."""
    tenant.allow_personal_servers()
    listed: list[Announcement] = []
    monkeypatch.setattr(
        server_notices, "announce", lambda workspace, announcement: listed.append(announcement)
    )
    actor = tenant.actor("member")
    draft = ServerDraft(name="mine", transport=transports.STREAMABLE_HTTP, url=counting.url)
    server = services.add_personal_server(workspace=tenant.workspace, draft=draft, actor=actor)
    assert services.test_connection(server=server, actor=actor).ok
    assert {one.kind for one in listed} == {"server.changed", "tools.changed"}
    assert {one.user_id for one in listed} == {str(tenant.member.pk)}
