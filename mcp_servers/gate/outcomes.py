"""How an operation that brought no result ended, as an outcome in plain words."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_noop as _

from audit.actions import Outcome
from mcp_servers.client.canonical import clean_text
from mcp_servers.client.connections.failures import NOT_CARRIED_OUT, CallFailed, RpcError
from mcp_servers.client.errors import ConnectionFailed
from mcp_servers.client.values import JsonValue
from mcp_servers.gate.dialogue import MOST_ROUNDS
from mcp_servers.gate.signing_in import CannotGoOn
from workspaces.words.waiting_times import duration_in_words

if TYPE_CHECKING:
    from mcp_servers.client.errors import McpServersError
    from mcp_servers.gate.operation import ServerOperation

logger = logging.getLogger(__name__)

_NOTHING_DONE: Final = NOT_CARRIED_OUT | {
    "unreadable",
    "too_large",
    "asks_back",
    "task_gone",
    "task_failed",
    "task_cancelled",
}
"""Kinds after which nobody need fear that something was done unseen: nothing was, or the server itself tells of the end."""


class TooManyRounds(Exception):
    """The server keeps asking."""


def explain(
    operation: ServerOperation[Any], error: Exception
) -> tuple[Outcome, str, dict[str, JsonValue]]:
    """What an error means, in a sentence, and with its facts for the log."""
    who, word, server = operation.who, operation.word, operation.server.name
    match error:
        case TimeoutError():
            text = _("%(who)s did not answer within %(seconds)s.") % {
                "who": who,
                "seconds": duration_in_words(operation.limits.seconds),
            }
            return Outcome.TIMEOUT, text, {"kind": "timeout"}
        case TooManyRounds():
            text = _("%(who)s asked for input more than %(most)s times and was given up.") % {
                "who": who,
                "most": MOST_ROUNDS,
            }
            return Outcome.TOOL_ERROR, text, {"kind": "too_many_rounds"}
        case CannotGoOn():
            return Outcome.TRANSPORT_ERROR, error.message, {**error.facts}
        case RpcError():
            text = _("The server refused the %(word)s: %(message)s") % {
                "word": word,
                "message": clean_text(error.message)[:1000],
            }
            return Outcome.TOOL_ERROR, text, {"rpc_code": error.rpc_code}
        case CallFailed():
            text = f"{server}: {error.message}"
            if error.kind in _NOTHING_DONE or operation.may_repeat:
                return Outcome.TRANSPORT_ERROR, text, _facts(error)
            text += _(" Whether the %(word)s was carried out is unknown.") % {"word": word}
            return Outcome.OUTCOME_UNKNOWN, text, _facts(error)
        case ConnectionFailed():
            details = {"kind": error.kind, **_facts(error)}
            return Outcome.TRANSPORT_ERROR, f"{server}: {error.message}", details
        case _:
            # Something we did not foresee: the bytes may have left, so it may have been carried out.
            logger.error("an operation failed in an unforeseen way", exc_info=error)
            text = _("The %(word)s failed for a reason that is in the platform's log.") % {
                "word": word
            }
            return operation.unforeseen, text, {"kind": "unforeseen"}


def _facts(error: McpServersError) -> dict[str, JsonValue]:
    return {
        key: value
        for key, value in error.details.items()
        if value is None or isinstance(value, bool | int | float | str)
    }


def since(started: float) -> int:
    """Milliseconds."""
    return round((time.monotonic() - started) * 1000)
