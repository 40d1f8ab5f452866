"""Keeping a call of the log as a check of its bud."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit import reports
from audit.actions import Action
from audit.models import AuditEntry
from audit.reports.providers import CallAction
from audit.services import EntryDraft, record
from chat.check_shapes import LONGEST_RECORDING
from chat.models import Bud, BudCheck, ToolCall
from chat.services.buds import may_edit, require_edit
from chat.services.check_collecting import is_kept_back
from chat.services.checks import add_check
from chat.values import ToolCallStatus
from workspaces.actors import Actor
from workspaces.database.prepared import PreparedRows
from workspaces.errors import Conflict, NotFound, PermissionDenied
from workspaces.models import User

_GONE: Final = gettext_lazy(
    "The chat of this call was deleted, so its question is no longer known."
)
_NOT_YOURS: Final = gettext_lazy("Only people who may read what a call sent can keep it as a test.")
_LONGEST_QUESTION: Final = 4_000


def actions_on(entry: AuditEntry, user: User, actor: Actor) -> list[CallAction]:
    """Offer to keep a call as a check, to those who may; for the call's page."""
    if entry.call_id is None or entry.workspace_id is None:
        return []
    workspace_id = entry.workspace_id
    if not reports.may_see_bodies(entry, actor=actor):
        return []
    row = _CALL.first(workspace_id, entry.call_id)
    if row is None:
        return []
    bud = _bud_of(row)
    is_seen = Bud.objects.for_workspace(workspace_id).visible_to(user).find(bud.pk) is not None
    if not (is_seen and may_edit(bud, actor)):
        return []
    slug = bud.workspace.slug
    return [
        CallAction(
            label=_("Keep as a test"),
            help=_(
                "Makes a check of %(bud)s with the question, this call and, if the tool may change data, what it gave. Everybody who may edit the bud reads it."
            )
            % {"bud": bud.name},
            url=reverse("chat:bud_keep_call", args=[slug, entry.call_id]),
        )
    ]


@transaction.atomic
def keep_call(*, workspace_id: UUID, call_id: UUID, actor: Actor) -> BudCheck:
    """Make a check out of a call: the question of its turn, the tool with its arguments, and what a writing tool gave.

    Raises:
        PermissionDenied: the actor may not see the log, read what this call sent, or edit the bud.
        NotFound: there is no such call here, or its bud is somebody else's.
        Conflict: its chat is gone.
        InvalidInput: the bud has too many checks.
    """
    found = reports.call_of(workspace_id, call_id, actor=actor, now=timezone.now())
    if not reports.may_see_bodies(found.about, actor=actor):
        raise PermissionDenied(_NOT_YOURS)
    row = _CALL.first(workspace_id, call_id)
    if row is None:
        raise Conflict(_GONE)
    bud = _bud_of(row)
    if Bud.objects.for_workspace(workspace_id).usable_by(actor.user_id).find(bud.pk) is None:
        raise NotFound(_("Call not found."))
    require_edit(bud, actor)
    if row.turn.asked_by_id != actor.user_id:
        record(
            EntryDraft(
                action=Action.BODY_OPENED,
                actor=actor,
                workspace_id=workspace_id,
                details={"call": str(call_id), "check_of": str(bud.pk)},
            )
        )
    return add_check(bud=bud, values=_values_of(row), actor=actor)


def _kept_call(workspace_id: UUID, call_id: UUID) -> Any:
    rows = ToolCall.objects.for_workspace(workspace_id).filter(
        pk=call_id,
        turn__conversation__deleted_at=None,
        turn__conversation__bud__is_sandboxed=False,
    )
    return rows.select_related(
        "turn__user_message",
        "turn__conversation__bud__draft_of__workspace",
        "turn__conversation__bud__workspace",
    )


_CALL = PreparedRows[ToolCall](_kept_call, UUID, UUID)


def _bud_of(row: ToolCall) -> Bud:
    bud = row.turn.conversation.bud
    return bud.draft_of or bud


def _values_of(row: ToolCall) -> dict[str, Any]:
    tool = f"{row.server_name}.{row.tool_name}" if row.server_name else row.tool_name or row.builtin
    values: dict[str, Any] = {
        "question": row.turn.user_message.text[:_LONGEST_QUESTION],
        "calls": [{"tool": tool, "arguments": row.arguments}],
    }
    has_result = row.status in (ToolCallStatus.SUCCEEDED.value, ToolCallStatus.FAILED.value)
    if has_result and row.tool_id is not None and is_kept_back(row):
        values["recordings"] = [
            {
                "tool": tool,
                "result": row.model_text[:LONGEST_RECORDING],
                "is_error": row.status == ToolCallStatus.FAILED.value,
            }
        ]
    return values
