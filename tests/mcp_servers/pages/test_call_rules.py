"""The pages of call rules, the same over REST, and in a workspace's file."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.test import Client

from config.workspace_files.applying import apply_file
from config.workspace_files.exporting import workspace_document
from config.workspace_files.target import WorkspaceTarget
from mcp_servers.models import CallRule, McpServer
from mcp_servers.registry.services import trying_rules
from tests.factories import Tenant, make_tenant
from tests.mcp_servers.call_rules import make
from tests.mcp_servers.factories import http_server, stored_tool

pytestmark = pytest.mark.django_db(transaction=True)
URL = "https://mcp.example.com/"
FORM = {
    "name": "Big sums",
    "what": "second",
    "servers": "bank\nbank *",
    "tools": "pay",
    "roles": ["member"],
    "reason": "Four eyes.",
    "is_enabled": "on",
    "condition-0-path": "sum",
    "condition-0-operator": "greater",
    "condition-0-value": "1000",
    "condition-1-path": "",
    "condition-1-operator": "equals",
    "condition-1-value": "",
}


def url(tenant: Tenant, path: str = "") -> str:
    return f"/w/{tenant.workspace.slug}/servers/call-rules/{path}"


def rules(tenant: Tenant) -> list[CallRule]:
    return list(CallRule.objects.for_workspace(tenant.workspace))


def test_an_admin_makes_a_rule_on_a_page_without_json(tenant: Tenant) -> None:
    """REL-1093: rows of a form for conditions; the list says the rule in words."""
    client = tenant.client("admin")
    page = client.get(url(tenant)).content.decode()
    assert "No rules yet" in page
    assert page.count("call-rules/add/?") == 2
    assert client.get(url(tenant, "add/?what=deny&tools=delete_*")).status_code == 200
    assert client.post(url(tenant, "add/"), FORM).status_code == 302
    (rule,) = rules(tenant)
    assert rule.servers == ["bank", "bank *"]
    assert (rule.effect, rule.approver) == ("confirm", "second_person")
    assert rule.conditions == [{"path": "sum", "operator": "greater", "value": "1000"}]
    page = client.get(url(tenant)).content.decode()
    assert "Asks a second person: pay on bank, bank *, for members" in page
    assert "“sum” is greater than “1000”" in page
    shown = client.get(url(tenant, f"{rule.pk}/")).content.decode()
    assert 'value="1000"' in shown


def test_a_rule_is_changed_switched_and_deleted_on_its_pages(tenant: Tenant) -> None:
    """REL-1093."""
    rule = make(tenant)
    client = tenant.client("owner")
    path = url(tenant, f"{rule.pk}/")
    assert client.post(path, {**FORM, "what": "deny", "is_enabled": ""}).status_code == 302
    rule.refresh_from_db()
    assert (rule.name, rule.effect, rule.is_enabled) == ("Big sums", "deny", False)
    assert client.post(f"{path}enabled/", {"is_on": "on"}).status_code == 302
    rule.refresh_from_db()
    assert rule.is_enabled
    assert client.post(f"{path}delete/").status_code == 302
    assert rules(tenant) == []


def test_conditions_that_somebody_else_changed_meanwhile_are_not_lost(tenant: Tenant) -> None:
    """REL-1264: they are shown first, at the conditions; saving again takes what the form has then."""
    one, other = tenant.client("admin"), tenant.client("owner")
    assert one.post(url(tenant, "add/"), FORM).status_code == 302
    (rule,) = rules(tenant)
    path = url(tenant, f"{rule.pk}/")

    def seen(client: Client, answer: Any = None) -> str:
        page = (answer or client.get(path)).content.decode()
        return html.unescape(page.partition('name="seen" value="')[2].partition('"')[0])

    first = seen(one)
    theirs = {**FORM, "condition-1-path": "to", "condition-1-value": "ann@example.org"}
    assert other.post(path, {**theirs, "seen": seen(other)}).status_code == 302
    for changes, message, value in (
        ({"reason": "Mine"}, "Their value is shown.", "ann@example.org"),
        ({"condition-0-value": "2000"}, "“sum” is greater than “1000” and “to” is", "2000"),
    ):
        late = one.post(path, {**FORM, **changes, "seen": first})
        assert late.status_code == 422
        text = html.unescape(late.content.decode())
        assert "Somebody else changed this" in text
        assert message in text
        assert f'value="{value}"' in text
        rule.refresh_from_db()
        assert len(rule.conditions) == 2
    again = {**FORM, "condition-0-value": "2000", "seen": seen(one, late)}
    assert one.post(path, again).status_code == 302
    rule.refresh_from_db()
    assert rule.conditions == [{"path": "sum", "operator": "greater", "value": "2000"}]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"condition-0-value": "many"}, "Enter a number."),
        ({"condition-0-operator": "present"}, "needs no value"),
        ({"condition-0-path": ""}, "Say which value"),
        ({"tools": "\n \n"}, "This field is required."),
    ],
)
def test_a_faulty_form_says_what_is_wrong(
    tenant: Tenant, fault: dict[str, str], words: str
) -> None:
    """REL-1091."""
    answer = tenant.client("admin").post(url(tenant, "add/"), {**FORM, **fault})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert rules(tenant) == []


def test_rules_are_tried_on_the_page(tenant: Tenant) -> None:
    """REL-1093: in words, and with arguments as lines."""
    make(tenant, conditions=[{"path": "where.path", "operator": "starts_with", "value": "/"}])
    client = tenant.client("admin")
    given = {"server": "files", "tool": "delete_file", "role": "member"}
    answer = client.post(url(tenant), {**given, "arguments": "where.path: /etc\nforce: true"})
    assert "The call rule “No deletes” blocks this call." in answer.content.decode()
    answer = client.post(url(tenant), {**given, "arguments": "where.path: notes"})
    assert "No call rule is about this call." in answer.content.decode()
    assert client.post(url(tenant), {**given, "arguments": "what"}).status_code == 422


def test_a_rule_whose_names_no_tool_has_says_so(tenant: Tenant) -> None:
    """REL-1663: as it is saved and in the list; not where a tool may run any action, or nothing is named."""
    server = http_server(tenant, "https://bank.example/mcp", name="bank")
    stored_tool(server, "pay", removed_at=None)
    client = tenant.client("admin")
    warned = "no tool here has these names"
    answer = client.post(url(tenant, "add/"), {**FORM, "servers": "banc"}, follow=True)
    page = answer.content.decode()
    assert warned in page
    assert page.count("No such tool") == 1
    (rule,) = rules(tenant)
    # Case and dashes do not matter to a rule that is strict, and neither does who asks.
    fixed = {**FORM, "servers": "BANK", "tools": "P?Y", "roles": ["owner"]}
    page = client.post(url(tenant, f"{rule.pk}/"), fixed, follow=True).content.decode()
    assert "The rule holds from the next call on." in page
    assert "No such tool" not in page
    make(tenant, name="Everything", tools=["*"])
    assert "No such tool" not in client.get(url(tenant)).content.decode()
    make(tenant, name="Elsewhere", servers=["elsewhere"], tools=["*"])
    assert client.get(url(tenant)).content.decode().count("No such tool") == 1
    server.hosted_by = "klavis"
    server.save(update_fields=["hosted_by"])
    stored_tool(server, "execute_action", input_schema={"properties": {"action_name": {}}})
    assert "No such tool" not in client.get(url(tenant)).content.decode()


def test_nothing_is_said_of_rules_where_the_tools_are_too_many(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1663: the list stays as quick as it was."""
    server = http_server(tenant, "https://bank.example/mcp", name="bank")
    for name in ("pay", "read"):
        stored_tool(server, name)
    rule = make(tenant, servers=["banc"])
    given: dict[str, Any] = {"workspace_id": tenant.workspace.pk, "rules": [rule]}
    assert trying_rules.rules_without_tools(**given) == {rule.pk}
    monkeypatch.setattr(trying_rules, "_MOST_TOOLS", 1)
    assert trying_rules.rules_without_tools(**given) == frozenset()


