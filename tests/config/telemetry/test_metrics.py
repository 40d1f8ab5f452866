"""`/metrics`: who may read it, what it tells, and that names stay bounded."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from uuid_utils.compat import uuid7

from audit import metrics as log_metrics
from audit.actions import Action, Outcome, RefusedBy
from audit.services import EntryDraft, Ref, record
from config.env import ROOT, Environment
from config.workers.scheduler import MOST_WAITING
from mcp_servers.client.transports import STREAMABLE_HTTP
from mcp_servers.models import McpServer, ServerScope, ServerStatus
from mcp_servers.registry import metrics as registry_metrics
from tests.factories import Tenant
from workspaces.actors import Source
from workspaces.jobs.backup_notes import BACKUP
from workspaces.models import BackgroundJob, InstalledVersion
from workspaces.process import metrics

TOKEN = "a-token-of-the-scraper"


@contextmanager
def configured(**values: Any) -> Iterator[None]:
    old = {name: getattr(settings.TRELLIS, name) for name in values}
    for name, value in values.items():
        object.__setattr__(settings.TRELLIS, name, value)
    try:
        yield
    finally:
        for name, value in old.items():
            object.__setattr__(settings.TRELLIS, name, value)


def read() -> dict[str, float]:
    """Every sample that the endpoint gives, by name and labels."""
    with configured(metrics_token=SecretStr(TOKEN)):
        answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def key(name: str, **labels: str) -> str:
    return f"{name}{sorted(labels.items())}"


@pytest.mark.django_db
def test_nobody_reads_metrics_but_those_who_may() -> None:
    """SEC-115: off unless it is set up; then with the token, or from networks that are named; REL-2326: with the token, under any name; SEC-1061: a wrong token opens nothing, also to those."""
    client = Client()
    assert client.get("/metrics").status_code == 404
    with configured(metrics_token=SecretStr(TOKEN)):
        assert client.get("/metrics").status_code == 404
        for given in ("Bearer wrong", TOKEN[:-1], "Bearer ", "Bearer \xff"):
            assert client.get("/metrics", headers={"Authorization": given}).status_code == 404
        assert (
            client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        )
        # Prometheus asks each process under its own address, which no setting names.
        own = {"Authorization": f"Bearer {TOKEN}", "host": "trellis-1:8000"}
        assert client.get("/metrics", headers=own).status_code == 200
        assert client.post(
            "/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
        ).status_code in {403, 405}
    networks = Environment._read_networks("127.0.0.0/8")
    with configured(metrics_networks=networks):
        assert client.get("/metrics").status_code == 200
        assert client.get("/metrics", REMOTE_ADDR="10.0.0.1").status_code == 404
        # Whoever has a browser in that network ask under a name of theirs reads nothing.
        assert client.get("/metrics", headers={"host": "evil.example"}).status_code == 400
        theirs = {"host": "evil.example", "Authorization": "Bearer of-a-page"}
        assert client.get("/metrics", headers=theirs).status_code == 404


def test_a_short_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_METRICS_TOKEN", "short")
    with pytest.raises(ValueError, match="16 characters"):
        Environment()


@pytest.mark.django_db
def test_servers_that_nobody_calls_are_counted_too(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-3185: by what their last check found. Those that are off, and people's own, trouble no operator."""
    monkeypatch.setattr(registry_metrics, "_kept", metrics.CachedValue[dict[str, int]](60.0))
    drafts: list[dict[str, Any]] = [
        {"name": "away"},
        {"name": "off", "is_active": False},
        {"name": "own", "owner": tenant.member, "scope": ServerScope.PERSONAL},
    ]
    for draft in drafts:
        row = McpServer.objects.create(
            workspace=tenant.workspace, transport=STREAMABLE_HTTP, **draft
        )
        row.state.write(status=ServerStatus.ERROR)
    counted = read()
    assert counted[key("trellis_servers", status="error")] == 1
    assert counted[key("trellis_servers", status="connected")] == 0


@pytest.mark.django_db
def test_every_door_counts_alike(tenant: Tenant) -> None:
    """Calls, refusals, durations and waits are counted where entries are written."""
    before = read()

    def grown(name: str, **labels: str) -> float:
        found = read()
        return found.get(key(name, **labels), 0) - before.get(key(name, **labels), 0)

    def write(action: Action, source: Source = Source.API, **fields: Any) -> None:
        record(
            EntryDraft(
                action=action,
                actor=tenant.actor("member", source),
                workspace_id=tenant.workspace.pk,
                server=Ref(id=None, name="counted"),
                **fields,
            )
        )

    write(Action.TOOL_CALL_FINISHED, outcome=Outcome.OK, duration_ms=120)
    write(Action.TOOL_CALL_REFUSED, refused_by=RefusedBy.QUOTA)
    call = uuid7()
    write(Action.APPROVAL_REQUESTED, call_id=call)
    write(Action.APPROVAL_GRANTED, call_id=call)
    assert grown("trellis_tool_calls_total", server="counted", outcome="ok", source="api") == 1
    assert grown("trellis_tool_call_seconds_count", server="counted") == 1
    assert grown("trellis_tool_call_seconds_sum", server="counted") == pytest.approx(0.12)
    assert grown("trellis_refusals_total", layer="quota", source="api") == 1
    assert grown("trellis_approval_wait_seconds_count", answer="granted") == 1
    assert grown("trellis_http_requests_total", method="GET", route="metrics", status="200") >= 1
    log_metrics._kept_health._until = 0  # the gauge is asked of the database now and then only
    assert read()[key("trellis_log_pending_entries")] >= 1


