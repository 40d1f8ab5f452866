"""What people are told of what did not fit into a model's window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

if TYPE_CHECKING:
    from chat.engine.context_window import FittedHistory


def notice_of(fitted: FittedHistory) -> str:
    """What was left out or shortened; empty: nothing."""
    parts = []
    if fitted.left_out:
        left_out = ngettext(
            "the oldest question with its answer was left out",
            "the oldest %(count)s questions with their answers were left out",
            fitted.left_out,
        )
        parts.append(left_out % {"count": fitted.left_out})
    if fitted.shortened:
        shortened = ngettext(
            "%(count)s older tool result was shortened",
            "%(count)s older tool results were shortened",
            fitted.shortened,
        )
        parts.append(shortened % {"count": fitted.shortened})
    if not parts:
        return ""
    what = get_text_list(parts, _("and"))
    return _("To fit what the model can read, %(what)s.") % {"what": what}
