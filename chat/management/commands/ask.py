"""manage.py ask: one turn from the terminal, each event as one JSON line, or its answer alone.

Why it did not work stands in standard error. Whoever stops the command, or stops reading it, stops the turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from uuid_utils.compat import uuid7

from chat.engine import runner
from chat.live.hub import hub
from chat.models import Bud, Conversation, ToolCall, Turn
from chat.services.approvals import decide
from chat.services.conversations import create_conversation
from chat.services.inputs import answer_input
from chat.services.turns import send_message, stop_turn
from chat.snapshots import read_snapshot
from chat.tools.accounts import sign_in_json
from chat.values import Decision, ToolCallStatus, TurnStatus
from mcp_servers.client.connections import runtime
from mcp_servers.client.inputs import InputAction, InputKind
from mcp_servers.models import InputRequest, InputStatus
from workspaces.actors import Actor
from workspaces.command_arguments import add_who, bad_arguments, find_person, find_workspace
from workspaces.database import in_database, leave_database
from workspaces.errors import DomainError, InvalidInput

_ENDED = {
    TurnStatus.COMPLETED.value,
    TurnStatus.FAILED.value,
    TurnStatus.CANCELLED.value,
    TurnStatus.INTERRUPTED.value,
}
_LOOK_SECONDS = 0.5
_STOP_SECONDS = 5.0
"""How long a turn that is stopped may take to end."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a supervisor, and a terminal that is closed."""
_UNREAD = (errno.EPIPE, errno.EIO)
"""What writing fails with once the reader of a pipe has left, or the terminal."""


