"""The vocabulary of the log: what can happen, how it can end, who can refuse. Pure."""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """Everything that is recorded; each has its sentence in `SENTENCES`."""

    TOOL_CALL_REQUESTED = "tool_call.requested"
    TOOL_CALL_FINISHED = "tool_call.finished"
    TOOL_CALL_REFUSED = "tool_call.refused"
    TOOL_CALL_RESUMED = "tool_call.resumed"
    TOOL_CALL_RESOLVED = "tool_call.resolved"
    TOOL_CALL_LEARNED = "tool_call.learned"
    RESOURCE_READ_REQUESTED = "resource_read.requested"
    RESOURCE_READ_FINISHED = "resource_read.finished"
    RESOURCE_READ_REFUSED = "resource_read.refused"
    PROMPT_GET_REQUESTED = "prompt_get.requested"
    PROMPT_GET_FINISHED = "prompt_get.finished"
    PROMPT_GET_REFUSED = "prompt_get.refused"
    INPUT_REQUESTED = "input.requested"
    INPUT_ANSWERED = "input.answered"
    INPUT_REFUSED = "input.refused"
    INPUT_EXPIRED = "input.expired"
    SAMPLING_FINISHED = "sampling.finished"
    PERMISSION_REMEMBERED = "permission.remembered"
    PERMISSION_FORGOTTEN = "permission.forgotten"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_GRANTED = "approval.granted"
    APPROVAL_REFUSED = "approval.refused"
    APPROVAL_EXPIRED = "approval.expired"
    SERVER_CONNECTED = "server.connected"
    SERVER_DISCONNECTED = "server.disconnected"
    SERVER_ERROR = "server.error"
    CONFIG_CHANGED = "config.changed"
    AUTH_SIGNED_IN = "auth.signed_in"
    AUTH_SIGNED_OUT = "auth.signed_out"
    AUTH_FAILED = "auth.failed"
    GRANT_REQUESTED = "grant.requested"
    GRANT_GIVEN = "grant.given"
    GRANT_FAILED = "grant.failed"
    GRANT_LOST = "grant.lost"
    GRANT_REVOKED = "grant.revoked"
    EXPORT_CREATED = "export.created"
    BODY_OPENED = "body.opened"
    RESTORE_FOUND = "restore.found"
    RESTORE_CONFIRMED = "restore.confirmed"
    LOG_STARTED = "log.started"
    LOG_STOPPED = "log.stopped"
    LOG_LOSS = "log.loss"
    LOG_VERIFIED = "log.verified"
    LOG_KEY_CHANGED = "log.key_changed"
    LOG_INTRUSION = "log.intrusion"
    LOG_UNGUARDED = "log.unguarded"
    LOG_UNSIGNED = "log.unsigned"
    RETENTION_APPLIED = "retention.applied"
    BODY_ERASED = "body.erased"
    HOLD_PLACED = "hold.placed"
    HOLD_RELEASED = "hold.released"
    REPORT_SIGNED_OFF = "report.signed_off"
    ALERT_RAISED = "alert.raised"
    ALERT_ENDED = "alert.ended"


SENTENCES: dict[Action, str] = {
    Action.TOOL_CALL_REQUESTED: "A tool call was let through and is about to be sent.",
    Action.TOOL_CALL_FINISHED: "A tool call ended.",
    Action.TOOL_CALL_REFUSED: "A tool call was refused; nothing was sent.",
    Action.TOOL_CALL_RESUMED: "A tool call that waited for an answer or a task went on.",
    Action.TOOL_CALL_RESOLVED: "A person said what becomes of a call whose outcome is unknown.",
    Action.TOOL_CALL_LEARNED: "How a call ended became known after its end had been recorded otherwise.",
    Action.RESOURCE_READ_REQUESTED: "Reading a resource was let through and is about to be sent.",
    Action.RESOURCE_READ_FINISHED: "Reading a resource ended.",
    Action.RESOURCE_READ_REFUSED: "Reading a resource was refused; nothing was sent.",
    Action.PROMPT_GET_REQUESTED: "Fetching a prompt was let through and is about to be sent.",
    Action.PROMPT_GET_FINISHED: "Fetching a prompt ended.",
    Action.PROMPT_GET_REFUSED: "Fetching a prompt was refused; nothing was sent.",
    Action.INPUT_REQUESTED: "A server asked a person something during a call.",
    Action.INPUT_ANSWERED: "A person answered a server's question.",
    Action.INPUT_REFUSED: "A server's question was turned away without asking anybody.",
    Action.INPUT_EXPIRED: "Nobody answered a server's question in time.",
    Action.SAMPLING_FINISHED: "The model wrote something for a server.",
    Action.PERMISSION_REMEMBERED: "A person let a tool run without being asked again.",
    Action.PERMISSION_FORGOTTEN: "A person took such a permission back.",
    Action.APPROVAL_REQUESTED: "A person was asked to approve a tool call.",
    Action.APPROVAL_GRANTED: "A person approved a tool call.",
    Action.APPROVAL_REFUSED: "A person refused a tool call.",
    Action.APPROVAL_EXPIRED: "Nobody answered a request for approval in time.",
    Action.SERVER_CONNECTED: "A connection to an MCP server was opened.",
    Action.SERVER_DISCONNECTED: "A connection to an MCP server ended.",
    Action.SERVER_ERROR: "A connection to an MCP server failed.",
    Action.CONFIG_CHANGED: "A setting was changed.",
    Action.AUTH_SIGNED_IN: "A person signed in.",
    Action.AUTH_SIGNED_OUT: "A person signed out.",
    Action.AUTH_FAILED: "Somebody failed to sign in.",
    Action.GRANT_REQUESTED: "A person was sent to sign in to an MCP server.",
    Action.GRANT_GIVEN: "An account at an MCP server was connected.",
    Action.GRANT_FAILED: "Signing in to an MCP server did not succeed.",
    Action.GRANT_LOST: "A connected account no longer serves; somebody has to sign in again.",
    Action.GRANT_REVOKED: "A connected account was disconnected.",
    Action.EXPORT_CREATED: "The log was exported.",
    Action.BODY_OPENED: "The arguments and result of a call were read.",
    Action.RESTORE_FOUND: "The database was found to be older than the installation; nothing runs by itself.",
    Action.RESTORE_CONFIRMED: "A person let a restored installation go on.",
    Action.LOG_STARTED: "The log began.",
    Action.LOG_STOPPED: "The log was stopped in an orderly way.",
    Action.LOG_LOSS: "Something that happened could not be kept; how much is said here.",
    Action.LOG_VERIFIED: "The log was checked against its seals.",
    Action.LOG_KEY_CHANGED: "The key that signs the log was changed.",
    Action.LOG_INTRUSION: "Entries that Trellis did not write were found in the log and not sealed.",
    Action.LOG_UNGUARDED: "Triggers that guard the log in the database are missing or were changed.",
    Action.LOG_UNSIGNED: "The log cannot be signed because its signing key is missing.",
    Action.RETENTION_APPLIED: "Old entries or bodies were removed, as the workspace's settings say.",
    Action.BODY_ERASED: "Arguments and results were erased on request; their entries stay.",
    Action.HOLD_PLACED: "Removal from the log was forbidden until further notice.",
    Action.HOLD_RELEASED: "Removal from the log was allowed again.",
    Action.REPORT_SIGNED_OFF: "A person confirmed having reviewed a part of the log.",
    Action.ALERT_RAISED: "Something crossed a threshold that somebody watches.",
    Action.ALERT_ENDED: "What crossed a threshold is back to normal.",
}


