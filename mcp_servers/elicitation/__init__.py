"""Questions that servers put to people while they work: asked, answered, and waited for."""

from mcp_servers.elicitation.services import (
    Origin,
    answer_input,
    answer_of,
    complete_url_inputs,
    expire_input,
    input_json,
    open_input,
    overdue_inputs,
    register_listener,
    turn_away,
    wait_for_answer,
    withdraw_inputs,
)

__all__ = [
    "Origin",
    "answer_input",
    "answer_of",
    "complete_url_inputs",
    "expire_input",
    "input_json",
    "open_input",
    "overdue_inputs",
    "register_listener",
    "turn_away",
    "wait_for_answer",
    "withdraw_inputs",
]