def test_the_list_comes_page_by_page(tenant: Tenant) -> None:
    """REL-1093."""
    CallRule.objects.bulk_create(
        CallRule(
            workspace=tenant.workspace,
            name=f"Rule {number:03}",
            effect="deny",
            servers=["*"],
            tools=["x"],
        )
        for number in range(60)
    )
    page = tenant.client("admin").get(url(tenant)).content.decode()
    assert "Rule 049" in page
    assert "Rule 050" not in page
    assert "Next page" in page


@pytest.mark.parametrize("role", ["member", "auditor"])
def test_members_see_no_page_of_rules(tenant: Tenant, role: str) -> None:
    """SEC-545: nor do they find rules over REST."""
    rule = make(tenant)
    client = tenant.client(role)
    for path in ("", "add/", f"{rule.pk}/"):
        assert client.get(url(tenant, path)).status_code == 403
    for path in ("enabled/", "delete/"):
        assert client.post(url(tenant, f"{rule.pk}/{path}")).status_code == 403
    headers = {"X-Workspace": tenant.workspace.slug}
    assert client.get("/api/call-rules/", headers=headers).json()["results"] == []
    assert client.get(f"/api/call-rules/{rule.pk}/", headers=headers).status_code == 404


def test_rules_over_rest(tenant: Tenant) -> None:
    """REL-1094: made, listed, changed in part, tried and deleted; a fault names its field."""
    client = tenant.client("admin")
    options: dict[str, Any] = {
        "content_type": "application/json",
        "headers": {"X-Workspace": tenant.workspace.slug},
    }
    body = {
        "name": "Big sums",
        "effect": "confirm",
        "approver": "second_person",
        "servers": ["bank"],
        "tools": ["pay"],
        "conditions": [{"path": "sum", "operator": "greater", "value": "1000"}],
    }
    made = client.post("/api/call-rules/", body, **options)
    assert made.status_code == 201, made.content
    assert made.json()["words"].startswith("Asks a second person: pay on bank")
    path = f"/api/call-rules/{made.json()['id']}/"
    assert client.patch(path, {"roles": ["member"]}, **options).json()["conditions"]
    bad = client.patch(path, {"conditions": [{"path": "a", "operator": "less"}]}, **options)
    assert bad.status_code == 422, bad.content
    assert bad.json()["errors"][0]["attr"] == "conditions", bad.content
    tried = client.post(
        "/api/call-rules/try/",
        {"server": "bank", "tool": "pay", "arguments": {"sum": 5000}},
        **options,
    ).json()
    assert (tried["effect"], tried["rule"]["name"]) == ("confirm", "Big sums")
    assert tried["needs_second_person"] is True
    (listed,) = client.get("/api/call-rules/", headers=options["headers"]).json()["results"]
    assert listed["roles"] == ["member"]
    assert client.delete(path, **options).status_code == 204
    assert rules(tenant) == []