TITLES: dict[Action, str] = {
    Action.TOOL_CALL_REQUESTED: "Tool call requested",
    Action.TOOL_CALL_FINISHED: "Tool call finished",
    Action.TOOL_CALL_REFUSED: "Tool call refused",
    Action.TOOL_CALL_RESUMED: "Tool call resumed",
    Action.TOOL_CALL_RESOLVED: "Unknown outcome settled",
    Action.TOOL_CALL_LEARNED: "Call's end learned",
    Action.RESOURCE_READ_REQUESTED: "Resource requested",
    Action.RESOURCE_READ_FINISHED: "Resource read",
    Action.RESOURCE_READ_REFUSED: "Resource refused",
    Action.PROMPT_GET_REQUESTED: "Prompt requested",
    Action.PROMPT_GET_FINISHED: "Prompt fetched",
    Action.PROMPT_GET_REFUSED: "Prompt refused",
    Action.INPUT_REQUESTED: "Question asked",
    Action.INPUT_ANSWERED: "Question answered",
    Action.INPUT_REFUSED: "Question turned away",
    Action.INPUT_EXPIRED: "Question ran out",
    Action.SAMPLING_FINISHED: "Model asked by a server",
    Action.PERMISSION_REMEMBERED: "Permission remembered",
    Action.PERMISSION_FORGOTTEN: "Permission taken back",
    Action.APPROVAL_REQUESTED: "Approval asked for",
    Action.APPROVAL_GRANTED: "Approval given",
    Action.APPROVAL_REFUSED: "Approval refused",
    Action.APPROVAL_EXPIRED: "Approval ran out",
    Action.SERVER_CONNECTED: "Server connected",
    Action.SERVER_DISCONNECTED: "Server disconnected",
    Action.SERVER_ERROR: "Server failed",
    Action.CONFIG_CHANGED: "Setting changed",
    Action.AUTH_SIGNED_IN: "Signed in",
    Action.AUTH_SIGNED_OUT: "Signed out",
    Action.AUTH_FAILED: "Sign-in failed",
    Action.GRANT_REQUESTED: "Account sign-in started",
    Action.GRANT_GIVEN: "Account connected",
    Action.GRANT_FAILED: "Account sign-in failed",
    Action.GRANT_LOST: "Account lost",
    Action.GRANT_REVOKED: "Account disconnected",
    Action.EXPORT_CREATED: "Log exported",
    Action.BODY_OPENED: "Call's bodies read",
    Action.RESTORE_FOUND: "Restored from a backup",
    Action.RESTORE_CONFIRMED: "Restore confirmed",
    Action.LOG_STARTED: "Log began",
    Action.LOG_STOPPED: "Log stopped",
    Action.LOG_LOSS: "Loss declared",
    Action.LOG_VERIFIED: "Log verified",
    Action.LOG_KEY_CHANGED: "Signing key changed",
    Action.LOG_INTRUSION: "Foreign entries refused",
    Action.LOG_UNGUARDED: "Log's triggers changed",
    Action.LOG_UNSIGNED: "Signing key missing",
    Action.RETENTION_APPLIED: "Retention applied",
    Action.BODY_ERASED: "Bodies erased",
    Action.HOLD_PLACED: "Legal hold placed",
    Action.HOLD_RELEASED: "Legal hold released",
    Action.REPORT_SIGNED_OFF: "Report signed off",
    Action.ALERT_RAISED: "Alert raised",
    Action.ALERT_ENDED: "Alert ended",
}


def title_of(action: str) -> str:
    """Title an entry; one that Trellis did not write may be of any kind."""
    return TITLES[Action(action)] if action in TITLES else action


def sentence_of(action: str) -> str:
    """Say what an entry means; of an unknown kind nothing is known."""
    return SENTENCES[Action(action)] if action in SENTENCES else ""


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
