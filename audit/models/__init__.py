"""The rows of the log, by what they are for."""

from audit.models.alerts import Alert, AlertDelivery, AlertRule, Notice
from audit.models.bodies import AuditBody
from audit.models.entries import AuditEntry
from audit.models.heads import AuditHead
from audit.models.policies import AuditPolicy, LegalHold, PendingErasure
from audit.models.reviews import ReportSchedule, SavedView, SentFile, SignOff
from audit.models.rollups import (
    AuditHistogram,
    AuditRollup,
    Dimension,
    Grain,
    Measure,
    RollupCursor,
)
from audit.models.seals import (
    PLATFORM_CHAIN,
    AuditCheckpoint,
    AuditSeal,
    AuditTombstone,
    PendingSeal,
)
from audit.models.streams import AuditStream, StreamCursor, StreamState
from audit.models.writes import OutsideWrite

__all__ = [
    "PLATFORM_CHAIN",
    "Alert",
    "AlertDelivery",
    "AlertRule",
    "AuditBody",
    "AuditCheckpoint",
    "AuditEntry",
    "AuditHead",
    "AuditHistogram",
    "AuditPolicy",
    "AuditRollup",
    "AuditSeal",
    "AuditStream",
    "AuditTombstone",
    "Dimension",
    "Grain",
    "LegalHold",
    "Measure",
    "Notice",
    "OutsideWrite",
    "PendingErasure",
    "PendingSeal",
    "ReportSchedule",
    "RollupCursor",
    "SavedView",
    "SentFile",
    "SignOff",
    "StreamCursor",
    "StreamState",
]
