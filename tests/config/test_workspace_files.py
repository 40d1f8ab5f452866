"""A workspace as a file in a repository: written, applied, and refused whole."""

from __future__ import annotations

import locale
import os
import sys
from dataclasses import replace
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from audit.alerts.services import AlertRuleDraft, create_rule
from audit.models import AlertRule, AuditEntry, AuditStream, ReportSchedule, SavedView
from audit.reviews.saved_views import save_view
from chat.models import Bud, ModelProvider, ProviderModel
from chat.services.buds import create_bud, update_bud
from chat.tools.toolset import resolve_toolset
from config.workspace_files import (
    WorkspaceTarget,
    apply_file,
    fill_variables,
    workspace_document,
    write_workspace,
)
from config.workspace_files.shapes import read_document
from mcp_servers.models import ApprovalOverride, McpServer, McpTool
from mcp_servers.registry import services
from tests.factories import CANARY, Tenant, TwoTenants, make_tenant
from tests.mcp_servers.factories import (
    demo_server,
    http_server,
    looked_at,
    stored_tool,
    tool_of,
    zoo_program,
)
from tests.memory import memory_of
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.models import Membership
from workspaces.yaml_text import read_yaml

pytestmark = pytest.mark.django_db
PROVIDER = {"name": "P", "base_url": "https://models.example.org/v1", "default_model": "m"}


def place_of(tenant: Tenant, role: str = "owner") -> WorkspaceTarget:
    Membership.objects.for_workspace(tenant.workspace).filter(role="owner").update(is_auditor=True)
    return WorkspaceTarget(tenant.workspace, tenant.actor(role))


def furnished(tenant: Tenant) -> WorkspaceTarget:
    """A workspace with one of everything that a file has."""
    place = place_of(tenant)
    owner = place.actor
    server = looked_at(tenant, demo_server(tenant, "time", parameters={"timezone": "UTC"}))
    tool = tool_of(server, "get_current_time")
    services.set_approval_override(tool=tool, override=ApprovalOverride.CONFIRM, actor=owner)
    config = {"servers": [str(server.pk)], "available_tools": [f"{server.pk}.get_current_time"]}
    values = {"slug": "clock", "name": "Clock", "system_prompt": "Two\nlines", "mcp_config": config}
    create_bud(workspace_id=place.pk, actor=owner, values=values)
    draft = AlertRuleDraft(
        name="Slow", condition="timeout", threshold=3, window_minutes=20, query="person:ada"
    )
    create_rule(workspace_id=place.pk, actor=owner, draft=draft)
    query = "q=outcome%3Afailed"
    save_view(
        workspace_id=place.pk, actor=owner, page="log", name="Failures", query=query, is_shared=True
    )
    more = {
        "providers": [
            {
                "name": "Main",
                "base_url": "https://models.example.org/v1",
                "default_model": "large",
                "fallback": "Spare",
                "most_at_once": 4,
                "embedding_model": "text-embedding",
                "models": {"large": {"context_tokens": 200_000, "prompt_price": 2.5}},
            },
            {
                "name": "Spare",
                "base_url": "https://spare.example.org/v1",
                "default_model": "small",
            },
        ],
        "streams": [{"name": "SIEM", "kind": "webhook", "target": "https://siem.example.org/in"}],
        "schedules": [{"name": "Weekly", "delivery": "storage", "query": "outcome:failed"}],
    }
    apply_file(place, more)
    return place


def test_a_workspace_goes_into_a_file_and_comes_back_the_same(two_workspaces: TwoTenants) -> None:
    """REL-460: also into an empty one, whose new servers are looked at so that their tools can be named."""
    written = write_workspace(furnished(two_workspaces.a))
    empty = place_of(two_workspaces.b)
    applied = apply_file(empty, read_yaml(written))
    assert write_workspace(empty) == written
    assert "+- name: time" in applied.diff
    tool = tool_of(McpServer.objects.for_workspace(empty.pk).get(), "get_current_time")
    assert tool.approval_override == ApprovalOverride.CONFIRM
    assert any("“Main” has no key yet" in note for note in applied.notes)
    for kind in (Bud, AlertRule, AuditStream, SavedView, ReportSchedule):
        assert kind.objects.for_workspace(empty.pk).count() == 1, kind


