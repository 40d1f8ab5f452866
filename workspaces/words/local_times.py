"""Moments that the reader's browser writes: it alone knows their time zone where they chose none."""

from __future__ import annotations

from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString


def written_locally(
    at: datetime | None, written: str, exactness: str, zone: str = ""
) -> SafeString:
    """What the server knows, and what `src/pages/times.ts` needs to write it as the browser does.

    Args:
        zone: a time zone that holds in place of the reader's.
    """
    if not at:
        return SafeString()
    place = format_html(' data-zone="{}"', zone) if zone else ""
    element = '<time datetime="{}" data-local="{}"{}>{}</time>'
    return format_html(element, at.isoformat(), exactness, place, written)
