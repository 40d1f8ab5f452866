"""Times and limits of a connection, as fields of a form: each with its unit and its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from mcp_servers.models.connection_config import ConnectionConfig
from workspaces.pages.numbers import NumberField, WholeNumberField
from workspaces.words.formats import whole

if TYPE_CHECKING:
    from workspaces.words.texts import Text

LIMITS: Final = {
    "connect_seconds": (_("Time to connect"), _("seconds")),
    "call_seconds": (_("Time for a call without a sign of progress"), _("seconds")),
    "hard_call_seconds": (_("Time for a call in all"), _("seconds")),
    "queue_seconds": (_("Time that a call waits for its turn"), _("seconds")),
    "idle_seconds": (_("Time without a call until the connection closes"), _("seconds")),
    "max_concurrent_calls": (_("Calls at the same time"), _("calls")),
    "max_queued_calls": (_("Calls that may wait"), _("calls")),
    "max_attempts": (_("Attempts to connect in a row"), _("attempts")),
    "result_bytes": (_("Largest part of a result that is kept"), _("bytes")),
    "calls_per_day": (_("Calls on one day, by everybody together"), _("calls")),
}
"""Label and unit."""
_EMPTY: Final = {
    "call_seconds": _("Leave empty to use the platform's setting."),
    "hard_call_seconds": _("Leave empty for ten times the time of a call."),
    "calls_per_day": _("Leave empty for no limit."),
}
"""Which may be empty, and what that means."""
_WHOLE: Final = frozenset(
    {
        "max_concurrent_calls",
        "max_queued_calls",
        "max_attempts",
        "result_bytes",
        "calls_per_day",
    }
)


def limit_fields() -> dict[str, forms.Field]:
    """Make a field for each of them."""
    found: dict[str, forms.Field] = {}
    for name, (label, unit) in LIMITS.items():
        bounds = _bounds(name)
        kind = WholeNumberField if name in _WHOLE else NumberField
        found[name] = kind(
            label=label,
            required=name not in _EMPTY,
            help_text=_EMPTY.get(name, ""),
            min_value=bounds.get("ge"),
            max_value=bounds.get("le"),
        )
        found[name].unit = unit  # type: ignore[attr-defined]  # shown beside the input
    return found


def limit_help(name: str) -> Text:
    """Tell of a field its unit, its bounds and what it means to leave it empty."""
    bounds, default = _bounds(name), ConnectionConfig.model_fields[name].default
    return format_lazy(
        "{range} {empty}",
        range=format_lazy(
            _("In {unit}, from {least} to {most}."),
            unit=LIMITS[name][1],
            least=whole(bounds["ge"]),
            most=whole(bounds["le"]),
        ),
        empty=_EMPTY.get(name)
        or format_lazy(_("Leave empty for {default}."), default=whole(default)),
    )


def written_limits(config: ConnectionConfig) -> dict[str, float | None]:
    """Give what the fields show."""
    return {name: _plain(getattr(config, name)) for name in LIMITS}


def read_limits(values: Mapping[str, Any]) -> dict[str, object]:
    """Give what was entered; the others are the platform's."""
    return {name: values[name] for name in LIMITS if values.get(name) is not None}


def _plain(value: float | None) -> float | None:
    """Whole numbers without a point."""
    return int(value) if value is not None and value == int(value) else value


def _bounds(name: str) -> dict[str, Any]:
    """The limits of a field, from where they are defined."""
    found: dict[str, Any] = {}
    for constraint in ConnectionConfig.model_fields[name].metadata:
        for bound in ("ge", "le"):
            if getattr(constraint, bound, None) is not None:
                found[bound] = getattr(constraint, bound)
    return found
