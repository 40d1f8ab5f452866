"""Questions to people while calls run: those of servers, and ours to sign in; asked, answered, and waited for."""

from mcp_servers.registry.elicitation.refusals import turn_away
from mcp_servers.registry.elicitation.rows import QuestionOrigin, register_listener
from mcp_servers.registry.elicitation.services import (
    answer_input,
    answer_of,
    complete_url_inputs,
    expire_input,
    input_json,
    open_input,
    overdue_inputs,
    trim_inputs,
    wait_for_answer,
    withdraw_inputs,
    withdraw_inputs_of,
)
from mcp_servers.registry.elicitation.sign_ins import (
    complete_forgotten_sign_ins,
    complete_sign_ins,
    withdraw_sign_ins,
)

__all__ = [
    "QuestionOrigin",
    "answer_input",
    "answer_of",
    "complete_forgotten_sign_ins",
    "complete_sign_ins",
    "complete_url_inputs",
    "expire_input",
    "input_json",
    "open_input",
    "overdue_inputs",
    "register_listener",
    "trim_inputs",
    "turn_away",
    "wait_for_answer",
    "withdraw_inputs",
    "withdraw_inputs_of",
    "withdraw_sign_ins",
]
