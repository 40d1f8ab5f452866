"""How long what comes with servers and their calls is kept."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from audit.retention.periods import RetentionPeriod, in_days, in_hours
from mcp_servers.registry import health, quotas
from mcp_servers.registry.consent import approvals
from mcp_servers.registry.elicitation import services as elicitation
from mcp_servers.registry.trace import sink
from workspaces.words.formats import whole


def list_periods() -> Sequence[RetentionPeriod]:
    """Checks, traces, counts, approvals and questions."""
    return (
        RetentionPeriod(what=_("Checks of servers"), how_long=in_days(health.KEPT_DAYS)),
        RetentionPeriod(
            what=_("Messages in the live trace"),
            how_long=_("%(time)s, and at most %(rows)s for each server")
            % {"time": in_hours(sink.KEPT_FOR), "rows": whole(sink.MAX_ROWS)},
        ),
        RetentionPeriod(what=_("Counts of calls a day"), how_long=in_days(quotas.KEPT_DAYS)),
        RetentionPeriod(
            what=_("Approvals, after they ran out"),
            how_long=in_days(approvals.KEPT_DAYS),
        ),
        RetentionPeriod(
            what=_("Questions of servers outside conversations, after they ran out"),
            how_long=in_days(elicitation.KEPT_DAYS),
        ),
    )
