"""One operation on its way through the gate: what is asked, what is known of it so far, and what the log says of it.

The kinds (a tool call, a resource, a prompt, a built-in tool) differ in what they hold and what they check. The road is
one for all of them: `passing.pass_through`.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NoReturn, TypeVar

from django.conf import settings
from django.db import DatabaseError
from django.utils.translation import gettext_noop as _

from audit.actions import Action, RefusedBy
from audit.errors import AuditUnavailable
from audit.services import EntryDraft, Ref, is_call_open, record, was_recorded
from audit.services import prepare as prepare_entry
from mcp_servers.client.canonical import as_sent, canonical_json
from mcp_servers.client.connections import calls
from mcp_servers.client.errors import CallRefused, CallTakenOver
from mcp_servers.client.inputs import CallLimits, CallListener, InputAnswers
from mcp_servers.client.values import GateOutcome, GateRequest, Outcome
from mcp_servers.gate.caller import CallerOnItsLoop, SilentCaller, Standing
from mcp_servers.gate.resolving import may_still_enter
from mcp_servers.gate.slots import HeldSlot
from mcp_servers.registry import elicitation
from workspaces.errors import DomainError, PermissionDenied
from workspaces.process.failpoints import Failpoint, failpoint
from workspaces.redaction import redact_known
from workspaces.roles import Permission, has_permission, require
from workspaces.words.waiting_times import duration_in_words

if TYPE_CHECKING:
    from mcp_servers.client.spec import ConnectionSpec
    from mcp_servers.gate.caller import Caller
    from mcp_servers.gate.checkpoints import Checkpoint
    from mcp_servers.gate.dialogue import Dialogue
    from mcp_servers.gate.recording import CommitClock
    from mcp_servers.models import McpServer

logger = logging.getLogger(__name__)

Out = TypeVar("Out", bound=GateOutcome)

SENT_AGAIN_AFTER: Final = "sent_again_after"
"""In the details of a *requested* that is not its operation's first: what the sending comes after."""
_PROGRESS_FACTOR: Final = 10
"""By how much progress may extend a call at most, where nothing is set."""


class NotYet(Exception):
    """It cannot be let through as things stand, but `make_way` may change that."""


