"""Verification that nobody asked for: each night what is new, each week all of it."""

from __future__ import annotations

import logging

from audit.errors import OtherLogKey
from audit.proof import marks
from audit.proof.trellis_verify import WHOLE
from audit.sealing import sealer
from audit.verification.online import verify
from workspaces.actors import Actor, Source
from workspaces.database.migration_state import is_of_this_version

logger = logging.getLogger(__name__)


def verify_log(*, is_incremental: bool) -> None:
    """Check the log of all workspaces; the result is an entry, which alerts look at.

    In the midst of an upgrade nothing is checked: triggers of tables that are new or gone would look like somebody's work,
    and the log would say so for ever.
    """
    if not is_of_this_version():
        logger.warning("audit_log_not_verified", extra={"reason": "migrations are under way"})
        return
    actor = Actor.system(label="audit log", source=Source.TASK, workspace_id=None)
    try:
        sealer.seal_refused()
        report = verify(actor=actor, is_incremental=is_incremental)
    except OtherLogKey as error:
        extra = {"reason": str(error), "advice": marks.PUT_BACK}
        logger.critical("audit_log_not_verified", extra=extra)
        return
    if report.result != WHOLE:
        logger.critical(
            "audit_log_not_whole",
            extra={"result": report.result, "first_bad": report.first_bad},
        )
