"""Which state may follow which. Pure; the engine asks before every move."""

from __future__ import annotations

from chat.values import ToolCallStatus as Call
from chat.values import TurnStatus as Turn
from workspaces.errors import Conflict
from workspaces.words.texts import gettext as _

TURN_MOVES: dict[Turn, frozenset[Turn]] = {
    Turn.QUEUED: frozenset({Turn.RUNNING, Turn.CANCELLED, Turn.FAILED, Turn.INTERRUPTED}),
    Turn.RUNNING: frozenset(
        {
            Turn.QUEUED,
            Turn.WAITING_FOR_APPROVAL,
            Turn.WAITING_FOR_INPUT,
            Turn.COMPLETED,
            Turn.FAILED,
            Turn.CANCELLED,
            Turn.INTERRUPTED,
        }
    ),
    Turn.WAITING_FOR_APPROVAL: frozenset(
        {Turn.QUEUED, Turn.CANCELLED, Turn.FAILED, Turn.INTERRUPTED}
    ),
    # Parked it is queued again; with its process holding on to it, it just goes on.
    Turn.WAITING_FOR_INPUT: frozenset(
        {Turn.QUEUED, Turn.RUNNING, Turn.CANCELLED, Turn.FAILED, Turn.INTERRUPTED}
    ),
    Turn.COMPLETED: frozenset(),
    Turn.FAILED: frozenset({Turn.QUEUED}),
    Turn.CANCELLED: frozenset({Turn.QUEUED}),
    Turn.INTERRUPTED: frozenset({Turn.QUEUED}),
}

CALL_MOVES: dict[Call, frozenset[Call]] = {
    Call.QUEUED: frozenset(
        {Call.RUNNING, Call.WAITING_FOR_APPROVAL, Call.REFUSED, Call.FAILED, Call.CANCELLED}
    ),
    Call.WAITING_FOR_APPROVAL: frozenset({Call.QUEUED, Call.REFUSED, Call.CANCELLED}),
    Call.RUNNING: frozenset(
        {
            Call.QUEUED,
            Call.WAITING_FOR_APPROVAL,
            Call.WAITING_FOR_INPUT,
            Call.SUCCEEDED,
            Call.FAILED,
            Call.REFUSED,
            Call.CANCELLED,
            Call.OUTCOME_UNKNOWN,
        }
    ),
    Call.WAITING_FOR_INPUT: frozenset(
        {
            Call.QUEUED,
            Call.RUNNING,
            Call.SUCCEEDED,
            Call.FAILED,
            Call.REFUSED,
            Call.CANCELLED,
            Call.OUTCOME_UNKNOWN,
        }
    ),
    Call.SUCCEEDED: frozenset(),
    Call.FAILED: frozenset(),
    Call.REFUSED: frozenset(),
    Call.CANCELLED: frozenset(),
    # The person who asked says what becomes of it, unless the log has learned it; running it again is another call.
    Call.OUTCOME_UNKNOWN: frozenset(
        {
            Call.MARKED_DONE,
            Call.GIVEN_UP,
            Call.REPEATED,
            Call.SUCCEEDED,
            Call.FAILED,
            Call.CANCELLED,
        }
    ),
    Call.MARKED_DONE: frozenset(),
    Call.GIVEN_UP: frozenset(),
    Call.REPEATED: frozenset(),
}

ACTIVE_TURNS = frozenset(
    {Turn.QUEUED, Turn.RUNNING, Turn.WAITING_FOR_APPROVAL, Turn.WAITING_FOR_INPUT}
)
WAITING_TURNS = frozenset({Turn.WAITING_FOR_APPROVAL, Turn.WAITING_FOR_INPUT})
OPEN_CALLS = frozenset(
    {Call.QUEUED, Call.WAITING_FOR_APPROVAL, Call.WAITING_FOR_INPUT, Call.RUNNING}
)
WAITING_CALLS = frozenset({Call.WAITING_FOR_APPROVAL, Call.WAITING_FOR_INPUT, Call.OUTCOME_UNKNOWN})
"""Nothing goes on before a person has said something."""
UNSETTLED_CALLS = OPEN_CALLS | WAITING_CALLS
"""Their step has not ended."""
RETRYABLE_TURNS = frozenset({Turn.FAILED, Turn.CANCELLED, Turn.INTERRUPTED})


def check_turn_move(old: Turn, new: Turn) -> None:
    """Raise Conflict unless a turn may go from `old` to `new`."""
    if new not in TURN_MOVES[old]:
        raise Conflict(
            _("This turn is %(replace)s already.") % {"replace": old.value.replace("_", " ")}
        )


def check_call_move(old: Call, new: Call) -> None:
    """Raise Conflict unless a tool call may go from `old` to `new`."""
    if new not in CALL_MOVES[old]:
        raise Conflict(
            _("This tool call is %(replace)s already.") % {"replace": old.value.replace("_", " ")}
        )
