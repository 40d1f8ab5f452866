"""Buds, conversations, turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from django.apps import AppConfig

if TYPE_CHECKING:
    from audit.models import AuditEntry
    from audit.reports.providers import CallAction
    from audit.retention.periods import RetentionPeriod
    from chat.engine.waking import Runner
    from mcp_servers.models import InputRequest, McpServer
    from mcp_servers.registry.bud_choices import BudChoice
    from mcp_servers.registry.sampling import SamplingResult, SamplingTask
    from workspaces.actors import Actor
    from workspaces.models import Membership, User
    from workspaces.people.access import AccessCursor, AccessItem


class ChatConfig(AppConfig):
    name = "chat"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from audit.reports.providers import ReportSource, register_source
        from audit.retention.periods import register_kept
        from chat import metrics, reporting
        from chat.engine.waking import run_with
        from chat.models import SharedProvider, SharedProviderList
        from chat.models.labels import COLUMNS, TABLES
        from chat.services.left_chats import tell_left_chats
        from chat.services.membership_end import end_rows_of, suspend_work_of
        from chat.services.shared_providers import listen_to_new_workspaces
        from chat.services.withdrawn_tools import listen_to_servers
        from mcp_servers.registry.bud_choices import register_buds
        from mcp_servers.registry.elicitation import register_listener
        from mcp_servers.registry.model_choices import register_providers
        from mcp_servers.registry.sampling import register_model
        from workspaces.database.postgresql.policies import keep_for_platform, protect_table
        from workspaces.labels import EVERYWHERE
        from workspaces.people.access import register_access
        from workspaces.people.memberships import listen_to_leaving
        from workspaces.words.columns import name_tables

        name_tables(self, tables=TABLES, columns={**EVERYWHERE, **COLUMNS})
        # The words of messages and of what stands beside them, which triggers keep.
        protect_table("chat_message_lexemes")
        protect_table("chat_beside_lexemes")
        keep_for_platform(SharedProvider)
        keep_for_platform(SharedProviderList)
        _audit_tables()
        run_with(_runner)
        reporting.tell_reports()
        register_kept(_kept)
        register_source(ReportSource(call_actions=_call_actions))
        register_access("bud", _read_buds)
        register_model(_ask_model)
        register_providers(_providers_of)
        register_buds(_buds_of, _put_into_buds)
        register_listener(_tell_of_input)
        listen_to_leaving(parted=end_rows_of, suspended=suspend_work_of)
        tell_left_chats()
        listen_to_new_workspaces()
        listen_to_servers()
        metrics.register()


def _audit_tables() -> None:
    """Say which columns of which tables the log keeps changes of."""
    from chat.models import (
        Bud,
        BudCheck,
        CheckPlan,
        KnowledgeFile,
        MemberSpendingLimit,
        ModelProvider,
        SharedProvider,
        SpendingPolicy,
        WebhookEndpoint,
    )
    from workspaces.audited_tables import audit_table

    audit_table(
        Bud,
        (
            *("slug", "name", "system_prompt", "provider", "model", "parameters"),
            *(
                "mcp_config",
                "tool_protocol",
                "makes_artifacts",
                "takes_all_tools",
                "is_model_fixed",
                "is_archived",
                "visibility",
                "members_may_edit",
                "owner",
            ),
        ),
    )
    audit_table(
        BudCheck,
        ("bud", "question", "calls", "contains", "excludes", "criterion", "recordings"),
    )
    audit_table(CheckPlan, ("bud", "before_saving", "every"))
    audit_table(KnowledgeFile, ("bud", "name", "sha256"))
    audit_table(
        ModelProvider,
        (
            *("name", "base_url", "api_key", "default_model", "is_active"),
            *("most_at_once", "most_a_minute", "embedding_model", "shared", "withheld"),
            *("offered_models", "has_own_offer"),
            *("most_cost_a_month", "most_tokens_a_month"),
        ),
    )
    audit_table(
        SharedProvider,
        (
            *("name", "base_url", "api_key", "default_model", "is_active", "is_for_all"),
            *("most_at_once", "most_a_minute", "offer", "chosen_models"),
        ),
    )
    audit_table(
        SpendingPolicy,
        (
            *("cost", "tokens", "member_cost", "member_tokens"),
            *("warn_percent", "time_zone"),
        ),
    )
    audit_table(MemberSpendingLimit, ("person", "cost", "tokens"))
    audit_table(WebhookEndpoint, ("url", "secret", "events", "is_active"))


def _call_actions(entry: AuditEntry, user: User, actor: Actor) -> list[CallAction]:
    from chat.services.check_keeping import actions_on

    return actions_on(entry, user, actor)


def _runner() -> Runner:
    from chat.engine import runner

    return runner


def _kept() -> Sequence[RetentionPeriod]:
    from chat.retention_periods import list_periods

    return list_periods()


def _providers_of(workspace_id: UUID) -> list[tuple[UUID, str]]:
    from chat.models import ModelProvider

    rows = ModelProvider.objects.for_workspace(workspace_id).answering()
    return list(rows.order_by("name").values_list("pk", "name"))


def _buds_of(workspace_id: UUID) -> list[BudChoice]:
    from chat.models import Bud
    from mcp_servers.registry.bud_choices import BudChoice

    rows = (
        Bud.objects.for_workspace(workspace_id).shared().filter(is_archived=False).order_by("name")
    )
    return [
        BudChoice(pk, name, takes_all)
        for pk, name, takes_all in rows.values_list("pk", "name", "takes_all_tools")
    ]


def _read_buds(membership: Membership, after: AccessCursor | None, most: int) -> list[AccessItem]:
    from chat.services.access import read_buds

    return read_buds(membership, after, most)


def _put_into_buds(server: McpServer, bud_ids: Sequence[UUID], actor: Actor) -> None:
    from chat.services.buds import put_server_into_buds

    put_server_into_buds(server=server, bud_ids=bud_ids, actor=actor)


def _tell_of_input(row: InputRequest) -> None:
    from chat.services.inputs import tell_of_input

    tell_of_input(row)


async def _ask_model(task: SamplingTask) -> SamplingResult:
    # The providers are loaded with the first request, not with the first command.
    from chat.sampling import ask_model

    return await ask_model(task)
