"""The vocabulary of the log: what can happen, how it can end, who can refuse. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Self

from django.utils.translation import gettext_noop as _


class Action(StrEnum):
    """Everything that is recorded: its name in the log, its title, and what it says.

    The texts are as programs get them; pages translate them.
    """

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
        _("Tool call requested"),
        _("A tool call was let through and is about to be sent."),
    )
    TOOL_CALL_FINISHED = ("tool_call.finished", _("Tool call finished"), _("A tool call ended."))
    TOOL_CALL_REFUSED = (
        "tool_call.refused",
        _("Tool call refused"),
        _("A tool call was refused; nothing was sent."),
    )
    TOOL_CALL_RESUMED = (
        "tool_call.resumed",
        _("Tool call resumed"),
        _("A tool call that waited for an answer or a task went on."),
    )
    TOOL_CALL_RESOLVED = (
        "tool_call.resolved",
        _("Unknown outcome settled"),
        _("A person said what becomes of a call whose outcome is unknown."),
    )
    TOOL_CALL_LEARNED = (
        "tool_call.learned",
        _("Call's end learned"),
        _("How a call ended became known after its end had been recorded otherwise."),
    )
    RESOURCE_READ_REQUESTED = (
        "resource_read.requested",
        _("Resource requested"),
        _("Reading a resource was let through and is about to be sent."),
    )
    RESOURCE_READ_FINISHED = (
        "resource_read.finished",
        _("Resource read"),
        _("Reading a resource ended."),
    )
    RESOURCE_READ_REFUSED = (
        "resource_read.refused",
        _("Resource refused"),
        _("Reading a resource was refused; nothing was sent."),
    )
    PROMPT_GET_REQUESTED = (
        "prompt_get.requested",
        _("Prompt requested"),
        _("Fetching a prompt was let through and is about to be sent."),
    )
    PROMPT_GET_FINISHED = (
        "prompt_get.finished",
        _("Prompt fetched"),
        _("Fetching a prompt ended."),
    )
    PROMPT_GET_REFUSED = (
        "prompt_get.refused",
        _("Prompt refused"),
        _("Fetching a prompt was refused; nothing was sent."),
    )
    INPUT_REQUESTED = (
        "input.requested",
        _("Question asked"),
        _("A server asked a person something during a call."),
    )
    INPUT_ANSWERED = (
        "input.answered",
        _("Question answered"),
        _("A person answered a server's question."),
    )
    INPUT_REFUSED = (
        "input.refused",
        _("Question turned away"),
        _("A server's question was turned away without asking anybody."),
    )
    INPUT_EXPIRED = (
        "input.expired",
        _("Question ran out"),
        _("Nobody answered a server's question in time."),
    )
    MODEL_REQUEST_REFUSED = (
        "model_request.refused",
        _("Model not asked"),
        _("A model was not asked because a spending limit leaves no room."),
    )
    SAMPLING_FINISHED = (
        "sampling.finished",
        _("Model asked by a server"),
        _("The model wrote something for a server."),
    )
    PERMISSION_REMEMBERED = (
        "permission.remembered",
        _("Permission remembered"),
        _("A person let a tool run without being asked again."),
    )
    PERMISSION_FORGOTTEN = (
        "permission.forgotten",
        _("Permission taken back"),
        _("A person took such a permission back."),
    )
    APPROVAL_REQUESTED = (
        "approval.requested",
        _("Approval asked for"),
        _("A person was asked to approve a tool call."),
    )
    APPROVAL_GRANTED = (
        "approval.granted",
        _("Approval given"),
        _("A person approved a tool call."),
    )
    APPROVAL_REFUSED = (
        "approval.refused",
        _("Approval refused"),
        _("A person refused a tool call."),
    )
    APPROVAL_EXPIRED = (
        "approval.expired",
        _("Approval ran out"),
        _("Nobody answered a request for approval in time."),
    )
    SERVER_CONNECTED = (
        "server.connected",
        _("Server connected"),
        _("A connection to an MCP server was opened."),
    )
    SERVER_DISCONNECTED = (
        "server.disconnected",
        _("Server disconnected"),
        _("A connection to an MCP server ended."),
    )
    SERVER_ERROR = ("server.error", _("Server failed"), _("A connection to an MCP server failed."))
    CONFIG_CHANGED = ("config.changed", _("Setting changed"), _("A setting was changed."))
    BUD_UNCHECKED = (
        "bud.unchecked",
        _("Bud saved without its checks"),
        _("A person saved a change of a bud though its checks had not passed with it."),
    )
    AUTH_SIGNED_IN = ("auth.signed_in", _("Signed in"), _("A person signed in."))
    AUTH_SIGNED_OUT = ("auth.signed_out", _("Signed out"), _("A person signed out."))
    AUTH_FAILED = ("auth.failed", _("Sign-in failed"), _("Somebody failed to sign in."))
    AUTH_PASSWORD_CHANGED = (
        "auth.password_changed",
        _("Password changed"),
        _("A person changed their password, or set a new one by the link of a mail."),
    )
    AUTH_TWO_STEPS_ON = (
        "auth.two_steps_on",
        _("Two-step verification turned on"),
        _("A person has Trellis ask for a code after their password."),
    )
    AUTH_TWO_STEPS_OFF = (
        "auth.two_steps_off",
        _("Two-step verification turned off"),
        _("A person signs in with their password alone again."),
    )
    AUTH_RECOVERY_CODES = (
        "auth.recovery_codes",
        _("Recovery codes made"),
        _("A person made new recovery codes, which end those before."),
    )
    AUTH_PASSKEY_ADDED = (
        "auth.passkey_added",
        _("Passkey added"),
        _("A person can sign in with another passkey, and their password asks for a second step."),
    )
    AUTH_PASSKEY_REMOVED = (
        "auth.passkey_removed",
        _("Passkey removed"),
        _("A person can no longer sign in with one of their passkeys."),
    )
    GRANT_REQUESTED = (
        "grant.requested",
        _("Account sign-in started"),
        _("A person was sent to sign in to an MCP server."),
    )
    GRANT_GIVEN = (
        "grant.given",
        _("Account connected"),
        _("An account at an MCP server was connected."),
    )
    GRANT_FAILED = (
        "grant.failed",
        _("Account sign-in failed"),
        _("Signing in to an MCP server did not succeed."),
    )
    GRANT_LOST = (
        "grant.lost",
        _("Account lost"),
        _("A connected account no longer serves; somebody has to sign in again."),
    )
    GRANT_REVOKED = (
        "grant.revoked",
        _("Account disconnected"),
        _("A connected account was disconnected."),
    )
    CLIENT_REGISTERED = (
        "mcp_client.registered",
        _("MCP client registered"),
        _("A program made itself known, so that people may sign in with it."),
    )
    CLIENT_ALLOWED = (
        "mcp_client.allowed",
        _("MCP client allowed"),
        _("A person let an MCP client use tools as them."),
    )
    CLIENT_REFUSED = (
        "mcp_client.refused",
        _("MCP client refused"),
        _("A person did not let an MCP client in."),
    )
    CLIENT_ENDED = (
        "mcp_client.ended",
        _("MCP client signed out"),
        _("The sign-in of an MCP client ended."),
    )
    CLIENT_REUSED = (
        "mcp_client.reused",
        _("MCP client's token used twice"),
        _("A token that serves once came a second time, so the sign-in of the MCP client ended."),
    )
    EXPORT_CREATED = ("export.created", _("Log exported"), _("The log was exported."))
    LIST_EXPORTED = (
        "export.list",
        _("List exported"),
        _("A list of the admin was taken as a file."),
    )
    CHATS_IMPORTED = (
        "chats.imported",
        _("Chats imported"),
        _("A person imported chats from a file."),
    )
    DATA_COPY_REQUESTED = (
        "data_copy.requested",
        _("Copy of own data requested"),
        _("A person asked for a copy of their data."),
    )
    DATA_COPY_FINISHED = (
        "data_copy.finished",
        _("Copy of own data finished"),
        _("A copy of a person's data was made, or could not be made."),
    )
    DATA_COPY_DOWNLOADED = (
        "data_copy.downloaded",
        _("Copy of own data downloaded"),
        _("A person downloaded a copy of their data."),
    )
    DATA_COPY_ERASED = (
        "data_copy.erased",
        _("Copy of own data erased"),
        _("A copy of a person's data was cancelled or erased."),
    )
    BODY_OPENED = (
        "body.opened",
        _("Contents read"),
        _("What a call sent and got, or what was said in a turn, was read."),
    )
    RESTORE_FOUND = (
        "restore.found",
        _("Restored from a backup"),
        _("The database was found to be older than the installation; nothing runs by itself."),
    )
    RESTORE_CONFIRMED = (
        "restore.confirmed",
        _("Restore confirmed"),
        _("A person let a restored installation go on."),
    )
    JOB_STARTED = (
        "job.started",
        _("Background job started by hand"),
        _("The platform's owner had a background job run now, beside its own times."),
    )
    JOB_NOT_STARTED = (
        "job.not_started",
        _("Background job not started"),
        _("A background job that was to run now was not handed out: the queue did not take it."),
    )
    LOG_STARTED = ("log.started", _("Log began"), _("The log began."))
    LOG_STOPPED = ("log.stopped", _("Log stopped"), _("The log was stopped in an orderly way."))
    LOG_LOSS = (
        "log.loss",
        _("Loss declared"),
        _("Something that happened could not be kept; how much is said here."),
    )
    LOG_VERIFIED = ("log.verified", _("Log verified"), _("The log was checked against its seals."))
    LOG_KEY_CHANGED = (
        "log.key_changed",
        _("Signing key changed"),
        _("The key that signs the log was changed."),
    )
    LOG_KEY_LOST = (
        "log.key_lost",
        _("Key of the log declared lost"),
        _(
            "A person declared that a key of the log is lost; what can be verified no longer is said here."
        ),
    )
    LOG_INTRUSION = (
        "log.intrusion",
        _("Foreign entries refused"),
        _("Entries that Trellis did not write were found in the log and not sealed."),
    )
    LOG_UNGUARDED = (
        "log.unguarded",
        _("Log's triggers changed"),
        _("Triggers that guard the log in the database are missing or were changed."),
    )
    LOG_UNSIGNED = (
        "log.unsigned",
        _("Signing key missing"),
        _("The log cannot be signed because its signing key is missing."),
    )
    RETENTION_APPLIED = (
        "retention.applied",
        _("Retention applied"),
        _("Old entries or bodies were removed, as the workspace's settings say."),
    )
    BODY_ERASED = (
        "body.erased",
        _("Bodies erased"),
        _("Arguments and results were erased on request; their entries stay."),
    )
    HOLD_PLACED = (
        "hold.placed",
        _("Legal hold placed"),
        _("Removal from the log was forbidden until further notice."),
    )
    HOLD_RELEASED = (
        "hold.released",
        _("Legal hold released"),
        _("Removal from the log was allowed again."),
    )
    REPORT_SIGNED_OFF = (
        "report.signed_off",
        _("Report signed off"),
        _("A person confirmed having reviewed a part of the log."),
    )
    ALERT_RAISED = (
        "alert.raised",
        _("Alert raised"),
        _("Something crossed a threshold that somebody watches."),
    )
    ALERT_ENDED = (
        "alert.ended",
        _("Alert ended"),
        _("What crossed a threshold is back to normal."),
    )


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


_OUTCOME_WORDS: Final[dict[str, str]] = {
    Outcome.OK: _("Succeeded"),
    Outcome.TOOL_ERROR: _("Tool error"),
    Outcome.TRANSPORT_ERROR: _("No connection"),
    Outcome.TIMEOUT: _("Timed out"),
    Outcome.CANCELLED: _("Cancelled"),
    Outcome.OUTCOME_UNKNOWN: _("Outcome unknown"),
}


CALLS: Final = (
    Action.TOOL_CALL_FINISHED.value,
    Action.RESOURCE_READ_FINISHED.value,
    Action.PROMPT_GET_FINISHED.value,
)
"""What ends a call that was sent: of a tool, a resource or a prompt."""
REFUSALS: Final = (
    Action.TOOL_CALL_REFUSED.value,
    Action.RESOURCE_READ_REFUSED.value,
    Action.PROMPT_GET_REFUSED.value,
)
"""What ends one that was not sent."""
FAILURES: Final = (
    Outcome.TOOL_ERROR.value,
    Outcome.TRANSPORT_ERROR.value,
    Outcome.TIMEOUT.value,
    Outcome.OUTCOME_UNKNOWN.value,
)
"""Outcomes that count as failures, wherever they are counted. A call that somebody stopped has not failed."""


def end_of(outcome: str) -> str:
    """Give how a finished call is counted: ok, failed or cancelled."""
    return "failed" if outcome in FAILURES else outcome


def outcome_in_words(outcome: str) -> str:
    """Say how a call ended, in the words of every page; an unknown outcome stands as it is."""
    return _OUTCOME_WORDS.get(outcome, outcome)


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
    SPENDING_LIMIT = "spending_limit"


_LAYER_WORDS: Final[dict[str, str]] = {
    RefusedBy.NOT_FOUND: _("No such tool"),
    RefusedBy.DISABLED: _("Switched off"),
    RefusedBy.QUARANTINE: _("Held for review"),
    RefusedBy.POLICY: _("Rule"),
    RefusedBy.APPROVAL: _("Not approved"),
    RefusedBy.ARGUMENTS: _("Arguments do not fit"),
    RefusedBy.QUOTA: _("Quota used up"),
    RefusedBy.BREAKER: _("Paused after failures"),
    RefusedBy.BUSY: _("Too many calls"),
    RefusedBy.PERMISSION: _("No permission"),
    RefusedBy.AUDIT: _("Log not writable"),
    RefusedBy.SPENDING_LIMIT: _("Spending limit"),
}


def layer_name(layer: str) -> str:
    """Name the layer that refused, in a word or two; an unknown one stands as it is."""
    return _LAYER_WORDS.get(layer, layer)
