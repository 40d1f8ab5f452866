"""How a template writes a moment and a number. Each filter says what is meant; `workspaces.words.formats` says how it looks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, tzinfo

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from workspaces.words import formats
from workspaces.words.local_times import written_locally

register = template.Library()


@register.simple_tag
def formats_of_person() -> SafeString:
    """Give the attribute of `<html>` with what the person chose; `src/formats.ts` reads it.

    Where nothing was chosen there is none, and the browser's own ways hold.
    """
    chosen = formats.current().chosen
    return format_html(' data-formats="{}"', json.dumps(chosen)) if chosen else SafeString()


for _write in (
    formats.day,
    formats.moment,
    formats.moment_and_zone,
    formats.whole,
    formats.decimal,
    formats.money,
    formats.plain,
    formats.file_size,
):
    register.filter(_write.__name__, _write)


@register.filter
def local_day(at: datetime | None) -> SafeString:
    """A day that the reader's browser writes."""
    return written_locally(at, formats.day(at), "day")


@register.filter
def local_moment(at: datetime | None) -> SafeString:
    """A moment that the reader's browser writes."""
    return written_locally(at, formats.moment(at), "minute")


@register.filter
def local_day_in_utc(at: datetime | None) -> SafeString:
    """A day in UTC that the reader's browser writes, beside words that say that it is in UTC."""
    return written_locally(at, formats.day_in_utc(at), "day", "UTC")


@register.filter
def local_moment_in(at: datetime | None, zone: tzinfo) -> SafeString:
    """A moment that the reader's browser writes, beside words that say in which time zone it is."""
    return written_locally(at, formats.moment_in(at, zone), "minute", str(zone))


@register.filter
def local_exact_moment(at: datetime | None) -> SafeString:
    """A moment with its seconds that the reader's browser writes."""
    return written_locally(at, formats.exact_moment(at), "second")


@register.filter
def local_instant(at: datetime | None) -> SafeString:
    """A time of day with its milliseconds that the reader's browser writes."""
    clock = f"{formats.exact_clock(at)}.{at.microsecond // 1000:03}" if at else ""
    return written_locally(at, clock, "instant")


@register.filter
def typed_in_utc(at: datetime | None) -> str:
    """The value of a field of the type `datetime-local` that is in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}" if at else ""