class UsedUp(Exception):
    """What the operation needs was used by another one meanwhile."""

    def __init__(self, layer: RefusedBy, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.layer, self.rule, self.reason = layer, rule, reason


class Operation(ABC, Generic[Out]):
    """What is asked of the gate, once."""

    requested: ClassVar = Action.TOOL_CALL_REQUESTED
    finished: ClassVar = Action.TOOL_CALL_FINISHED
    refused: ClassVar = Action.TOOL_CALL_REFUSED
    outcome_type: type[Out]
    word: ClassVar = "call"
    """What people call it."""
    may_run_twice: ClassVar = False
    """It is run again after a crash, so that its entries may be there already."""

    def __init__(self, request: GateRequest, name: str, values: Mapping[str, Any]) -> None:
        self.request = request
        self.name = name
        """What the log calls it."""
        self.slot: HeldSlot | None = None
        self.queue_ms = 0
        self.is_committed = False
        """*requested* is written."""
        self.has_checkpoint = False
        """What the caller keeps is where the operation stands: nothing has been done since."""
        self.was_cancelled = False
        """The caller left while it could not be interrupted."""
        self.is_stopped = False
        """The caller has left before it ended, and is told no outcome."""
        self._values = values
        self._canonical: bytes | None = None

    def begin(self, caller: Caller | None) -> None:
        """On the caller's loop."""
        self.caller = CallerOnItsLoop(caller or SilentCaller())

    # Admission, in a thread with the database

    @abstractmethod
    def admit(self) -> None:
        """Resolve, decide, check: everything that needs no network. Records and raises what it refuses."""

    async def make_way(self, obstacle: Exception, *, is_again: bool) -> None:
        """Do what lets an admission be tried again that has failed for now, or raise.

        Args:
            is_again: the same stood in the way before.
        """
        if is_again:
            raise obstacle
        await self.caller.make_sure()  # held up, but perhaps nobody else has it

    def find_known(self) -> Out | None:
        """The outcome, if it is known without doing anything."""
        return None

    def commit_requested(self, clock: CommitClock, *, is_sent: bool = True) -> None:
        """Use up what can be used once, and write *requested* and the caller's side of it: all or nothing.

        Args:
            is_sent: False where the outcome is known: nothing is sent, and nothing is counted.

        Raises:
            CallTakenOver: this process may have lost the operation meanwhile; nothing is written or sent.
            CallRefused: what it needs is used up.
            AuditUnavailable: it could not be committed, or not in time.
        """
        failpoint(Failpoint.GATE_BEFORE_REQUESTED)
        if self.standing() is not Standing.OURS:
            raise CallTakenOver
        try:
            if not self.may_run_twice or not self._is_recorded(self.requested):
                entry = prepare_entry(self.draft_requested())
                clock.begin()
                with self.caller.letting_through():
                    self.use_up(is_sent=is_sent)
                    failpoint(Failpoint.GATE_APPROVAL_USED)
                    record(entry)
                    clock.check()
        except UsedUp as error:
            self.refuse_because(error.layer, error.rule, error.reason)
        except DatabaseError as error:
            raise AuditUnavailable(details={"action": self.requested.value}) from error
        self.is_committed = True
        failpoint(Failpoint.GATE_AFTER_REQUESTED)

    def use_up(self, *, is_sent: bool) -> None:
        """In the transaction that writes *requested*.

        Raises:
            UsedUp: there is nothing left to use.
        """

    async def take_slot(self) -> None:
        """Wait for a free slot of the server. Raises Busy."""
        if self.slot is not None:
            await self.slot.take()

    def give_slot_back(self) -> None:
        """Let another operation have it; harmless without one."""
        if self.slot is not None:
            self.slot.give_back()

    def standing(self) -> Standing:
        """Whether it is still the caller's."""
        return Standing.OURS

    # Its end

    def ended(
        self, outcome: Outcome, message: str, details: Mapping[str, Any] | None = None
    ) -> Out:
        """An outcome that brings nothing."""
        message = str(redact_known(message, workspace_id=self.request.workspace_id))
        return self.outcome_type(outcome=outcome, message=message, details=details or {})

    def write_end(self, outcome: Out, *, is_again: bool, only_if_open: bool) -> bool:
        """Write *finished*, unless it stands already or whoever has the operation now writes it; whether it was written."""
        failpoint(Failpoint.GATE_BEFORE_FINISHED)
        state = self.standing()
        must_look = is_again or only_if_open or self.may_run_twice or state is Standing.UNSURE
        if state is Standing.LOST or (must_look and self.has_ended()):
            return False
        self.write_finished(outcome)
        failpoint(Failpoint.GATE_AFTER_FINISHED)
        return True

    def has_ended(self) -> bool:
        """Whether the log has its end."""
        return not is_call_open(self.request.workspace_id, self.request.call_id)

    def write_finished(self, outcome: Out) -> None:
        """Write *finished*, with the caller's side of it if the caller takes the outcome."""
        entry = prepare_entry(self.draft_finished(outcome))
        if not self.is_stopped:
            try:
                with self.caller.ending(outcome):
                    record(entry)
            except (AuditUnavailable, DatabaseError):
                raise
            except Exception:
                # What the caller cannot store must not keep the end out of the log.
                logger.info("call_end_stored_apart", exc_info=True)
                if self.has_ended():
                    return
            else:
                return
        record(entry)

    @property
    def has_asked(self) -> bool:
        """Somebody was asked something in the course of it."""
        return False

    async def withdraw(self) -> None:
        """It is over: nobody has to answer any more."""

    # What the log says

    @property
    def arguments(self) -> bytes:
        """In canonical form; as they came, as long as they are not known to have one."""
        return as_sent(dict(self._values)) if self._canonical is None else self._canonical

    def canonicalize(self) -> None:
        """Put the arguments into the form that is sent and recorded. Raises InvalidJson."""
        self._canonical = canonical_json(dict(self._values))

    def draft(self, action: Action, **more: Any) -> EntryDraft:
        """An entry with all that is known by now."""
        request = self.request
        known: dict[str, Any] = {
            "action": action,
            "actor": request.actor,
            "workspace_id": request.workspace_id,
            "call_id": request.call_id,
            "bud": request.bud,
            "conversation_id": request.conversation_id,
            "turn_id": request.turn_id,
            "model": request.model or "",
            "tool": Ref(id=None, name=self.name[:256]),
            "arguments": self.arguments,
        }
        return EntryDraft(**known | more)

    def draft_requested(self, **more: Any) -> EntryDraft:
        return self.draft(self.requested, **more)

    def draft_finished(self, outcome: Out) -> EntryDraft:
        return self.draft(self.finished, **self.known_of_end(outcome))

    def known_of_end(self, outcome: Out) -> dict[str, Any]:
        """What the end adds to what was known."""
        return {
            "outcome": outcome.outcome,
            "result": canonical_json(self.body_of(outcome)),
            "duration_ms": outcome.duration_ms,
            "details": {**outcome.details, **({"truncated": True} if outcome.truncated else {})},
        }

    def draft_unrecorded(self) -> EntryDraft:
        """What is kept of an operation that was refused because the log could not be written."""
        reason = AuditUnavailable.default_message
        return self._draft_refused(RefusedBy.AUDIT, "audit.unavailable", reason)

    def body_of(self, outcome: Out) -> dict[str, Any]:
        """What came back, for the log."""
        return {"content": outcome.content_as_json(), "message": outcome.message}

    def refuse(self, error: DomainError, layer: RefusedBy, rule: str) -> NoReturn:
        """Write *refused* and raise the error. Nothing was or will be sent."""
        record(self._draft_refused(layer, rule, error.message))
        raise error

    def refuse_because(self, layer: RefusedBy, rule: str, reason: str) -> NoReturn:
        """As refuse(), with a sentence."""
        self.refuse(CallRefused(reason, rule=rule, refused_by=layer), layer, rule)

    def _draft_refused(self, layer: RefusedBy, rule: str, reason: str) -> EntryDraft:
        return self.draft(self.refused, refused_by=layer, rule=rule, details={"reason": reason})

    def _is_recorded(self, action: Action) -> bool:
        return was_recorded(self.request.workspace_id, self.request.call_id, action)

    def check_actor(self, *, may_enter: bool | None = None) -> None:
        """Refuse an actor who may not use servers here; their word was taken some time ago, membership is asked now.

        Args:
            may_enter: what was found when that was asked, if it was.
        """
        actor, workspace_id = self.request.actor, self.request.workspace_id
        try:
            if workspace_id is None:
                raise PermissionDenied(_("A tool call needs a workspace."))
            if not has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id):
                require(actor, Permission.USE_CHAT, workspace_id=workspace_id)
            if may_enter is None and actor.user_id is not None:
                may_enter = may_still_enter(actor.user_id, workspace_id)
            if may_enter is False:
                raise PermissionDenied(_("You are no longer a member of this workspace."))
        except PermissionDenied as error:
            self.refuse(error, RefusedBy.PERMISSION, "actor.forbidden")


