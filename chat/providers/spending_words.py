"""What people read of spending limits, in the words of every page, message and file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.providers.base import MonthLimit
from chat.providers.months import Month
from chat.providers.spending import CrossedThreshold, LimitOwner, LimitUse
from workspaces.words.formats import day, day_in, money, time_zone_of, whole
from workspaces.words.local_times import written_locally

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


def used_in_words(line: LimitUse) -> str:
    """How much is used of the limit that is nearer, such as "8.10 of 10.00 US dollars" or "900 of 1,000 tokens"."""
    limit = line.limit
    is_cost = limit.cost is not None and (
        limit.tokens is None
        or line.is_cost_reached
        or line.percent == _alone(line, MonthLimit(cost=limit.cost)).percent
    )
    if is_cost and limit.cost is not None:
        return _("%(used)s of %(most)s US dollars") % {
            "used": money(line.cost),
            "most": money(limit.cost),
        }
    return _("%(used)s of %(most)s tokens") % {
        "used": whole(line.tokens),
        "most": whole(limit.tokens),
    }


def _alone(line: LimitUse, limit: MonthLimit) -> LimitUse:
    return LimitUse(
        whose=line.whose, subject=line.subject, limit=limit, cost=line.cost, tokens=line.tokens
    )


def limit_in_words(limit: MonthLimit) -> str:
    """A limit, such as "10.00 US dollars and 1,000 tokens"; empty: there is none."""
    parts = []
    if limit.cost is not None:
        parts.append(_("%(most)s US dollars") % {"most": money(limit.cost)})
    if limit.tokens is not None:
        parts.append(_("%(most)s tokens") % {"most": whole(limit.tokens)})
    return _(" and ").join(parts)


def begin_in_words(month: Month) -> str:
    """When a limit begins anew, such as "1 Dec 2026 (Europe/Zurich)"."""
    return f"{day(month.begins_anew_on)} ({month.zone_name})"


def begin_as_read(month: Month) -> SafeString:
    """The same on a page, where the reader's browser writes the day."""
    at, zone = month.begins_anew_at, time_zone_of(month.zone)
    day_there = written_locally(at, day_in(at, zone), "day", month.zone_name)
    return format_html("{} ({})", day_there, month.zone_name)


def refusal_in_words(line: LimitUse, month: Month, provider: str) -> str:
    """Why a model is not asked: which limit, when it begins anew, and whom to ask.

    Args:
        provider: its name in the workspace.
    """
    reason: StrOrPromise
    values = {"used": used_in_words(line), "begin": begin_in_words(month), "provider": provider}
    is_nothing = 0 in (line.limit.cost, line.limit.tokens)
    if not line.is_reached:
        reason = _HELD[line.whose]
    elif line.whose is LimitOwner.MEMBER and is_nothing:
        reason = _(
            "Your monthly spending limit is 0, so models do not answer you here. Ask a workspace admin to raise your"
            " limit."
        )
    elif line.whose is LimitOwner.MEMBER:
        reason = _(
            "You have reached your monthly spending limit: %(used)s. It begins anew on %(begin)s. To go on before then,"
            " ask a workspace admin to raise your limit."
        )
    elif line.whose is LimitOwner.WORKSPACE and is_nothing:
        reason = _(
            "The monthly spending limit of this workspace is 0, so models do not answer here. Ask a workspace admin to"
            " raise it."
        )
    elif line.whose is LimitOwner.WORKSPACE:
        reason = _(
            "This workspace has reached its monthly spending limit. It begins anew on %(begin)s. To go on before then,"
            " ask a workspace admin to raise it."
        )
    elif is_nothing:
        reason = _(
            "Whoever runs Trellis has set this workspace's monthly spending limit for “%(provider)s” to 0. Choose"
            " another model, or ask them to raise it."
        )
    else:
        reason = _(
            "This workspace has reached its monthly spending limit for “%(provider)s”, which whoever runs Trellis has"
            " set. It begins anew on %(begin)s. Choose another model, or ask them to raise it."
        )
    return str(reason % values)


_HELD: Final = {
    LimitOwner.MEMBER: gettext_lazy(
        "Answers that are being written now may use what is left of your monthly spending limit. So far, %(used)s is"
        " used. Try again when they have ended."
    ),
    LimitOwner.WORKSPACE: gettext_lazy(
        "Answers that are being written now may use what is left of this workspace's monthly spending limit. Try again"
        " when they have ended."
    ),
    LimitOwner.PROVIDER: gettext_lazy(
        "Answers that are being written now may use what is left of this workspace's monthly spending limit for"
        " “%(provider)s”. Try again when they have ended, or choose another model."
    ),
}
"""Where a limit is not used up yet."""


def near_in_words(crossed: CrossedThreshold) -> str:
    """What a person reads in the chat once so much of their own limit is used."""
    message = _(
        "You have used %(percent)s%% of your monthly spending limit (%(used)s). It begins anew on %(begin)s."
    )
    return message % {
        "percent": whole(crossed.line.percent),
        "used": used_in_words(crossed.line),
        "begin": begin_in_words(crossed.month),
    }
