"""What the pages of the log share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.utils.translation import gettext

from audit.actions import sentence_of, title_of
from audit.filters import ENTRIES
from audit.models import AuditEntry
from audit.reports.filter_words import source_in_words
from audit.views.words import ended, layer_in_words
from workspaces.words.formats import percent

if TYPE_CHECKING:
    from audit.reports.providers import UptimeStrip


AROUND: Final = timedelta(minutes=1)
"""What "around this" means, before and after."""


def described(entry: AuditEntry) -> AuditEntry:
    """Add the words for people, which the templates read."""
    described: Any = entry
    described.sentence = gettext(sentence_of(entry.action))
    described.action_label = gettext(title_of(entry.action))
    described.ended, described.tone = ended(entry.outcome, entry.refused_by)
    described.came_from = source_in_words(entry.source)
    described.refusal = layer_in_words(entry.refused_by)
    return entry


def found_by(log_url: str, **filters: object) -> str:
    """Give the address of everything in the log with these values, whenever it was."""
    return f"{log_url}?{urlencode({'range': 'all', **filters})}"


def call_url(log_url: str, call_id: UUID) -> str:
    """Give the address of a call's page."""
    return f"{log_url}calls/{call_id}/"


def shown_strip(strip: UptimeStrip, url: str) -> dict[str, Any]:
    """Give how a server was, as `_server_strips.html` shows it.

    Args:
        url: of what the log says of its failures.
    """
    return {
        "strip": strip,
        "pieces": [
            "none" if piece is None else "ok" if piece >= 1 else "part" if piece > 0 else "down"
            for piece in strip.pieces
        ],
        "uptime": None if strip.uptime is None else percent(strip.uptime, 2),
        "url": url,
    }


def around(log_url: str, entries: Sequence[AuditEntry]) -> str:
    """Give the address of every entry of the minute before these, which are in order, and of the minute after."""
    since, until = entries[0].created_at - AROUND, entries[-1].created_at + AROUND
    moments = {"since": f"{since:%Y-%m-%dT%H:%M:%S.%fZ}", "until": f"{until:%Y-%m-%dT%H:%M:%S.%fZ}"}
    return f"{log_url}?{urlencode({'range': 'custom', **moments, 'show': ENTRIES})}"
