"""AuditUnavailable(DomainError)  503  the entry could not be written, so nothing may happen"""

from __future__ import annotations

from workspaces.errors import DomainError


class AuditUnavailable(DomainError):
    """The log cannot be written; whatever it should have recorded must not happen."""

    code = "audit_unavailable"
    status = 503
    default_message = "The audit log cannot be written right now, so nothing was done."