def test_what_is_so_already_is_not_touched(tenant: Tenant) -> None:
    """REL-460: a second time changes nothing, and enters nothing into the log."""
    place = furnished(tenant)
    entries = AuditEntry.objects.for_workspace(place.pk).count()
    applied = apply_file(place, read_yaml(write_workspace(place)))
    assert applied.diff == ""
    assert AuditEntry.objects.for_workspace(place.pk).count() == entries


def test_a_file_says_that_schedules_are_missing_and_why(tenant: Tenant) -> None:
    """REL-1266: an owner without the auditor right may not read them; applied, the file leaves them as they are."""
    place = furnished(tenant)
    whole = write_workspace(place)
    assert "schedules:" in whole
    assert "# Not in this file" not in whole
    owner = WorkspaceTarget(place.workspace, replace(place.actor, is_auditor=False))
    text = write_workspace(owner)
    assert "schedules:" not in text
    assert text.startswith("# Not in this file: 1 schedule of the log. It takes the auditor right")
    assert apply_file(owner, read_yaml(text)).diff == ""
    assert ReportSchedule.objects.for_workspace(place.pk).count() == 1


def test_a_dry_run_tells_what_would_change_and_changes_nothing(tenant: Tenant) -> None:
    """REL-461."""
    place = furnished(tenant)
    document = workspace_document(place)
    document["rules"]["approves_new_tools"] = True
    document["buds"][0]["name"] = "Watch"
    document["servers"].append({"name": "far", "url": "https://far.example.org/mcp"})
    before, entries = write_workspace(place), AuditEntry.objects.for_workspace(place.pk).count()
    diff = apply_file(place, document, is_dry_run=True).diff
    assert "+  approves_new_tools: true" in diff
    assert "-- name: Clock" in diff
    assert "+- name: Watch" in diff
    assert "+  url: https://far.example.org/mcp" in diff
    assert write_workspace(place) == before
    assert AuditEntry.objects.for_workspace(place.pk).count() == entries


def test_a_dry_run_takes_what_a_new_servers_tools_are_named_for(
    two_workspaces: TwoTenants,
) -> None:
    """REL-461: into an empty workspace, where no server has told its tools yet; the notes say so."""
    written = read_yaml(write_workspace(furnished(two_workspaces.a)))
    empty = place_of(two_workspaces.b)
    outcome = apply_file(empty, written, is_dry_run=True)
    assert "+- name: Clock" in outcome.diff
    assert any("“time” has not told its tools yet, so what buds" in note for note in outcome.notes)
    assert not Bud.objects.for_workspace(empty.pk).exists()
    apply_file(empty, written)
    assert Bud.objects.for_workspace(empty.pk).get().slug == "clock"


def test_a_bud_may_name_tools_of_a_server_that_waits_for_a_sign_in(tenant: Tenant) -> None:
    """REL-460: the file is applied, says what is not checked, and holds once the server tells its tools."""
    place = place_of(tenant)
    tools = {"all": False, "servers": ["far"], "only": ["far.look"], "choice": "auto"}
    forced = {"type": "function", "function": {"name": "look"}}
    document = {
        "servers": [{"name": "far", "url": "https://127.0.0.1:9443/mcp"}],
        "buds": [{"name": "B", "slug": "b", "tools": {**tools, "choice": forced}}],
    }
    applied = apply_file(place, document)
    assert any("“far” has not told its tools yet, so what buds" in one for one in applied.notes)
    server = McpServer.objects.for_workspace(place.pk).get()
    bud = Bud.objects.for_workspace(place.pk).get()
    assert not [one for one in resolve_toolset(bud, None).notices if "no longer exists" in one]
    stored_tool(server, "other")
    with pytest.raises(InvalidInput, match="There is no tool"):
        update_bud(bud=bud, actor=place.actor, values={"mcp_config": bud.mcp_config})
    stored_tool(server, "look")
    update_bud(bud=bud, actor=place.actor, values={"mcp_config": bud.mcp_config})
    assert apply_file(place, document).diff == ""


