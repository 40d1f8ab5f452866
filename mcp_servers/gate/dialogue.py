"""What a server asks while it works on one call: answered by what is configured, by a person, or by a model.

A question comes in one of two ways. Over an open connection the server waits, and so does `answer()`. In the newest
revision the call ends with its questions, and `answer_round()` either waits in place, or leaves a checkpoint from
which the call goes on in whatever process, after whatever restart, once they are answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from audit.actions import Action
from audit.errors import AuditUnavailable
from audit.services import EntryDraft, Ref, record
from mcp_servers.client.canonical import JsonValue
from mcp_servers.client.errors import InputMissing
from mcp_servers.client.inputs import (
    AskedInput,
    InputAction,
    InputAnswer,
    InputAnswers,
    InputKind,
    InputRequired,
)
from mcp_servers.client.self_description import clean_question, names_a_secret
from mcp_servers.gate.checkpoints import InputCheckpoint, OpenQuestion
from mcp_servers.models import InputRequest, InputStatus, SamplingPolicy
from mcp_servers.registry import elicitation, sampling
from mcp_servers.registry.elicitation.checks import InvalidInputRequest
from workspaces.database import in_database
from workspaces.errors import DomainError
from workspaces.redaction import cut_known

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.client.spec import ConnectionSpec
    from mcp_servers.client.values import Progress
    from mcp_servers.gate.caller import CallerOnItsLoop

logger = logging.getLogger(__name__)

MOST_ROUNDS: Final = 10
_LONGEST_PROGRESS: Final = 4_000

_CANCELLED: Final = InputAnswer(action=InputAction.CANCEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Put:
    """A question, and its answer or the row that waits for one."""

    asked: AskedInput
    answer: InputAnswer | None = None
    row: InputRequest | None = None


class Dialogue:
    """All that a server asks during one call; the listener of its connection."""

    def __init__(
        self,
        origin: elicitation.QuestionOrigin,
        *,
        spec: ConnectionSpec,
        caller: CallerOnItsLoop,
        can_ask: bool,
        bud: Ref | None = None,
    ) -> None:
        self._origin = origin
        self._spec = spec
        self._caller = caller
        self._can_ask = can_ask
        self._bud = bud
        self._can_put_aside = False
        """Whoever called can put a form to the person, once the call has ended with its questions."""
        self._waiting = 0
        self._began = timezone.now()
        self._reused: set[UUID] = set()
        self.has_asked = False
        """What the call brings may rest on somebody's answers, or on there being none."""
        self.had_nobody_to_ask = False
        """A person was to be asked, and whoever called cannot put that to anybody."""

    def progressed(self, progress: Progress) -> None:
        """Pass the server's progress on to whoever called, without secrets."""
        workspace_id = self._spec.workspace_id
        masked = cut_known(progress.message or "", _LONGEST_PROGRESS, workspace_id=workspace_id)
        self._caller.progressed(replace(progress, message=masked or None))

    async def answer(self, asked: AskedInput) -> InputAnswer:
        """Answer one question over an open connection; waits for a person if need be, and never raises."""
        try:
            put = await self._put(asked)
            return put.answer or await self._wait(put)
        except Exception:
            # Raising here would fail the call in odd ways; the server hears that there is no answer.
            logger.exception("a server's question could not be answered")
            return _CANCELLED

    async def answer_round(
        self, required: InputRequired, *, rounds: int, can_wait_elsewhere: bool
    ) -> InputAnswers:
        """Answer all that a call ended with, so that it can be made again.

        Raises:
            InputMissing: a person has to answer first; the checkpoint is kept.
        """
        self._can_put_aside = can_wait_elsewhere
        putting = [await self._put(asked) for asked in required.asked]
        if can_wait_elsewhere and any(put.answer is None and _is_open(put) for put in putting):
            checkpoint = InputCheckpoint(
                state=required.state,
                rounds=rounds,
                questions=[OpenQuestion.of(put.asked, put.answer, put.row) for put in putting],
            )
            await self._caller.checkpointed(checkpoint.as_text())
            raise InputMissing
        answers = await asyncio.gather(*(self._answer_of(put) for put in putting))
        return InputAnswers(
            by_key={
                put.asked.key: (put.asked, answer)
                for put, answer in zip(putting, answers, strict=True)
            },
            state=required.state,
        )

    async def resume(self, checkpoint: InputCheckpoint) -> InputAnswers:
        """The answers to what a checkpoint left open.

        Raises:
            InputMissing: some are still missing.
        """
        self.has_asked = True
        rows = await in_database(self._rows_of, checkpoint)
        putting = []
        for question in checkpoint.questions:
            row = rows.get(question.row_id) if question.row_id else None
            if row is not None and row.status == InputStatus.PENDING:
                raise InputMissing
            putting.append(_Put(asked=question.as_asked(), answer=question.as_answer(), row=row))
        answers = await asyncio.gather(*(self._answer_of(put) for put in putting))
        return InputAnswers(
            by_key={
                put.asked.key: (put.asked, answer)
                for put, answer in zip(putting, answers, strict=True)
            },
            state=checkpoint.state,
        )

    async def withdraw(self) -> None:
        """The call is over: nobody has to answer any more."""
        if self.has_asked:
            await in_database(
                partial(
                    elicitation.withdraw_inputs,
                    call_id=self._origin.call_id,
                    workspace_id=self._origin.server.workspace_id,
                    actor=self._origin.actor,
                )
            )

    async def ask_person(self, asked: AskedInput) -> InputAnswer:
        """Put a question of ours on the server's behalf, and wait for the answer."""
        put = await self._put(asked)
        return put.answer or await self._wait(put)

    async def ask_to_sign_in(
        self, open_row: Callable[[], InputRequest | None]
    ) -> InputRequest | None:
        """Put our own question for a sign-in; taken back with the others when the call ends. Raises as `open_row`."""
        self.has_asked = True
        return await in_database(open_row)

    async def wait_for_sign_in(self, row: InputRequest) -> InputRequest:
        """The row of that question, once it is settled."""
        return await self._wait_for_person(row)

    async def _put(self, asked: AskedInput) -> _Put:
        """Answer at once what needs nobody, refuse what may not be asked, and open a row for the rest."""
        if asked.kind is InputKind.ROOTS:
            roots: list[JsonValue] = [{"uri": uri, "name": name} for uri, name in self._spec.roots]
            return _Put(
                asked=asked, answer=InputAnswer(action=InputAction.ACCEPT, content={"roots": roots})
            )
        workspace_id = self._spec.workspace_id
        asked = await asyncio.to_thread(clean_question, asked, workspace_id)
        try:
            if names_a_secret(asked.url, workspace_id):
                raise InvalidInputRequest(_("its link holds a secret of this workspace."))
            if asked.kind is InputKind.SAMPLING:
                return await self._put_sampling(asked)
            return _Put(asked=asked, row=await self._open(asked))
        except (InvalidInputRequest, sampling.SamplingRefused) as error:
            reason = str(error)
            await in_database(elicitation.turn_away, asked, self._origin, reason)
            return _Put(asked=asked, answer=InputAnswer(action=InputAction.CANCEL, reason=reason))

    async def _open(self, asked: AskedInput) -> InputRequest:
        if not self._can_ask and not (self._can_put_aside and asked.kind is InputKind.FORM):
            self.has_asked = self.had_nobody_to_ask = True
            raise InvalidInputRequest(_("nobody is there to be asked."))
        self.has_asked = True
        row = await in_database(
            partial(
                elicitation.open_input,
                asked,
                self._origin,
                answered_before=self._began,
                used=tuple(self._reused),
            )
        )
        self._reused.add(row.pk)
        return row

    async def _put_sampling(self, asked: AskedInput) -> _Put:
        server = self._origin.server
        if server.sampling == SamplingPolicy.OFF:
            raise sampling.SamplingRefused("This server may not ask the model.")
        sampling.read_task(asked.params, server=server, bud=self._bud)
        if await in_database(sampling.budget_left, server) <= 0:
            raise sampling.SamplingRefused("The budget for today is used up.")
        self.has_asked = True
        if server.sampling == SamplingPolicy.AUTO and not sampling.names_other_context(
            asked.params
        ):
            row = await in_database(
                partial(elicitation.open_input, asked, self._origin, is_settled=True)
            )
            return _Put(asked=asked, answer=await self._sample(asked, row))
        return _Put(asked=asked, row=await self._open(asked))

    async def _answer_of(self, put: _Put) -> InputAnswer:
        return put.answer or await self._wait(put)

    async def _wait(self, put: _Put) -> InputAnswer:
        row = put.row
        if row is None:
            return _CANCELLED
        if row.status == InputStatus.PENDING:
            row = await self._wait_for_person(row)
        answer = elicitation.answer_of(row)
        if put.asked.kind is InputKind.SAMPLING and answer.action is InputAction.ACCEPT:
            return await self._sample(put.asked, row)
        return answer

    async def _wait_for_person(self, row: InputRequest) -> InputRequest:
        self._waiting += 1
        try:
            await self._caller.waiting(True)
            return await elicitation.wait_for_answer(row)
        finally:
            self._waiting -= 1
            if self._waiting == 0:
                await self._caller.waiting(False)

    async def _sample(self, asked: AskedInput, row: InputRequest) -> InputAnswer:
        """Have the model write what was allowed; what it cost is recorded before the server reads it."""
        origin = self._origin
        task = replace(
            sampling.read_task(asked.params, server=origin.server, bud=self._bud),
            actor=origin.actor,
            conversation_id=origin.conversation_id,
            turn_id=origin.turn_id,
        )
        try:
            async with asyncio.timeout(sampling.SECONDS):
                result = await sampling.model()(task)
        except (TimeoutError, DomainError, sampling.SamplingRefused):
            logger.info("sampling_failed", exc_info=True)
            await in_database(self._note_sampling, row, None)
            return InputAnswer(action=InputAction.CANCEL, reason="The model did not answer.")
        try:
            await in_database(self._note_sampling, row, result)
        except AuditUnavailable:
            return InputAnswer(action=InputAction.CANCEL, reason="The model did not answer.")
        return InputAnswer(action=InputAction.ACCEPT, content=result.as_wire())

    def _note_sampling(self, row: InputRequest, result: sampling.SamplingResult | None) -> None:
        origin = self._origin
        with transaction.atomic():
            rows = InputRequest.objects.for_workspace(row.workspace_id).filter(pk=row.pk)
            rows.update(tokens_used=F("tokens_used") + (result.tokens if result else 0))
            record(
                EntryDraft(
                    action=Action.SAMPLING_FINISHED,
                    actor=origin.actor,
                    workspace_id=row.workspace_id,
                    call_id=origin.call_id,
                    bud=self._bud,
                    conversation_id=origin.conversation_id,
                    turn_id=origin.turn_id,
                    model=result.model if result else "",
                    server=Ref(id=origin.server.pk, name=origin.server.name),
                    tool=Ref(id=None, name=origin.tool_name),
                    details={
                        "answered": result is not None,
                        "tokens": result.tokens if result else 0,
                    },
                )
            )

    def _rows_of(self, checkpoint: InputCheckpoint) -> dict[str, InputRequest]:
        wanted = [question.row_id for question in checkpoint.questions if question.row_id]
        rows = InputRequest.objects.for_workspace(self._origin.server.workspace_id)
        return {
            str(row.pk): row for row in rows.filter(pk__in=wanted, call_id=self._origin.call_id)
        }


def _is_open(put: _Put) -> bool:
    return put.row is not None and put.row.status == InputStatus.PENDING
