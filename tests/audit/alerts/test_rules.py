"""Rules of alerts: settings, what is recommended, and what their pages say of them."""

from __future__ import annotations

import json
from unittest.mock import patch

import pytest

from audit.actions import Action, Outcome, RefusedBy
from audit.alerts import evaluation, services
from audit.alerts.services import RECOMMENDED, AlertRuleDraft
from audit.models import AlertRule, AuditEntry
from audit.services import Ref
from tests.audit.alerts.rules import CONDITION, look, make_rule, write_entries
from tests.audit.streams.receivers import HttpReceiver
from tests.factories import Tenant
from workspaces.errors import Conflict, InvalidInput, PermissionDenied

pytestmark = pytest.mark.django_db


def test_recommended_rules_are_added_once(tenant: Tenant) -> None:
    owner = tenant.actor("owner")
    assert services.add_recommended(workspace_id=tenant.workspace.pk, actor=owner) == len(
        RECOMMENDED
    )
    assert services.add_recommended(workspace_id=tenant.workspace.pk, actor=owner) == 0
    kinds = AlertRule.objects.for_workspace(tenant.workspace).values_list("condition", flat=True)
    assert set(kinds) == set(CONDITION.values) - {CONDITION.ENTRIES}, (
        "what to count there is for people to say"
    )
    assert evaluation.evaluate_all() == len(RECOMMENDED)


def test_settings_of_rules_are_checked_and_told(tenant: Tenant, receiver: HttpReceiver) -> None:
    """SEC-93: the secret that signs is in no entry."""
    rule, secret = services.create_rule(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        draft=AlertRuleDraft(
            name="x", condition="quota", threshold=1, window_minutes=5, webhook_url=receiver.url
        ),
    )
    assert secret
    for wrong in (
        {"condition": "nonsense"},
        {"condition": "error_rate", "threshold": 101},
        {"condition": "timeout", "window_minutes": 100_000},
        {"condition": "timeout", "emails": ["no address"]},
        {"condition": "timeout", "webhook_url": "ftp://x/"},
    ):
        with pytest.raises(InvalidInput):
            make_rule(tenant, **wrong)
    with pytest.raises(PermissionDenied):
        services.switch_rule(rule=rule, actor=tenant.actor("admin"), is_active=False)
    write_entries(tenant, Action.TOOL_CALL_REFUSED, refused_by=RefusedBy.QUOTA)
    look(rule)
    services.switch_rule(rule=rule, actor=tenant.actor("owner"), is_active=False)
    assert evaluation.open_alert(rule) is None
    assert look(rule) is None
    services.delete_rule(rule=rule, actor=tenant.actor("owner"))
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    assert entries.filter(action="config.changed").count() == 3
    assert entries.filter(action="alert.ended").get().details["why"]
    assert secret not in json.dumps(list(entries.values_list("details", flat=True)))
    with patch.object(services, "MOST_RULES", 0), pytest.raises(Conflict):
        make_rule(tenant, "timeout")


def test_a_rule_for_a_name_that_the_log_does_not_know_is_told(tenant: Tenant) -> None:
    """REL-923, REL-1724: it may be misspelt; the rule is kept, since its server may come later."""
    write_entries(
        tenant, Action.TOOL_CALL_FINISHED, server=Ref(id=None, name="mail"), outcome=Outcome.OK
    )
    client, add = tenant.client("owner"), f"/w/{tenant.workspace.slug}/audit/alerts/add/"
    values = {"name": "x", "condition": "timeout", "threshold": 1, "window_minutes": 5}
    values |= {"least_calls": 1, "remind_hours": 0}
    text = "The log names no server “mial” so far."
    page = client.post(add, {**values, "query": "server:mial"}, follow=True).content.decode()
    assert text in page
    assert f'data-keeps-typed action="{add}"' in page
    page = client.post(add, {**values, "query": "server:mail"}, follow=True).content.decode()
    assert "The log names no" not in page
    assert AlertRule.objects.for_workspace(tenant.workspace).count() == 2


def test_a_rule_that_can_tell_nobody_says_so(tenant: Tenant) -> None:
    """REL-1731: as it is saved and in the list; one that would never alert is not taken."""
    client, page = tenant.client("owner"), f"/w/{tenant.workspace.slug}/audit/alerts/"
    values = {"name": "x", "condition": "spending", "threshold": 101, "window_minutes": 5}
    values |= {"least_calls": 1, "remind_hours": 0}
    refused = client.post(f"{page}add/", values)
    assert refused.status_code == 422
    assert "It is a number of per cent, at most 100." in refused.content.decode()
    saved = client.post(f"{page}add/", {**values, "threshold": 100}, follow=True).content.decode()
    assert "The rule tells nobody." in saved
    assert "Tells nobody" in client.get(page).content.decode()
    rule = AlertRule.objects.for_workspace(tenant.workspace).get()
    fields = {**values, "threshold": 100, "tells_bell": "on"}
    assert (
        "The rule tells nobody."
        not in client.post(f"{page}{rule.pk}/", fields, follow=True).content.decode()
    )
    assert "Tells nobody" not in client.get(page).content.decode()
