"""Tools of the platform's own, through the same gate: who may, with which arguments, and on record.

They reach no server and need no approval.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from django.utils.translation import gettext_noop as _

from audit.actions import Action, Outcome, RefusedBy
from audit.services import EntryDraft, record
from mcp_servers.client import schemas
from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.errors import InvalidArguments, InvalidJson
from mcp_servers.client.values import BuiltinRequest, ToolCallOutcome
from mcp_servers.gate.operation import Operation
from mcp_servers.gate.outcomes import since
from mcp_servers.gate.passing import pass_through
from mcp_servers.gate.recording import completed
from workspaces.database import in_database
from workspaces.errors import DomainError

logger = logging.getLogger(__name__)


async def call_builtin(
    request: BuiltinRequest,
    run: Callable[[], ToolCallOutcome],
    *,
    first: Callable[[], Awaitable[None]] | None = None,
) -> ToolCallOutcome:
    """Run a built-in tool once it is let through.

    Args:
        run: what the tool does; in a thread with the database. What it raises is an outcome. It may be run again
            after a crash, with the same call id.
        first: what it waits for outside of the database, before `run` and once it is let through. It raises nothing.

    Raises:
        PermissionDenied: the actor may not call tools here.
        CallRefused: the tools are not offered any more.
        InvalidArguments: they do not fit the schema.
        AuditUnavailable: it could not be recorded; then nothing was done, or nothing is given away.
    """
    call = BuiltinCall(request)
    call.begin(None)
    return await pass_through(call, partial(call.carry_out, run, first))


def refuse_builtin(request: BuiltinRequest, reason: str) -> NoReturn:
    """Record that a call cannot be made as it was asked for.

    Raises:
        InvalidArguments: always.
    """
    BuiltinCall(request).refuse(InvalidArguments(reason), RefusedBy.ARGUMENTS, "arguments.unfit")


def abandon_builtin(request: BuiltinRequest, *, outcome: Outcome, reason: str) -> None:
    """Record the end of a call that nobody runs any more; nothing, if it was never let through or has ended."""
    call = BuiltinCall(request)
    if not call.has_ended():
        record(call.draft(call.finished, outcome=outcome, details={"reason": reason}))


class BuiltinCall(Operation[ToolCallOutcome]):
    """One call of a built-in tool."""

    outcome_type = ToolCallOutcome
    may_run_twice = True
    request: BuiltinRequest

    def __init__(self, request: BuiltinRequest) -> None:
        super().__init__(request, request.name, request.arguments)

    def admit(self) -> None:
        request = self.request
        self.check_actor()
        if not request.is_enabled:
            reason = _("This assistant is not offered this tool.")
            self.refuse_because(RefusedBy.DISABLED, "builtin.not_offered", reason)
        try:
            canonical_json(dict(request.arguments))
            schemas.check_arguments(dict(request.input_schema), dict(request.arguments))
        except InvalidJson as fault:
            unreadable = InvalidArguments(
                _("The arguments cannot be used: %(message)s.") % {"message": fault.message}
            )
            self.refuse(unreadable, RefusedBy.ARGUMENTS, "arguments.not_json")
        except InvalidArguments as fault:
            self.refuse(fault, RefusedBy.ARGUMENTS, "arguments.schema")

    async def carry_out(
        self, run: Callable[[], ToolCallOutcome], first: Callable[[], Awaitable[None]] | None
    ) -> ToolCallOutcome:
        """Run it to its end, even if the caller leaves meanwhile."""
        if first is not None:
            await first()
        outcome, self.was_cancelled = await completed(in_database(_run, run))
        return outcome

    def draft(self, action: Action, **more: Any) -> EntryDraft:
        return super().draft(action, **{"rule": "builtin", **more})


def _run(run: Callable[[], ToolCallOutcome]) -> ToolCallOutcome:
    started = time.monotonic()
    try:
        outcome = run()
    except DomainError as error:
        outcome = ToolCallOutcome(outcome=Outcome.TOOL_ERROR, message=error.message)
    except Exception:
        logger.exception("a built-in tool failed in an unforeseen way")
        outcome = ToolCallOutcome(
            outcome=Outcome.TOOL_ERROR,
            message=_("It failed for a reason that is in the platform's log."),
        )
    return replace(outcome, duration_ms=since(started))
