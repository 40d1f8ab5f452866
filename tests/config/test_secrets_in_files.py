from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from audit.models import AuditEntry, AuditStream
from audit.streams.services import StreamDraft, StreamStart, create_stream
from chat.models import ModelProvider
from config.workspace_files import WorkspaceTarget, apply_file
from mcp_servers.models import McpServer
from tests.factories import CANARY, Tenant
from tests.mcp_servers.factories import http_server
from workspaces.errors import InvalidInput

_ADDRESS = "http://127.0.0.1:8899/mcp"
"""Where nobody listens."""
_SERVER = {"transport": "streamable_http", "url": _ADDRESS}
_SIEM = {"name": "SIEM", "kind": "webhook", "target": "https://siem.example.org/in"}


@pytest.fixture
def place(tenant: Tenant) -> WorkspaceTarget:
    """A workspace with a server, a provider and a stream, each with a secret."""
    place = WorkspaceTarget(tenant.workspace, tenant.actor("owner"))
    url = f"{_ADDRESS}?api_key=9f{CANARY}8e7d6c5b"
    http_server(tenant, url, name="far", auth_type="bearer", auth={"token": f"{CANARY}-token"})
    ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="Main",
        base_url="https://models.example.org/v1",
        default_model="large",
        api_key=f"{CANARY}-key",
    )
    apply_file(place, {"streams": [{**_SIEM, "headers": {"X-Key": f"{CANARY}-stream"}}]})
    return WorkspaceTarget(tenant.workspace, tenant.actor("owner"))


def _file(*, token: str, key: str = f"{CANARY}-key", stream: str = f"{CANARY}-stream") -> object:
    server = {"name": "far", "transport": "streamable_http", "auth_type": "bearer"}
    provider = {"name": "Main", "base_url": "https://models.example.org/v1"}
    return {
        "servers": [
            {
                **server,
                "url": f"{_ADDRESS}?api_key=9f{CANARY}8e7d6c5b",
                "auth": {"token": token},
            }
        ],
        "providers": [{**provider, "default_model": "large", "api_key": key}],
        "streams": [{**_SIEM, "headers": {"X-Key": stream}}],
    }


def test_the_same_secrets_again_are_no_change(place: WorkspaceTarget) -> None:
    """REL-3161: a pipeline applies its file with each push; the log tells of nothing, and no connection ends."""
    server = McpServer.objects.for_workspace(place.pk).get()
    apply_file(place, _file(token=f"{CANARY}-token"))
    entries = AuditEntry.objects.for_workspace(place.pk).count()
    before = McpServer.objects.for_workspace(place.pk).get().updated_at
    applied = apply_file(place, _file(token=f"{CANARY}-token"))
    assert applied.is_none
    server.refresh_from_db()
    assert server.updated_at == before
    assert AuditEntry.objects.for_workspace(place.pk).count() == entries


def test_another_secret_is_told_by_its_place(place: WorkspaceTarget) -> None:
    """REL-3161: the diff shows none, so a rotated key read “Nothing changes”. Its server is looked at."""
    wanted = _file(token="renewed", stream="renewed")
    planned = apply_file(place, wanted, is_dry_run=True)
    changed = ("servers.far.auth", "streams.SIEM.headers")
    assert (planned.diff, planned.secrets, planned.notes) == ("", changed, ())
    applied = apply_file(place, wanted)
    assert (applied.diff, applied.secrets) == ("", changed)
    assert any("“far” could not be looked at" in note for note in applied.notes)
    server = McpServer.objects.for_workspace(place.pk).get()
    assert server.auth_config is not None
    assert server.auth_config.reveal_json("a test") == {"token": "renewed"}
    assert apply_file(place, wanted).is_none


