"""What the doctor sees of the audit log."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.utils import timezone

from audit import trigger_check
from audit.health import health
from audit.proof import marks
from audit.sealing.sealer import count_refused
from config.doctor.findings import DoctorFinding, failed, look, ok
from workspaces.database.migration_state import count_missing

SEALING_SECONDS: Final = 300
VERIFIED: Final = timedelta(days=3)
"""The nightly verification may miss a night or two before somebody has to look."""


def check_triggers(part: str) -> DoctorFinding:
    """Look whether the triggers that keep the log append-only are there."""
    if count_missing():
        # Those of new tables come with them, and nobody has taken them away.
        return look(
            part, "not looked at while migrations are missing", "Run: python3 manage.py migrate"
        )
    faults = trigger_check.find_faults()
    if faults:
        return failed(
            part,
            " ".join(faults),
            "Find out who did it, then run: python3 manage.py verify_audit --restore-triggers",
        )
    return ok(part, "those that keep the log append-only are all there")


def check_seals(part: str) -> DoctorFinding:
    """Look whether the log is sealed, and was whole when it was last verified."""
    if marks.is_key_other():
        return failed(part, marks.OTHER_KEY, marks.PUT_BACK)
    found = health()
    if found.is_key_missing:
        return failed(
            part,
            "the key that signed the log is not in the settings",
            "Put it behind the first in TRELLIS_AUDIT_SIGNING_KEYS and restart."
            " If it is lost for good, run: python3 manage.py declare_keys_lost",
        )
    if refused := count_refused(found.verified_from):
        return failed(
            part,
            f"{refused} entries got no seal: another TRELLIS_AUDIT_KEY wrote them, or nothing of Trellis did",
            "Look for a process with another key, and have it use this one. Then run: python3 manage.py verify_audit"
            " --json, and read docs/audit.md before you change anything.",
        )
    if found.oldest_pending_seconds > SEALING_SECONDS:
        return look(
            part,
            f"{found.pending} entries wait, the oldest for {found.oldest_pending_seconds / 60:.0f} minutes",
            "Sealing is a server's or worker's work: look whether one runs.",
        )
    if found.verified_result not in {None, "whole"}:
        return failed(
            part,
            f"the last verification found the log {found.verified_result}",
            "Run: python3 manage.py verify_audit --json, and read docs/audit.md before you change anything.",
        )
    if found.verified_at is None:
        return ok(part, "not verified yet; that happens each night")
    if timezone.now() - found.verified_at > VERIFIED:
        return look(
            part,
            f"last verified on {found.verified_at:%Y-%m-%d}",
            "The scheduler verifies each night: look whether it runs (celery beat).",
        )
    text = f"whole when last verified, {found.verified_at:%Y-%m-%d %H:%M} UTC"
    if (declared_at := marks.key_loss_declared_at()) is not None:
        text += f"; a key was declared lost on {declared_at:%Y-%m-%d}, which bounds what older entries prove"
    return ok(part, text)
