"""The log as a file: for people, for programs, for a SIEM; of any size, in constant memory."""

from audit.exports.columns import COLUMNS, as_json, neutral
from audit.exports.formats import FORMATS, Format
from audit.exports.records import record_export
from audit.exports.report_files import PDF, SCHEDULED, report_pdf
from audit.exports.streams import removals_since

__all__ = [
    "COLUMNS",
    "FORMATS",
    "PDF",
    "SCHEDULED",
    "Format",
    "as_json",
    "neutral",
    "record_export",
    "removals_since",
    "report_pdf",
]