def test_a_workspaces_file_carries_rules_and_new_ones_are_off(tenant: Tenant) -> None:
    """REL-1094: until somebody has looked at them; the file again changes nothing."""
    make(tenant, conditions=[{"path": "sum", "operator": "greater", "value": "10"}])
    document = workspace_document(WorkspaceTarget(tenant.workspace, tenant.actor("owner")))
    assert document["call_rules"][0]["name"] == "No deletes"
    other_tenant = make_tenant("other")
    there = WorkspaceTarget(other_tenant.workspace, other_tenant.actor("owner"))
    apply_file(there, {"call_rules": document["call_rules"]})
    apply_file(there, {"call_rules": document["call_rules"]})
    (rule,) = rules(other_tenant)
    assert not rule.is_enabled
    assert rule.conditions == [{"path": "sum", "operator": "greater", "value": "10"}]
    here = WorkspaceTarget(tenant.workspace, tenant.actor("owner"))
    assert apply_file(here, {"call_rules": document["call_rules"]}).diff == ""
    assert rules(tenant)[0].is_enabled


def test_fields_complete_the_names_of_servers_and_tools(tenant: Tenant) -> None:
    """REL-1744: those of the workspace, with the servers that have a tool; nobody's personal ones, none of others."""
    bank = http_server(tenant, URL, name="bank")
    stored_tool(bank, "pay")
    stored_tool(http_server(tenant, URL, name="shop"), "pay")
    personal = http_server(tenant, URL, name="mine")
    McpServer.objects.for_workspace(tenant.workspace).filter(pk=personal.pk).update(
        scope="personal", owner=tenant.member
    )
    stored_tool(personal, "secretly")
    stored_tool(http_server(make_tenant("other"), URL, name="theirs"), "foreign")
    for path in ("", "add/", f"{make(tenant).pk}/"):
        page = tenant.client("admin").get(url(tenant, path)).content.decode()
        assert '<option value="pay" label="bank, shop">' in page
        assert '<option value="bank">' in page
        assert "secretly" not in page
        assert "foreign" not in page
        assert 'list="rule-tools"' in page
