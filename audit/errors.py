"""What the log refuses, as errors with a status."""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

from workspaces.errors import DomainError


class AuditUnavailable(DomainError):
    """The log cannot be written; whatever it should have recorded must not happen."""

    code = "audit_unavailable"
    status = 503
    default_message = _("The audit log can't be written right now, so nothing was done.")


class LogNotSigned(DomainError):
    """The log was signed with a key that is not in the settings, so no proof of it can be given."""

    code = "log_not_signed"
    status = 503
    default_message = _("The log can't be signed right now. Ask who runs this installation.")


class OtherLogKey(DomainError):
    """TRELLIS_AUDIT_KEY of this process is not the log's, so it seals and verifies nothing: all would look altered."""

    code = "other_log_key"
    status = 503
    default_message = _(
        "The log has another TRELLIS_AUDIT_KEY than this process, so this process does not seal or verify it."
    )