class ServerOperation(Operation[Out]):
    """One that reaches a server: with a connection, a slot, and a dialogue while it runs."""

    who: ClassVar = _("The server")
    """Who does not answer."""
    unforeseen: ClassVar = Outcome.TRANSPORT_ERROR
    """What a fault that we did not foresee means."""
    can_wait_elsewhere = False
    """The caller can be put aside while a person is asked, and come back with the checkpoint."""

    spec: ConnectionSpec
    """What it takes to connect, with the account that there is now."""
    limits: CallLimits
    dialogue: Dialogue | None = None

    def __init__(self, request: GateRequest, name: str, values: Mapping[str, Any]) -> None:
        super().__init__(request, name, values)
        self.found: McpServer | None = None
        self.can_ask = False
        """A person can be asked."""
        self.is_under_way = False
        """The server works on it."""
        self.was_sent = False

    @property
    def server(self) -> McpServer:
        """Of an operation that was let through."""
        assert self.found is not None
        return self.found

    @property
    def origin(self) -> elicitation.QuestionOrigin:
        """Where a question of the server comes from."""
        request = self.request
        return elicitation.QuestionOrigin(
            call_id=request.call_id,
            server=self.server,
            tool_name=self.name[:256],
            actor=request.actor,
            conversation_id=request.conversation_id,
            turn_id=request.turn_id,
        )

    @property
    @abstractmethod
    def may_repeat(self) -> bool:
        """Doing it twice does no more than doing it once."""

    def connect(self, spec: Callable[[], ConnectionSpec], seconds: float | None = None) -> None:
        """Find out what it takes to reach the server."""
        try:
            self.spec = spec()
        except DomainError as error:
            # A row that was sound when saved: a key is gone, or the catalogue changed under it.
            self.refuse_because(RefusedBy.POLICY, "server.misconfigured", error.message)
        self.limits = limits_of(self.server, seconds)
        if self.slot is None:
            self.slot = HeldSlot(self.spec, self.server, self.request.actor)

    def check_breaker(self) -> None:
        """Refuse as long as the server is left alone after failures."""
        # Without an account nothing is sent, whatever the server did a moment ago.
        wait = 0.0 if self.spec.needs_sign_in else calls.wait_seconds(self.spec)
        if wait > 0:
            reason = why_left_alone(self.server, wait)
            self.refuse_because(RefusedBy.BREAKER, "server.backing_off", reason)

    @abstractmethod
    def renew(self) -> ConnectionSpec:
        """What it takes to connect, as today's rows say. Raises DomainError if it may no longer be done."""

    @abstractmethod
    async def send(
        self, spec: ConnectionSpec, answers: InputAnswers | None, listener: CallListener
    ) -> Any:
        """Send it, once."""

    @abstractmethod
    async def read(self, result: Any) -> Out:
        """What the server's result says."""

    async def keep(self, checkpoint: Checkpoint | None) -> None:
        """From here it goes on after a crash; None: the server may act, so a crash must not lead back."""
        await self.caller.checkpointed(checkpoint.as_text() if checkpoint is not None else "")
        self.has_checkpoint = checkpoint is not None

    @property
    def has_asked(self) -> bool:
        return self.dialogue is not None and self.dialogue.has_asked

    async def withdraw(self) -> None:
        if self.dialogue is not None:
            await self.dialogue.withdraw()

    def write_resumed(self, kind: str) -> None:
        """It goes on from a checkpoint of this kind, on record."""

    def write_requested_again(self, after: str) -> None:
        """Another sending, on record."""
        record(self.draft_requested(details={SENT_AGAIN_AFTER: after}))

    def draft(self, action: Action, **more: Any) -> EntryDraft:
        server = self.found
        if server is None:
            return super().draft(action, **more)
        known = {
            "server": Ref(id=server.pk, name=server.name),
            "transport": server.known_transport,
            "protocol_revision": server.state.protocol_revision,
        }
        return super().draft(action, **known | more)

    def known_of_end(self, outcome: Out) -> dict[str, Any]:
        known = super().known_of_end(outcome)
        reached = calls.transport_of(self.spec)
        return {**known, "transport": reached} if reached else known


def why_left_alone(server: McpServer, wait_seconds: float) -> str:
    """Why a server that failed is not called now, in plain words."""
    if math.isinf(wait_seconds):
        return _(
            "%(name)s could not be reached several times. It is tried again by the next check or by hand."
        ) % {"name": server.name}
    # It stays in the chat and in the log: a time to come would be wrong there.
    return _("%(name)s had just failed, so Trellis left it alone for %(wait)s.") % {
        "name": server.name,
        "wait": duration_in_words(math.ceil(wait_seconds)),
    }


def limits_of(server: McpServer, seconds: float | None = None) -> CallLimits:
    """How long a request to this server may take.

    Args:
        seconds: the caller's own limit.
    """
    config = server.config
    usual = seconds or config.call_seconds or settings.TRELLIS.tool_timeout_seconds
    hard = config.hard_call_seconds or usual * _PROGRESS_FACTOR
    return CallLimits(seconds=usual, hard_seconds=max(usual, hard))