@pytest.mark.parametrize(
    ("document", "field", "message"),
    [
        ({"servers": [{"name": "x", "colour": "red"}]}, "servers.x.colour", "no such field"),
        ({"dogs": []}, "dogs", "no such field"),
        ({"rules": {"is_free": True}}, "rules.is_free", "no such rule"),
        ({"servers": [{"name": "x", "url": "ftp://x"}]}, "servers.x.url", ""),
        ({"servers": [{"name": "x", "program": "rm"}]}, "servers.x.program", "not on offer"),
        ({"servers": [{"name": "x"}, {"name": "x"}]}, "servers.x", "twice"),
        ({"buds": [{"name": "B", "slug": "b", "tools": {"servers": ["none"]}}]}, "", "no server"),
        ({"buds": [{"name": "B", "slug": "b", "provider": "none"}]}, "buds.b.provider", ""),
        (
            {"providers": [{"name": "P", "base_url": "ftp://x", "default_model": "m"}]},
            "providers.P.base_url",
            "http",
        ),
        ({"providers": [{**PROVIDER, "fallback": "none"}]}, "providers.P.fallback", "no provider"),
        ({"providers": [{**PROVIDER, "fallback": "P"}]}, "providers.P.fallback", "itself"),
        ({"providers": [{**PROVIDER, "most_at_once": 0}]}, "providers.P.most_at_once", ""),
        ({"providers": [PROVIDER, PROVIDER]}, "providers.P", "twice"),
        (
            {"providers": [{**PROVIDER, "models": {"m": {"prompt_price": -1}}}]},
            "providers.P.models.m.prompt_price",
            "",
        ),
        ({"alerts": [{"name": "A", "condition": "timeout", "threshold": 0}]}, "", "number"),
        (
            {"alerts": [{"name": "A", "condition": "timeout", "threshold": 1, "query": "tol:x"}]},
            "alerts.A.query",
            "Did you mean “tool”?",
        ),
        ({"streams": [{"name": "S", "kind": "webhook", "target": "x"}]}, "streams.S.target", ""),
        ({"schedules": [{"name": "S", "recipients": ["who@x.org"]}]}, "", "not a member"),
        ([], "file", "sections"),
    ],
)
def test_a_fault_is_told_at_its_field_and_nothing_is_half_applied(
    tenant: Tenant, document: Any, field: str, message: str
) -> None:
    """REL-462: a new server of the same file is gone again, too."""
    place = place_of(tenant)
    before = write_workspace(place)
    if isinstance(document, dict):
        good = {"name": "good", "url": "https://127.0.0.1:9443/mcp"}
        document = {**document, "servers": [good, *document.get("servers", [])]}
    with pytest.raises(InvalidInput) as refused:
        apply_file(place, document)
    [(name, texts), *_] = refused.value.fields.items()
    assert name.startswith(field)
    assert message in " ".join(texts)
    assert write_workspace(place) == before


def test_providers_come_before_what_names_them(tenant: Tenant) -> None:
    """REL-594: a bud and a new server of the same file name them, and what is known of models follows the file."""
    place = place_of(tenant)
    document: dict[str, Any] = {
        "providers": [{**PROVIDER, "models": {"m": {"context_tokens": 8_000}}}],
        "servers": [
            {
                "name": "far",
                "url": "https://127.0.0.1:9443/mcp",
                "sampling": "ask",
                "sampling_provider": "P",
            }
        ],
        "buds": [{"name": "B", "slug": "b", "provider": "P"}],
    }
    apply_file(place, document)
    [provider] = ModelProvider.objects.for_workspace(place.pk)
    assert McpServer.objects.for_workspace(place.pk).get().sampling_provider_id == provider.pk
    assert Bud.objects.for_workspace(place.pk).get(slug="b").provider == provider
    document["providers"][0]["models"]["m"] = {
        "prompt_price": 0.25,
        "sees_pictures": True,
        "calls_tools": False,
        "reasons": True,
    }
    assert "prompt_price: 0.25" in apply_file(place, document).diff
    [known] = ProviderModel.objects.for_workspace(place.pk)
    assert (known.context_tokens, known.prompt_price, known.sees_pictures) == (
        None,
        Decimal("0.25"),
        True,
    )
    assert (known.calls_tools, known.reasons) == (False, True)
    assert apply_file(place, document).diff == ""


