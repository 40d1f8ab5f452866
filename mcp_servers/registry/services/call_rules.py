"""Making, changing, switching and removing call rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from mcp_servers.client.values import Effect
from mcp_servers.models import Approver, CallRule
from mcp_servers.models.rule_conditions import conditions_as_json, read_conditions
from workspaces.actors import Role
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import InvalidInput
from workspaces.holding import take_room
from workspaces.models import Workspace
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from uuid import UUID

    from workspaces.actors import Actor

MOST_RULES: Final = 200
MOST_NAMES: Final = 50
LONGEST_NAME: Final = 200
_FIELDS: Final = (
    *("name", "reason", "is_enabled", "servers", "tools", "roles"),
    *("conditions", "effect", "approver"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRuleDraft:
    """What a rule shall say."""

    name: str
    effect: str
    servers: Sequence[str]
    tools: Sequence[str]
    roles: Sequence[str] = ()
    """Empty: everybody."""
    conditions: Sequence[Any] = field(default_factory=list)
    """Conditions, or what is to be read as such."""
    approver: str = Approver.REQUESTER.value
    reason: str = ""
    is_enabled: bool = True


@transaction.atomic
def create_call_rule(*, workspace: Workspace, draft: CallRuleDraft, actor: Actor) -> CallRule:
    """Make a rule. It holds from the next call on.

    Raises:
        PermissionDenied: the actor may not manage servers.
        InvalidInput: with each faulty field.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
    message = _("A workspace has at most %(most)s call rules.") % {"most": MOST_RULES}
    take_room(
        CallRule.objects.for_workspace(workspace.pk),
        most=MOST_RULES,
        refusal=InvalidInput(fields={"name": [message]}),
        workspace_id=workspace.pk,
    )
    row = CallRule(workspace_id=workspace.pk, **checked_values(draft))
    _check(row)
    row.save(force_insert=True)
    record_created(row, actor=actor)
    return row


@transaction.atomic
def change_call_rule(*, rule: CallRule, draft: CallRuleDraft, actor: Actor) -> CallRule:
    """Have a rule say something else, from the next call on.

    Raises:
        PermissionDenied, InvalidInput: as above.
        NotFound: it is gone.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=rule.workspace_id)
    row = _locked(rule)
    with tracked_change(row, actor=actor):
        for name, value in checked_values(draft).items():
            setattr(row, name, value)
        _check(row)
        row.save(update_fields=[*_FIELDS, "updated_at"])
    return row


@transaction.atomic
def switch_call_rule(*, rule: CallRule, is_enabled: bool, actor: Actor) -> CallRule:
    """Switch a rule on or off.

    Raises:
        PermissionDenied: the actor may not manage servers.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=rule.workspace_id)
    row = _locked(rule)
    with tracked_change(row, actor=actor):
        row.is_enabled = is_enabled
        row.save(update_fields=["is_enabled", "updated_at"])
    return row


@transaction.atomic
def delete_call_rule(*, rule: CallRule, actor: Actor) -> None:
    """Remove a rule; the log keeps what it said.

    Raises:
        PermissionDenied: the actor may not manage servers.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=rule.workspace_id)
    row = _locked(rule)
    record_deleted(row, actor=actor)
    row.delete()


def follow_new_name(*, workspace_id: UUID, before: str, after: str, actor: Actor) -> None:
    """Have rules that name a server of the workspace name it by its new name, in the caller's transaction.

    What blocks or asks also keeps the old name: another server may have it.
    """
    rows = CallRule.objects.for_workspace(workspace_id).select_for_update(of=("self",))
    for row in rows.order_by("id"):
        names = [str(one) for one in row.servers] if isinstance(row.servers, list) else []
        if before not in names or after in names:
            continue
        is_strict = row.effect != Effect.AUTO
        with tracked_change(row, actor=actor):
            row.servers = [one for one in names if is_strict or one != before] + [after]
            row.save(update_fields=["servers", "updated_at"])


def draft_of(rule: CallRule) -> CallRuleDraft:
    """What a rule says now."""
    return CallRuleDraft(**{name: getattr(rule, name) for name in _FIELDS})


def checked_values(draft: CallRuleDraft) -> dict[str, Any]:
    """What is stored of a draft.

    Raises:
        InvalidInput: with each faulty field.
    """
    faults: dict[str, list[str]] = {}
    values: dict[str, Any] = {
        "name": draft.name.strip(),
        "reason": draft.reason.strip(),
        "is_enabled": draft.is_enabled,
        "effect": draft.effect,
        "approver": draft.approver or Approver.REQUESTER.value,
        "roles": list(draft.roles),
    }
    if not values["name"]:
        faults["name"] = [_("Give the rule a name.")]
    if draft.effect not in list(Effect):
        faults["effect"] = [_("Choose what the rule does.")]
    if values["approver"] not in Approver.values:
        faults["approver"] = [_("Choose who may allow the call.")]
    elif draft.effect != Effect.CONFIRM:
        values["approver"] = Approver.REQUESTER.value
    if any(role not in list(Role) for role in draft.roles):
        faults["roles"] = [_("Choose among owner, admin and member.")]
    for name in ("servers", "tools"):
        try:
            values[name] = _names(getattr(draft, name))
        except ValueError as fault:
            faults[name] = [str(fault)]
    try:
        given = [
            one.model_dump() if hasattr(one, "model_dump") else one for one in draft.conditions
        ]
        values["conditions"] = conditions_as_json(read_conditions(given))
    except InvalidInput as error:
        faults.update({name: list(texts) for name, texts in error.fields.items()})
    if faults:
        raise InvalidInput(fields=faults)
    return values


def _names(given: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(str(one).strip() for one in given if str(one).strip()))
    if not names:
        raise ValueError(_("Name at least one. * stands for all."))
    if len(names) > MOST_NAMES:
        raise ValueError(_("Name at most %(most)s.") % {"most": MOST_NAMES})
    if any(len(one) > LONGEST_NAME for one in names):
        raise ValueError(_("A name has at most %(most)s characters.") % {"most": LONGEST_NAME})
    return names


def _check(row: CallRule) -> None:
    try:
        row.clean_fields(exclude={"workspace", "servers", "tools", "roles", "conditions"})
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    others = CallRule.objects.for_workspace(row.workspace_id).exclude(pk=row.pk)
    if others.filter(name=row.name).exists():
        raise InvalidInput(fields={"name": [_("There is a rule of this name already.")]})


def _locked(rule: CallRule) -> CallRule:
    rows = CallRule.objects.for_workspace(rule.workspace_id).select_for_update(of=("self",))
    found: CallRule = rows.fetch(rule.pk)
    return found
