"""The pages of the log: the list with its numbers, one entry, and the log as a file."""

from audit.views.entry import entry_detail, record_opened
from audit.views.export import export
from audit.views.log import entries

__all__ = ["entries", "entry_detail", "export", "record_opened"]