@pytest.mark.django_db
def test_the_age_of_the_newest_background_job_grows_while_none_runs() -> None:
    """REL-3042: a dead scheduler fills no queue, so nothing else tells of it; from the first start on."""
    now = timezone.now()
    BackgroundJob.objects.all().delete()
    InstalledVersion.objects.all().delete()
    name = key("trellis_jobs_age_seconds")
    assert name not in read()
    InstalledVersion.objects.create(version="1", since=now - timedelta(hours=2))
    assert read()[name] == pytest.approx(7200, abs=60)
    BackgroundJob.objects.create(pk="old", ended_at=now - timedelta(hours=1))
    BackgroundJob.objects.create(pk="newest", ended_at=now - timedelta(minutes=10))
    BackgroundJob.objects.create(pk=BACKUP, ended_at=now)  # which no worker makes
    assert read()[name] == pytest.approx(600, abs=60)


@pytest.mark.django_db
def test_no_label_names_a_person_or_a_conversation(tenant: Tenant) -> None:
    client = tenant.client("owner")
    client.get(f"/w/{tenant.workspace.slug}/audit/alerts/")
    text = "\n".join(read())
    assert tenant.owner.email not in text
    assert tenant.workspace.slug + "/" not in text


@pytest.mark.django_db
def test_a_gauge_that_cannot_be_read_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """REL-3113: and is named once in the log, however often Prometheus reads."""

    def broken() -> Any:
        raise RuntimeError("canary-of-a-gauge")

    metrics.gauge("trellis_test_broken", "Broken.", broken)
    for found in (read(), read()):
        assert key("trellis_test_broken") not in found
        assert key("trellis_sockets_open") in found
    lines = [one for one in caplog.records if getattr(one, "metric", "") == "trellis_test_broken"]
    [line] = [one for one in lines if one.levelno > logging.DEBUG]
    assert (line.message, line.exc_info) == ("metric_not_read", None)


def test_names_are_bounded() -> None:
    names = metrics.BoundedNames(most=3)
    assert [names(text) for text in ("a", "b", "c", "d", "a", "")] == [
        "a",
        "b",
        "c",
        "other",
        "a",
        "none",
    ]


def test_a_value_is_looked_up_once_for_one_reading() -> None:
    asked: list[int] = []
    kept = metrics.CachedValue[int](seconds=60)

    def look() -> int:
        asked.append(1)
        return len(asked)

    assert [kept(look), kept(look)] == [1, 1]
    kept._until = 0
    assert kept(look) == 2


OPERATIONS = ROOT / "docs" / "operations"
_NAME = re.compile(r"\btrellis_[a-z0-9_]+")


@pytest.mark.parametrize("name", ["grafana-dashboard.json", "prometheus-alerts.yml"])
def test_dashboard_and_rules_name_metrics_that_exist(name: str) -> None:
    """Each name and each label that they use is exported."""
    text = (OPERATIONS / name).read_text()
    used = set(_NAME.findall(text))
    assert len(used) > 8
    exported = set(metrics._known) | {
        "trellis_celery_queue_length",
        "trellis_celery_oldest_task_seconds",
    }
    for metric in (*_COUNTERS, *_HISTOGRAMS):
        exported |= {f"{metric._name}{end}" for end in ("_total", "_bucket", "_count", "_sum")}
    assert used <= exported, f"not exported: {sorted(used - exported)}"
    if name.endswith(".json"):
        panels = json.loads(text)["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        assert all(target["expr"] for panel in panels for target in panel["targets"])


def test_the_rule_of_a_long_queue_can_fire() -> None:
    """Ours: the scheduler stops handing out before a queue grows as long as the rule once waited for."""
    rules = (OPERATIONS / "prometheus-alerts.yml").read_text()
    (bound,) = re.findall(r"trellis_celery_queue_length\) > (\d+)", rules)
    assert int(bound) < MOST_WAITING


@pytest.mark.django_db
def test_the_rule_of_failing_calls_goes_on_while_a_server_is_left_alone(tenant: Tenant) -> None:
    """REL-3296: what is not sent since the breaker opened counts as failed, and as a call."""
    rules = yaml.safe_load((OPERATIONS / "prometheus-alerts.yml").read_text())
    (rule,) = (
        one["expr"]
        for group in rules["groups"]
        for one in group["rules"]
        if one["alert"] == "TrellisManyCallsFail"
    )
    failed, calls = rule.split("/")
    left_alone = f'trellis_refusals_total{{layer="{RefusedBy.BREAKER.value}"}}'
    assert left_alone in failed
    assert left_alone in calls
    name = key("trellis_refusals_total", layer=RefusedBy.BREAKER.value, source="api")
    before = read().get(name, 0)
    record(
        EntryDraft(
            action=Action.TOOL_CALL_REFUSED,
            actor=tenant.actor("member", Source.API),
            workspace_id=tenant.workspace.pk,
            refused_by=RefusedBy.BREAKER,
        )
    )
    assert read()[name] == before + 1


_COUNTERS = (metrics.tool_calls, metrics.refusals, metrics.http_requests)
_HISTOGRAMS = (metrics.call_seconds, metrics.approval_wait, metrics.http_seconds)
