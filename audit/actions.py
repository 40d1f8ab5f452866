"""The vocabulary of the log: what can happen, how it can end, who can refuse. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Action(StrEnum):
    """Everything that is recorded: its name in the log, its title, and what it says."""

    _value_: str
    label: str
    sentence: str

    def __new__(cls, value: str, label: str = "", sentence: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.label = label
        member.sentence = sentence
        return member

    TOOL_CALL_REQUESTED = (
        "tool_call.requested",
        "Tool call requested",
        "A tool call was let through and is about to be sent.",
    )
    TOOL_CALL_FINISHED = ("tool_call.finished", "Tool call finished", "A tool call ended.")
    TOOL_CALL_REFUSED = (
        "tool_call.refused",
        "Tool call refused",
        "A tool call was refused; nothing was sent.",
    )
    TOOL_CALL_RESUMED = (
        "tool_call.resumed",
        "Tool call resumed",
        "A tool call that waited for an answer or a task went on.",
    )
    TOOL_CALL_RESOLVED = (
        "tool_call.resolved",
        "Unknown outcome settled",
        "A person said what becomes of a call whose outcome is unknown.",
    )
    TOOL_CALL_LEARNED = (
        "tool_call.learned",
        "Call's end learned",
        "How a call ended became known after its end had been recorded otherwise.",
    )
    RESOURCE_READ_REQUESTED = (
        "resource_read.requested",
        "Resource requested",
        "Reading a resource was let through and is about to be sent.",
    )
    RESOURCE_READ_FINISHED = (
        "resource_read.finished",
        "Resource read",
        "Reading a resource ended.",
    )
    RESOURCE_READ_REFUSED = (
        "resource_read.refused",
        "Resource refused",
        "Reading a resource was refused; nothing was sent.",
    )
    PROMPT_GET_REQUESTED = (
        "prompt_get.requested",
        "Prompt requested",
        "Fetching a prompt was let through and is about to be sent.",
    )
    PROMPT_GET_FINISHED = ("prompt_get.finished", "Prompt fetched", "Fetching a prompt ended.")
    PROMPT_GET_REFUSED = (
        "prompt_get.refused",
        "Prompt refused",
        "Fetching a prompt was refused; nothing was sent.",
    )
    INPUT_REQUESTED = (
        "input.requested",
        "Question asked",
        "A server asked a person something during a call.",
    )
    INPUT_ANSWERED = (
        "input.answered",
        "Question answered",
        "A person answered a server's question.",
    )
    INPUT_REFUSED = (
        "input.refused",
        "Question turned away",
        "A server's question was turned away without asking anybody.",
    )
    INPUT_EXPIRED = (
        "input.expired",
        "Question ran out",
        "Nobody answered a server's question in time.",
    )
    SAMPLING_FINISHED = (
        "sampling.finished",
        "Model asked by a server",
        "The model wrote something for a server.",
    )
    PERMISSION_REMEMBERED = (
        "permission.remembered",
        "Permission remembered",
        "A person let a tool run without being asked again.",
    )
    PERMISSION_FORGOTTEN = (
        "permission.forgotten",
        "Permission taken back",
        "A person took such a permission back.",
    )
    APPROVAL_REQUESTED = (
        "approval.requested",
        "Approval asked for",
        "A person was asked to approve a tool call.",
    )
    APPROVAL_GRANTED = ("approval.granted", "Approval given", "A person approved a tool call.")
    APPROVAL_REFUSED = ("approval.refused", "Approval refused", "A person refused a tool call.")
    APPROVAL_EXPIRED = (
        "approval.expired",
        "Approval ran out",
        "Nobody answered a request for approval in time.",
    )
    SERVER_CONNECTED = (
        "server.connected",
        "Server connected",
        "A connection to an MCP server was opened.",
    )
    SERVER_DISCONNECTED = (
        "server.disconnected",
        "Server disconnected",
        "A connection to an MCP server ended.",
    )
    SERVER_ERROR = ("server.error", "Server failed", "A connection to an MCP server failed.")
    CONFIG_CHANGED = ("config.changed", "Setting changed", "A setting was changed.")
    AUTH_SIGNED_IN = ("auth.signed_in", "Signed in", "A person signed in.")
    AUTH_SIGNED_OUT = ("auth.signed_out", "Signed out", "A person signed out.")
    AUTH_FAILED = ("auth.failed", "Sign-in failed", "Somebody failed to sign in.")
    GRANT_REQUESTED = (
        "grant.requested",
        "Account sign-in started",
        "A person was sent to sign in to an MCP server.",
    )
    GRANT_GIVEN = ("grant.given", "Account connected", "An account at an MCP server was connected.")
    GRANT_FAILED = (
        "grant.failed",
        "Account sign-in failed",
        "Signing in to an MCP server did not succeed.",
    )
    GRANT_LOST = (
        "grant.lost",
        "Account lost",
        "A connected account no longer serves; somebody has to sign in again.",
    )
    GRANT_REVOKED = (
        "grant.revoked",
        "Account disconnected",
        "A connected account was disconnected.",
    )
    EXPORT_CREATED = ("export.created", "Log exported", "The log was exported.")
    BODY_OPENED = (
        "body.opened",
        "Call's bodies read",
        "The arguments and result of a call were read.",
    )
    RESTORE_FOUND = (
        "restore.found",
        "Restored from a backup",
        "The database was found to be older than the installation; nothing runs by itself.",
    )
    RESTORE_CONFIRMED = (
        "restore.confirmed",
        "Restore confirmed",
        "A person let a restored installation go on.",
    )
    LOG_STARTED = ("log.started", "Log began", "The log began.")
    LOG_STOPPED = ("log.stopped", "Log stopped", "The log was stopped in an orderly way.")
    LOG_LOSS = (
        "log.loss",
        "Loss declared",
        "Something that happened could not be kept; how much is said here.",
    )
    LOG_VERIFIED = ("log.verified", "Log verified", "The log was checked against its seals.")
    LOG_KEY_CHANGED = (
        "log.key_changed",
        "Signing key changed",
        "The key that signs the log was changed.",
    )
    LOG_INTRUSION = (
        "log.intrusion",
        "Foreign entries refused",
        "Entries that Trellis did not write were found in the log and not sealed.",
    )
    LOG_UNGUARDED = (
        "log.unguarded",
        "Log's triggers changed",
        "Triggers that guard the log in the database are missing or were changed.",
    )
    LOG_UNSIGNED = (
        "log.unsigned",
        "Signing key missing",
        "The log cannot be signed because its signing key is missing.",
    )
    RETENTION_APPLIED = (
        "retention.applied",
        "Retention applied",
        "Old entries or bodies were removed, as the workspace's settings say.",
    )
    BODY_ERASED = (
        "body.erased",
        "Bodies erased",
        "Arguments and results were erased on request; their entries stay.",
    )
    HOLD_PLACED = (
        "hold.placed",
        "Legal hold placed",
        "Removal from the log was forbidden until further notice.",
    )
    HOLD_RELEASED = (
        "hold.released",
        "Legal hold released",
        "Removal from the log was allowed again.",
    )
    REPORT_SIGNED_OFF = (
        "report.signed_off",
        "Report signed off",
        "A person confirmed having reviewed a part of the log.",
    )
    ALERT_RAISED = (
        "alert.raised",
        "Alert raised",
        "Something crossed a threshold that somebody watches.",
    )
    ALERT_ENDED = ("alert.ended", "Alert ended", "What crossed a threshold is back to normal.")


_ACTIONS = {action.value: action for action in Action}


def title_of(action: str) -> str:
    """Title an entry; one that Trellis did not write may be of any kind."""
    known = _ACTIONS.get(action)
    return known.label if known else action


def sentence_of(action: str) -> str:
    """Say what an entry means; of an unknown kind nothing is known."""
    known = _ACTIONS.get(action)
    return known.sentence if known else ""


class Outcome(StrEnum):
    """How a tool call ended."""

    OK = "ok"
    TOOL_ERROR = "tool_error"
    TRANSPORT_ERROR = "transport_error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    OUTCOME_UNKNOWN = "outcome_unknown"


class RefusedBy(StrEnum):
    """The layer that said no."""

    NOT_FOUND = "not_found"
    DISABLED = "disabled"
    QUARANTINE = "quarantine"
    POLICY = "policy"
    APPROVAL = "approval"
    ARGUMENTS = "arguments"
    QUOTA = "quota"
    BREAKER = "breaker"
    BUSY = "busy"
    PERMISSION = "permission"
    AUDIT = "audit"