def test_a_client_without_a_secret_again_is_no_change(place: WorkspaceTarget) -> None:
    """REL-3171: its connections had ended with each push, though nothing was told."""
    client = {"client_id": "trellis", "client_secret": ""}
    wanted = {"servers": [{**_SERVER, "name": "far", "auth_type": "oauth", "auth": client}]}
    apply_file(place, wanted)
    before = McpServer.objects.for_workspace(place.pk).get().updated_at
    assert apply_file(place, wanted).is_none
    assert McpServer.objects.for_workspace(place.pk).get().updated_at == before


def test_the_places_of_rows_with_like_names_are_told_apart(
    tenant: Tenant, place: WorkspaceTarget
) -> None:
    """REL-3171: of two streams with one name the file means the first, and only a server with another key is looked at."""
    second = StreamDraft(name="SIEM", target=_SIEM["target"], headers={"X-Key": "of the second"})
    create_stream(
        workspace_id=place.pk,
        actor=place.actor,
        kind="webhook",
        draft=second,
        start=StreamStart.NOW,
    )
    http_server(tenant, _ADDRESS, name="far.away", auth_type="bearer", auth={"token": "first"})
    away = {**_SERVER, "name": "far.away", "auth_type": "bearer", "auth": {"token": "second"}}
    wanted = {"servers": [away], "streams": [{**_SIEM, "headers": {"X-Key": "renewed"}}]}
    applied = apply_file(place, wanted)
    assert applied.secrets == ("servers.far.away.auth", "streams.SIEM.headers")
    assert [note.partition(" ")[0] for note in applied.notes] == ["“far.away”"]


def test_another_secret_in_an_address_is_told(place: WorkspaceTarget) -> None:
    """REL-3161: the file masks it, before and after."""
    url = f"{_ADDRESS}?api_key=0a{CANARY}1b2c3d4e"
    server = {"name": "far", "transport": "streamable_http", "auth_type": "bearer", "url": url}
    planned = apply_file(place, {"servers": [server]}, is_dry_run=True)
    assert (planned.diff, planned.secrets) == ("", ("servers.far.url",))


def test_the_page_applies_a_file_that_changes_a_secret_alone(
    tenant: Tenant, place: WorkspaceTarget
) -> None:
    """REL-3161: it said that nothing would change, and offered no button."""
    text = f"""servers:
- name: far
  transport: streamable_http
  url: {_ADDRESS}?api_key=9f{CANARY}8e7d6c5b
  auth_type: bearer
  auth: {{token: renewed}}
"""
    home = f"/w/{tenant.workspace.slug}/file/"
    seen = tenant.client("owner").post(home, {"text": text}).content.decode()
    assert "<code>servers.far.auth</code>" in seen
    assert 'name="apply"' in seen


def test_variables_fill_what_streams_keep_secret(
    tenant: Tenant, place: WorkspaceTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-3161: the name of the variable was stored and sent as if it were the key."""
    path = tmp_path / "workspace.yaml"
    path.write_text(
        "streams:\n- {name: SIEM, kind: webhook, target: 'https://siem.example.org/in',"
        " headers: {X-Key: '${SIEM_KEY}'}}\n"
    )
    monkeypatch.setenv("SIEM_KEY", "open sesame")
    out = StringIO()
    call_command("apply", path, workspace=tenant.workspace.slug, stdout=out)
    assert out.getvalue() == "Secrets that change: streams.SIEM.headers.\n"
    stream = AuditStream.objects.for_workspace(place.pk).get()
    assert stream.headers is not None
    assert stream.headers.reveal_json("a test") == {"X-Key": "open sesame"}


def test_a_secret_without_a_kind_of_authentication_is_refused_with_the_kinds(
    tenant: Tenant,
) -> None:
    """REL-3161: “None takes nothing” was all it said."""
    place = WorkspaceTarget(tenant.workspace, tenant.actor("owner"))
    server = {
        "name": "far",
        "transport": "streamable_http",
        "url": _ADDRESS,
        "auth": {"token": "a"},
    }
    with pytest.raises(InvalidInput) as refused:
        apply_file(place, {"servers": [server]})
    [text] = refused.value.fields["servers.far.auth"]
    assert "auth_type" in text
    assert "bearer" in text