def test_keys_of_providers_are_given_and_never_written(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-408: and one that the file leaves out stays, but does not follow to another origin."""
    place = place_of(tenant)
    monkeypatch.setenv("OUR_KEY", f"sk-{CANARY}")
    document = {"providers": [{**PROVIDER, "api_key": "${OUR_KEY}"}]}
    applied = apply_file(place, fill_variables(document, os.environ), tests_keys=False)
    assert CANARY not in applied.diff + write_workspace(place)
    provider = ModelProvider.objects.for_workspace(place.pk).get()
    apply_file(place, {"providers": [{**PROVIDER, "default_model": "other"}]})
    provider.refresh_from_db()
    assert provider.default_model == "other"
    assert provider.api_key is not None
    assert provider.api_key.reveal("a test") == f"sk-{CANARY}"
    apply_file(place, {"providers": [{**PROVIDER, "base_url": "https://else.example.org/v1"}]})
    provider.refresh_from_db()
    assert provider.api_key is None
    with pytest.raises(InvalidInput) as refused:
        fill_variables({"providers": [{**PROVIDER, "api_key": "${NOT_SET}"}]}, {})
    assert "providers.P.api_key" in refused.value.fields


def test_texts_that_unfold_or_are_no_yaml_are_refused() -> None:
    """REL-462."""
    bomb = "a: &a [x]\n" + "".join(f"b{n}: [*a, *a]\n" for n in range(3))
    for text in (bomb, "a: [", "\x00", "!!python/object:os.system x", "a: " + "[" * 5_000):
        with pytest.raises(InvalidInput) as refused:
            read_yaml(text)
        assert "YAML" in refused.value.fields["file"][0]


@pytest.mark.parametrize(
    "value",
    [f"0x{'f' * 5_000}", "9223372036854775808", ".nan", "-.inf", r'"a\0b"', r'"\ud800"'],
)
def test_values_that_nothing_can_hold_are_refused(value: str) -> None:
    """REL-462: as REST refuses them, with their line; also as a name, and as a value of one."""
    for text in (f"servers:\n- name: {value}", f"servers:\n- {value}: a", f"rules:\n  {value}: 1"):
        with pytest.raises(InvalidInput) as refused:
            read_document(read_yaml(text))
        assert "See line 2." in refused.value.fields["file"][0]


def test_yaml_takes_neither_long_nor_much_of_the_stack() -> None:
    """SEC-623: numbers of many parts, deep nesting, and two million characters."""
    for text in ("a: " + "1:" * 200_000 + "1", "[" * 101 + "]" * 101, "- " * 150_000):
        with pytest.raises(InvalidInput):
            read_yaml(text)
    assert read_yaml("[" * 100 + "]" * 100)
    assert read_yaml("a: 1:30") == {"a": 90}
    steps = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event == "call"

    sys.setprofile(count)
    try:
        assert len(read_yaml("[" + "a," * 2_000 + "]")) == 2_000
    finally:
        sys.setprofile(None)
    assert steps / 2_000 < 20  # a reader in Python takes more than a hundred


def test_yaml_takes_little_memory() -> None:
    """SEC-646: three characters of it become a kilobyte while they are read."""

    def refused() -> None:
        with pytest.raises(InvalidInput) as caught:
            read_yaml("a: [" + "[]," * 600_000 + "]")
        assert "See line 1." in caught.value.fields["file"][0]

    assert memory_of(refused)[0] < 20_000_000
    assert len(read_yaml("[" + "a," * 90_000 + "]")) == 90_000


def test_secrets_are_never_written_and_stay_where_they_are_left_out(tenant: Tenant) -> None:
    """SEC-360: of servers, of addresses, of streams and alerts; given ones are stored."""
    place = place_of(tenant)
    url = f"https://far.example.org/mcp?api_key=9f{CANARY}8e7d6c5b"
    server = http_server(
        tenant, url, name="far", auth_type="bearer", auth={"token": f"{CANARY}-token"}
    )
    written = write_workspace(place)
    assert CANARY not in written
    document = read_yaml(written)
    document["servers"][0]["is_active"] = False
    apply_file(place, document)
    server.refresh_from_db()
    assert not server.is_active
    assert server.url == url
    assert server.auth_config is not None
    assert server.auth_config.reveal_json("a test")["token"] == f"{CANARY}-token"
    document["servers"][0]["auth"] = {"token": "another"}
    assert "another" not in apply_file(place, document).diff
    server.refresh_from_db()
    assert server.auth_config is not None
    assert server.auth_config.reveal_json("a test")["token"] == "another"
    # Elsewhere the masked address says nothing of where to go.
    with pytest.raises(InvalidInput) as refused:
        apply_file(place_of(make_tenant("other")), read_yaml(written))
    assert "servers.far.url" in refused.value.fields


def test_secrets_in_addresses_of_the_log_are_masked_and_stay(tenant: Tenant) -> None:
    """SEC-360: of an alert's webhook and of a stream; the rest of them is changed all the same."""
    place = place_of(tenant)
    secret = f"?token=9f{CANARY}8e7d6c5b"
    alert = AlertRule.objects.create(
        workspace=tenant.workspace,
        name="A",
        condition="timeout",
        threshold=1,
        webhook_url=f"https://hook.example.org/{secret}",
    )
    stream = AuditStream.objects.create(
        workspace=tenant.workspace,
        name="S",
        kind="webhook",
        target=f"https://sink.example.org/{secret}",
    )
    written = write_workspace(place)
    assert CANARY not in written
    document = read_yaml(written)
    document["alerts"][0]["threshold"] = 3
    document["streams"][0]["is_paused"] = True
    assert CANARY not in apply_file(place, document).diff
    alert.refresh_from_db()
    stream.refresh_from_db()
    assert (alert.threshold, stream.is_paused) == (3, True)
    assert (CANARY in alert.webhook_url, CANARY in stream.target) == (True, True)
    other = place_of(make_tenant("other"))
    for part, field in (("alerts", "alerts.A.webhook_url"), ("streams", "streams.S.target")):
        with pytest.raises(InvalidInput) as refused:
            apply_file(other, {part: document[part]})
        assert field in refused.value.fields


def test_only_owners_write_and_apply(two_workspaces: TwoTenants) -> None:
    """SEC-361: and the log's parts only for those who may read it."""
    for role in ("admin", "member", "auditor"):
        target = WorkspaceTarget(two_workspaces.a.workspace, two_workspaces.a.actor(role))
        with pytest.raises(PermissionDenied):
            write_workspace(target)
        with pytest.raises(PermissionDenied):
            apply_file(target, {})
        client = two_workspaces.a.client(role)
        assert client.get("/api/config/").status_code == 403
        assert client.post("/api/config/", {}, content_type="application/json").status_code == 403
    foreign = WorkspaceTarget(two_workspaces.b.workspace, two_workspaces.a.actor("owner"))
    with pytest.raises(PermissionDenied):
        write_workspace(foreign)


def test_ids_of_another_workspace_mean_nothing(two_workspaces: TwoTenants) -> None:
    """SEC-361."""
    other = http_server(two_workspaces.b, "https://far.example.org/mcp", name="far")
    stored_tool(other)
    for name in (str(other.pk), "far"):
        bud = {"name": "B", "slug": "b", "tools": {"servers": [name], "only": [f"{name}.echo"]}}
        with pytest.raises(InvalidInput):
            apply_file(place_of(two_workspaces.a), {"buds": [bud]})
    assert McpTool.objects.for_workspace(two_workspaces.a.workspace).count() == 0


def test_the_rest_twin_speaks_the_same_document(tenant: Tenant) -> None:
    """REL-463."""
    furnished(tenant)
    client = tenant.client("owner")
    document = client.get("/api/config/").json()
    document["rules"]["approves_new_tools"] = True
    sent = {"data": document, "content_type": "application/json"}
    body = client.post("/api/config/?dry_run=true", **sent).json()
    assert "approves_new_tools: true" in body["diff"]
    assert not client.get("/api/config/").json()["rules"]["approves_new_tools"]
    assert client.post("/api/config/", **sent).json() == body
    assert client.get("/api/config/").json()["rules"]["approves_new_tools"]
    assert client.post("/api/config/?dry_run=maybe", **sent).status_code == 422
    faulty = {"servers": [{"name": "x", "colour": "red"}]}
    answer = client.post("/api/config/", faulty, content_type="application/json")
    assert answer.status_code == 422
    assert "servers.x.colour" in answer.content.decode()


def test_people_see_what_would_change_before_they_apply_it(tenant: Tenant) -> None:
    """REL-463: on a page that the admin leads to."""
    furnished(tenant)
    client = tenant.client("owner")
    home = f"/w/{tenant.workspace.slug}/file/"
    assert home in client.get("/admin/").content.decode()
    written = client.get(f"{home}download/")
    assert written.headers["Content-Disposition"].endswith('.yaml"')
    text = written.content.decode().replace("approves_new_tools: false", "approves_new_tools: true")
    page = client.post(home, {"text": text}).content.decode()
    assert "approves_new_tools: true" in page
    assert 'name="apply"' in page
    assert written.content == client.get(f"{home}download/").content
    applied = client.post(home, {"text": text, "apply": "1"}, follow=True).content.decode()
    assert "The workspace is as the file says now." in applied
    assert client.get(f"{home}download/").content.decode() == text
    assert "Nothing: the workspace is as" in client.post(home, {"text": text}).content.decode()
    faulty = client.post(home, {"text": "dogs: []"})
    assert faulty.status_code == 422
    assert "There is no such field." in faulty.content.decode()
    assert tenant.client("admin").get(home).status_code == 403


def test_the_commands_write_print_and_refuse(
    tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-463: secrets come from the environment, and a refusal has an exit status of its own."""
    place = place_of(tenant)
    zoo_program()
    path, slug = tmp_path / "workspace.yaml", tenant.workspace.slug
    path.write_text(
        "servers:\n- {name: zoo, transport: stdio, program: zoo, parameters: {mode: plain},"
        " env: {ZOO_TOKEN: '${OUR_TOKEN}'}}\n"
    )
    with pytest.raises(CommandError, match="OUR_TOKEN is not set") as refused:
        call_command("apply", path, workspace=slug)
    assert refused.value.returncode == 2
    monkeypatch.setenv("OUR_TOKEN", "open sesame")
    out = StringIO()
    call_command("apply", path, workspace=slug, dry_run=True, stdout=out)
    assert "+- name: zoo" in out.getvalue()
    assert not McpServer.objects.for_workspace(place.pk).exists()
    call_command("apply", path, workspace=slug, stdout=out)
    server = McpServer.objects.for_workspace(place.pk).get()
    assert server.env is not None
    assert server.env.reveal_json("a test") == {"ZOO_TOKEN": "open sesame"}
    assert "sesame" not in out.getvalue()
    call_command("export_workspace", path, workspace=slug)
    assert "program: zoo" in path.read_text()
    assert "sesame" not in path.read_text()
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("apply", tmp_path / "none.yaml", workspace=slug)
    with pytest.raises(CommandError, match="no workspace"):
        call_command("export_workspace", workspace="none")


def test_files_of_the_commands_are_utf_8_on_every_machine(tenant: Tenant, tmp_path: Path) -> None:
    """REL-2964: the machine's locale decided, so a file of another one was read wrong, and none written."""
    path, slug = tmp_path / "workspace.yaml", tenant.workspace.slug
    stream = "name: 日本, kind: webhook, target: https://siem.example.org/in"
    path.write_text(f"streams:\n- {{{stream}}}\n", encoding="utf-8")
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")
    try:
        call_command("apply", path, workspace=slug, stdout=StringIO())
        call_command("export_workspace", path, workspace=slug)
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    assert "name: 日本" in path.read_text(encoding="utf-8")


def test_faults_of_a_file_are_told_in_words_of_people(tenant: Tenant) -> None:
    """REL-796: what stands where a yes, a number, a list or one of some words should."""
    text = """
rules: {approves_new_tools: perhaps}
servers:
- {name: zoo, sampling_daily_tokens: many, roots: here, log_level: loud, url: [], tools: 7}
- {transport: stdio}
"""
    with pytest.raises(InvalidInput) as raised:
        apply_file(place_of(tenant), read_yaml(text))
    values = {name: texts[0] for name, texts in raised.value.fields.items()}
    assert values["rules.approves_new_tools"] == "Write true or false."
    assert values["servers.zoo.sampling_daily_tokens"] == "Write a whole number."
    assert values["servers.zoo.roots"] == "Write a list."
    assert values["servers.zoo.url"] == "Write a text."
    assert values["servers.zoo.tools"] == "Write names with values below it."
    assert values["servers.1.name"] == "This is required."
    assert not [words for words in values.values() if "Input should" in words], values


def test_a_form_without_a_file_asks_for_one(tenant: Tenant) -> None:
    """REL-921: and what has no sections is told how a file is written."""
    client = tenant.client("owner")
    where = f"/w/{tenant.workspace.slug}/file/"
    for sent, message in (
        (" \n", "Choose a file, or paste its text."),
        ("not a file", "The file names no sections, such as servers: and buds:."),
    ):
        answer = client.post(where, {"text": sent})
        assert answer.status_code == 422
        assert message in answer.content.decode()
