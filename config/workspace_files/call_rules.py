"""What a workspace's file says of its call rules."""

from __future__ import annotations

from django.utils.translation import gettext as _

from config.workspace_files.shapes import CallRuleFile
from config.workspace_files.target import WorkspaceTarget, faults_at
from mcp_servers.models import CallRule
from mcp_servers.registry.services.call_rules import (
    CallRuleDraft,
    change_call_rule,
    create_call_rule,
)


def call_rule_files(target: WorkspaceTarget) -> list[CallRuleFile]:
    """The rules, by name."""
    rows = CallRule.objects.for_workspace(target.pk).order_by("name")
    return [
        CallRuleFile.model_validate(
            {name: getattr(row, name) for name in CallRuleFile.model_fields}
        )
        for row in rows
    ]


def put_call_rule(target: WorkspaceTarget, wanted: CallRuleFile) -> None:
    """Make a rule as the file says. A file switches none on: a new one is off until somebody has looked at it.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    row = CallRule.objects.for_workspace(target.pk).filter(name=wanted.name).first()
    values = wanted.model_dump(mode="json")
    with faults_at(f"call_rules.{wanted.name}"):
        if row is not None:
            values["is_enabled"] = row.is_enabled and wanted.is_enabled
            change_call_rule(rule=row, draft=CallRuleDraft(**values), actor=target.actor)
            return
        values["is_enabled"] = False
        create_call_rule(
            workspace=target.workspace, draft=CallRuleDraft(**values), actor=target.actor
        )
    if wanted.is_enabled:
        target.notes.append(
            _("The call rule “%(name)s” is off. Look at it, and switch it on.")
            % {"name": wanted.name}
        )
