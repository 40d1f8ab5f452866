"""How long what belongs to sign-ins of clients is kept."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from audit.retention.periods import RetentionPeriod, in_days
from mcp_servers.endpoint.sign_in import clients, grants


def list_periods() -> Sequence[RetentionPeriod]:
    """Sign-ins, their tokens, and clients."""
    return (
        RetentionPeriod(
            what=_("Sign-ins of other MCP clients, after their last use"),
            how_long=in_days(grants.REFRESH_LIFE.days),
        ),
        RetentionPeriod(
            what=_("Used refresh tokens of MCP clients (as hashes)"),
            how_long=in_days(grants.NOTICED_FOR.days),
        ),
        RetentionPeriod(
            what=_("MCP clients that registered, after their last sign-in"),
            how_long=in_days(clients.IDLE_FOR.days),
        ),
    )