class Command(BaseCommand):
    help = (
        "Ask a bud one question; prints every event of the turn as a JSON line. The last line has the answer. "
        "Exit status: 0 the turn completed, 1 it failed or was stopped, 2 the arguments are wrong, "
        "129, 130 or 143 a signal stopped it."
    )
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("question", help="what to ask; - reads it from standard input")
        add_who(parser)
        parser.add_argument("--bud", required=True, help="the bud's slug")
        parser.add_argument(
            "--timeout",
            type=float,
            default=600.0,
            help="seconds, after which the turn is stopped (600 if absent)",
        )
        parser.add_argument(
            "--text", action="store_true", help="print the answer alone, once it is complete"
        )
        answer = parser.add_mutually_exclusive_group()
        answer.add_argument("--approve", action="store_true", help="approve every call that asks")
        answer.add_argument("--deny", action="store_true", help="refuse every call that asks")
        parser.add_argument(
            "--answer",
            type=_json_object,
            help="a JSON object: the answer to every form that a server puts; {} takes its defaults",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        lines = _Lines(is_text=options["text"])
        try:
            if options["question"] == "-":
                options["question"] = _read_question()
            conversation, actor = _open(options)
            leave_database()
            try:
                # The loop runs in this thread, because Python handles signals here: a thread that only waits
                # for another one may sleep through them.
                status = asyncio.run(_follow(conversation, actor, options, lines))  # noqa: TID251 (left above)
            finally:
                runtime.shutdown(2.0)
        except DomainError as error:
            bad_arguments(error.message)
        except KeyboardInterrupt:
            sys.exit(130)
        if lines.ended_by:
            sys.exit(128 + lines.ended_by)
        if status != TurnStatus.COMPLETED:
            sys.exit(1)


def _read_question() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        bad_arguments("The question is not UTF-8.")


def _json_object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError("not a JSON object")
    return value


def _open(options: dict[str, Any]) -> tuple[Conversation, Actor]:
    """A new conversation with the bud, for the person; wrong names end the command."""
    workspace = find_workspace(options["workspace"])
    user, actor = find_person(workspace, options["user"])
    buds = Bud.objects.for_workspace(workspace).usable_by(user.pk).filter(is_draft=False)
    bud = buds.filter(slug=options["bud"]).first()
    if bud is None:
        known = buds.values_list("slug", flat=True)
        bad_arguments(f"There is no bud “{options['bud']}” here. There are: {', '.join(known)}.")
    return create_conversation(bud=bud, owner=user, actor=actor), actor


class _Lines:
    """Prints what the hub tells; wakes whoever waits for it; knows whether somebody has had enough."""

    def __init__(self, *, is_text: bool) -> None:
        self.news = asyncio.Event()
        self.ended_by = 0
        """The number of the signal that ended the command."""
        self.is_unread = False
        """Whoever read standard output has left."""
        self._is_text = is_text

    @property
    def is_over(self) -> bool:
        """Nobody waits for the answer any more."""
        return bool(self.ended_by) or self.is_unread

    @contextlib.contextmanager
    def ended_by_signals(self) -> Iterator[None]:
        """A signal stops the turn in good order meanwhile, and another one the command."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in _ENDING}
        # One that is ignored stays so, as behind nohup.
        numbers = [number for number, handler in before.items() if handler != signal.SIG_IGN]

        def end(by: int) -> None:
            self.ended_by = by
            for number in numbers:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)
            self.news.set()

        for number in numbers:
            loop.add_signal_handler(number, end, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
                signal.signal(number, before[number])

    def offer(self, conversation_id: UUID, frame: str, seq: int | None) -> None:
        if not self._is_text:
            self.write(frame)
        self.news.set()

    async def more(self) -> bool:
        """Wait a moment for news; whether there are some."""
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await self.news.wait()
        except TimeoutError:
            return False
        self.news.clear()
        return True

    def fault(self, code: str, message: str) -> None:
        """Say why there is no answer, to programs and to people."""
        if not self._is_text:
            self.write(json.dumps({"type": "error", "code": code, "message": message}))
        sys.stderr.write(f"{message}\n")

    def done(self, status: str, answer: str) -> None:
        """Print the last line, or the answer."""
        if not self._is_text:
            self.write(json.dumps({"type": "done", "status": status, "answer": answer}))
        elif status == TurnStatus.COMPLETED:
            self.write(answer)

    def write(self, line: str) -> None:
        """Print a line at once."""
        if self.is_unread:
            return
        try:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        except OSError as error:
            if error.errno not in _UNREAD:
                raise
            self.is_unread = True
            # Python flushes once more when it ends, and would complain about it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _follow(
    conversation: Conversation, actor: Actor, options: dict[str, Any], lines: _Lines
) -> str:
    with lines.ended_by_signals():
        hub.watch(conversation.pk, lines, asyncio.get_running_loop())
        try:
            status = await _take_turn(conversation, actor, options, lines)
        finally:
            hub.unwatch(conversation.pk, lines)
        snapshot = await in_database(read_snapshot, conversation)
    answer = [m["text"] for m in snapshot.messages if m["role"] == "assistant" and m["text"]]
    error = snapshot.turns[-1]["error"] if snapshot.turns else None
    if status == TurnStatus.FAILED and error is not None:
        sys.stderr.write(f"{error['message']}\n")
    lines.done(status, "\n\n".join(answer))
    return status


async def _take_turn(
    conversation: Conversation, actor: Actor, options: dict[str, Any], lines: _Lines
) -> str:
    sent = await in_database(
        send_message,
        conversation=conversation,
        client_id=str(uuid7()),
        text=options["question"],
        actor=actor,
    )
    try:
        async with asyncio.timeout(options["timeout"]):
            return await _wait(sent.turn, actor, options, lines)
    except TimeoutError:
        status = await _stop(sent.turn, actor, lines)
        lines.fault("timeout", f"It took more than {options['timeout']:g} seconds.")
        return status


async def _stop(turn: Turn, actor: Actor, lines: _Lines) -> str:
    """Stop the turn and see it end, so that nothing of it runs on while the process ends."""
    await in_database(stop_turn, turn=turn, actor=actor)
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            while (status := await in_database(_look, turn)) not in _ENDED:
                await lines.more()
    except TimeoutError:
        return TurnStatus.CANCELLED.value
    return status


async def _wait(turn: Turn, actor: Actor, options: dict[str, Any], lines: _Lines) -> str:
    """Until the turn has ended; a call that asks is answered as the command was told to."""
    while True:
        now = await in_database(_look, turn)
        if now in _ENDED:
            return now
        if lines.is_over:
            return await _stop(turn, actor, lines)
        if now == TurnStatus.WAITING_FOR_APPROVAL:
            if not (options["approve"] or options["deny"]):
                message = "A call asks for approval: say --approve or --deny."
                await _give_up(turn, actor, lines, "approval_missing", message)
                continue
            if options["approve"] and await in_database(_waits_for_second_person, turn):
                message = "A call rule has a call wait for a second person, whom nobody can ask from here."
                await _give_up(turn, actor, lines, "second_person_missing", message)
                continue
            decision = Decision.APPROVED if options["approve"] else Decision.REFUSED
            await in_database(_decide_all, turn, actor, decision)
        if now == TurnStatus.WAITING_FOR_INPUT:
            try:
                await in_database(_answer_all, turn, actor, options["answer"])
            except InvalidInput as error:
                faults = [f"{name}: {' '.join(texts)}" for name, texts in error.fields.items()]
                await _give_up(
                    turn, actor, lines, "input_missing", " ".join(faults) or error.message
                )
                continue
            except _SignInMissing as error:
                await _give_up(turn, actor, lines, "sign_in_missing", str(error))
                continue
            except (DomainError, _NoAnswer) as error:
                await _give_up(turn, actor, lines, "input_missing", str(error))
                continue
        if not await lines.more():
            # A worker elsewhere may have taken the turn: then the rows tell, and this process may be needed.
            runner.wake(turn.pk, turn.workspace_id)


async def _give_up(turn: Turn, actor: Actor, lines: _Lines, code: str, message: str) -> None:
    await in_database(stop_turn, turn=turn, actor=actor)
    lines.fault(code, message)


class _SignInMissing(Exception):
    """A call waits for somebody to sign in to its server, which takes a browser."""


def _where_to_sign_in(row: InputRequest) -> str:
    link = sign_in_json(row) or {"path": "", "may_connect": False}
    page = f"{settings.TRELLIS.public_origins[0]}{link['path']}"
    if not link["may_connect"]:
        return f"{row.message} An administrator connects it at {page}."
    return f"{row.message} Sign in at {page} and ask again."


class _NoAnswer(Exception):
    """A server asks for something that the command was given no answer to."""


def _answer_all(turn: Turn, actor: Actor, answer: dict[str, Any] | None) -> None:
    """Answer the forms that are open; what is no form needs a person at a screen."""
    rows = InputRequest.objects.for_workspace(turn.workspace_id)
    for row in rows.filter(turn_id=turn.pk, status=InputStatus.PENDING):
        if row.kind == InputKind.SIGN_IN:
            raise _SignInMissing(_where_to_sign_in(row))
        if answer is None or row.kind != InputKind.FORM:
            raise _NoAnswer(
                f"{row.server_name} asks: {row.message} Say --answer with a JSON object."
            )
        fields = row.schema.get("properties", {})
        defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
        given = {name: value for name, value in answer.items() if name in fields}
        answer_input(
            request=row, action=InputAction.ACCEPT, actor=actor, content={**defaults, **given}
        )


def _look(turn: Turn) -> str:
    return Turn.objects.for_workspace(turn.workspace_id).fetch(turn.pk).status


def _waits_for_second_person(turn: Turn) -> bool:
    calls = ToolCall.objects.for_workspace(turn.workspace_id).filter(turn=turn)
    waits = ToolCallStatus.WAITING_FOR_APPROVAL.value
    return calls.filter(status=waits, needs_second_person=True).exists()


def _decide_all(turn: Turn, actor: Actor, decision: Decision) -> None:
    calls = ToolCall.objects.for_workspace(turn.workspace_id).filter(
        turn=turn, status=ToolCallStatus.WAITING_FOR_APPROVAL.value
    )
    for call in calls:
        decide(call=call, decision=decision, actor=actor)
