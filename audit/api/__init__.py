"""The log for programs. What people keep of it and its settings are beside their services."""

from audit.alerts.api import AlertRuleViewSet
from audit.alerts.bell_api import routes as bell_routes
from audit.api.calls import CallViewSet
from audit.api.entries import ActivityViewSet, EntryViewSet
from audit.api.platform import platform_routes
from audit.api.report import ReportViewSet
from audit.retention.api import AuditSettingsViewSet, ErasureViewSet, LegalHoldViewSet
from audit.reviews.api import SavedViewViewSet, ScheduleViewSet, SentFileViewSet, SignOffViewSet
from audit.streams.api import AuditStreamViewSet
from audit.views.api import AuditFileViewSet
from workspaces.api import WorkspaceViewSet

routes: list[tuple[str, type[WorkspaceViewSet]]] = [
    ("audit-entries", EntryViewSet),
    ("audit-calls", CallViewSet),
    ("activity", ActivityViewSet),
    ("audit-reports", ReportViewSet),
    ("audit-files", AuditFileViewSet),
    ("alert-rules", AlertRuleViewSet),
    *bell_routes,
    ("audit-streams", AuditStreamViewSet),
    ("audit-views", SavedViewViewSet),
    ("audit-schedules", ScheduleViewSet),
    ("audit-sent-files", SentFileViewSet),
    ("audit-sign-offs", SignOffViewSet),
    ("audit-settings", AuditSettingsViewSet),
    ("legal-holds", LegalHoldViewSet),
    ("audit-erasures", ErasureViewSet),
]

__all__ = ["platform_routes", "routes"]
