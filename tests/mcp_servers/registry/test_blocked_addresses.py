"""Networks that Trellis may not connect to: whoever can change that is told, and everybody else reads a plain sentence."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from audit.alerts.services import AlertRuleDraft, create_rule
from audit.models import AlertRule, AuditStream
from audit.streams.building import parse_target
from chat.models import ModelProvider
from chat.services.providers import prepare_provider
from chat.webhooks.services import create_webhook
from mcp_servers.client import transports
from mcp_servers.klavis.accounts import AccountDraft, save_account
from mcp_servers.models import McpServer
from mcp_servers.registry import services
from tests.factories import Tenant
from tests.mcp_servers.factories import http_server, zoo_server
from workspaces.errors import DomainError, InvalidInput

SETTING = "TRELLIS_ALLOWED_NETWORKS"


@pytest.fixture
def blocked(tenant: Tenant) -> McpServer:
    """A server in a private network that nobody has allowed."""
    return http_server(tenant, "https://10.0.0.5/mcp", name="inside")


@pytest.mark.parametrize(
    "url", ["http://example.com/mcp", "http://10.0.0.5/", "http://192.168.1.10:8080/mcp"]
)
def test_an_unencrypted_address_outside_is_refused_when_it_is_entered(
    tenant: Tenant, url: str
) -> None:
    """SEC-290: with the reason and the setting's name, wherever people enter addresses."""
    with pytest.raises(InvalidInput) as refused:
        http_server(tenant, url)
    assert SETTING in refused.value.fields["url"][0]
    assert "https://" in refused.value.fields["url"][0]
    with pytest.raises(InvalidInput) as refused:
        http_server(tenant, url.replace("http", "ws", 1), transport=transports.WEBSOCKET)
    assert "wss://" in refused.value.fields["url"][0]


def enter_webhook(tenant: Tenant, url: str) -> None:
    create_webhook(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        url=url,
        events=["turn.completed"],
    )


def enter_alert(tenant: Tenant, url: str) -> None:
    create_rule(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        draft=AlertRuleDraft(
            name="x",
            condition=AlertRule.Condition.ERROR_RATE,
            threshold=5,
            window_minutes=15,
            webhook_url=url,
        ),
    )


def enter_stream(_tenant: Tenant, url: str) -> None:
    parse_target(AuditStream.Kind.OTLP, url)


def enter_provider(tenant: Tenant, url: str) -> None:
    row = ModelProvider(workspace=tenant.workspace, name="x", base_url=url, default_model="m")
    prepare_provider(row, has_new_key=True)


def enter_klavis(tenant: Tenant, url: str) -> None:
    save_account(
        workspace_id=tenant.workspace.pk,
        draft=AccountDraft(api_key="k" * 20, base_url=url),
        actor=tenant.actor("owner"),
    )


@pytest.mark.parametrize(
    "enter", [enter_webhook, enter_alert, enter_stream, enter_provider, enter_klavis]
)
def test_every_other_address_is_read_by_the_same_rule(
    tenant: Tenant, enter: Callable[[Tenant, str], None]
) -> None:
    """SEC-290: webhooks, alerts, streams of the log, model providers, and the hosted provider."""
    with pytest.raises(DomainError) as refused:
        enter(tenant, "http://example.com/x")
    text = f"{refused.value.message} {getattr(refused.value, 'fields', '')}"
    assert SETTING in text


def test_what_listens_on_an_allowed_network_may_be_entered(tenant: Tenant) -> None:
    """Ours: this machine is allowed in tests, by its address and by its name."""
    assert http_server(tenant, "http://127.0.0.1:8009/mcp").url == "http://127.0.0.1:8009/mcp"
    assert http_server(tenant, "http://localhost:8009/mcp").url == "http://localhost:8009/mcp"


def test_administrators_are_told_which_setting_allows_a_network(
    tenant: Tenant, blocked: McpServer, caplog: pytest.LogCaptureFixture
) -> None:
    """SEC-290, SEC-34: in the report, over REST, in the log; no address is resolved or named for anybody."""
    with caplog.at_level(logging.WARNING):
        report = services.test_connection(server=blocked, actor=tenant.actor())
    assert report.message == "Trellis is not allowed to connect to this server's network."
    assert SETTING in report.details
    assert any(SETTING in record.getMessage() for record in caplog.records)
    url = f"/api/servers/{blocked.pk}/"
    assert SETTING in tenant.client("admin").get(url).json()["status_reason"]
    assert tenant.client("member").get(url).json()["status_reason"] == report.message


def test_a_program_s_last_words_are_shown_when_it_does_not_start(tenant: Tenant) -> None:
    """Ours: what it wrote to its error stream says why, whether it hangs or ends."""
    for mode in ("complain_and_hang", "complain_and_exit"):
        server = zoo_server(tenant, mode, connection_config={"connect_seconds": 5})
        report = services.test_connection(server=server, actor=tenant.actor())
        assert not report.ok
        assert "configuration file is missing" in report.details, mode
        server.refresh_from_db()
        assert "configuration file is missing" in server.state.status_reason
