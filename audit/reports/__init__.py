"""The read side of the log: queries into typed values. Every one begins at the workspace's door."""

from audit.reports.charts import Chart, Series, Totals, chart_of, totals_of
from audit.reports.entries import (
    Choices,
    Page,
    choices_of,
    entries_of,
    matching,
    may_see_bodies,
    page_of,
    related_to,
)

__all__ = [
    "Chart",
    "Choices",
    "Page",
    "Series",
    "Totals",
    "chart_of",
    "choices_of",
    "entries_of",
    "matching",
    "may_see_bodies",
    "page_of",
    "related_to",
    "totals_of",
]
