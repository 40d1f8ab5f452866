"""The log as a file: for people, for programs, for a SIEM; of any size, in constant memory."""

from audit.exports.columns import COLUMNS, as_json, neutral
from audit.exports.formats import FORMATS, Format, as_csv, as_jsonl
from audit.exports.records import record_export
from audit.exports.report_files import PDF, SCHEDULED, report_pdf
from audit.exports.streams import Encode, stream, stream_async

__all__ = [
    "COLUMNS",
    "FORMATS",
    "PDF",
    "SCHEDULED",
    "Encode",
    "Format",
    "as_csv",
    "as_json",
    "as_jsonl",
    "neutral",
    "record_export",
    "report_pdf",
    "stream",
    "stream_async",
]
