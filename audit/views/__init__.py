"""The pages of the log."""

from audit.views.activity import activity, own_entry, platform
from audit.views.call import bodies_for, call_page
from audit.views.entry import entry_detail, record_opened
from audit.views.export import export
from audit.views.log import entries
from audit.views.proof import proof_export, verifier
from audit.views.reports import report_file, reports_page
from audit.views.reviews import delete_view, reviews, save_view
from audit.views.schedules import (
    change_schedule,
    schedule_list,
    schedule_page,
    schedule_summary,
)
from audit.views.sent_files import send_file_again, sent_file

__all__ = [
    "activity",
    "bodies_for",
    "call_page",
    "change_schedule",
    "delete_view",
    "entries",
    "entry_detail",
    "export",
    "own_entry",
    "platform",
    "proof_export",
    "record_opened",
    "report_file",
    "reports_page",
    "reviews",
    "save_view",
    "schedule_list",
    "schedule_page",
    "schedule_summary",
    "send_file_again",
    "sent_file",
    "verifier",
]
