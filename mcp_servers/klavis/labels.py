"""What people call this app's tables and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workspaces.words.texts import gettext_lazy as _

if TYPE_CHECKING:
    from workspaces.words.columns import Columns, Tables

COLUMNS: Final[Columns] = {
    "attempts": _("attempts"),
    "begun_by": _("begun by"),
    "bud_ids": _("buds"),
    "catalogue": _("catalogue"),
    "catalogue_read_at": _("catalogue read"),
    "checked_at": _("checked"),
    "claimed_until": _("worked on until"),
    "found_dialect": _("API that answered"),
    "instance_id": _("id at Klavis"),
    "is_used_everywhere": _("use in every bud that takes all tools"),
    "label": _("name"),
    "last_checked_at": _("last checked"),
    "next_attempt_at": _("next attempt"),
    "next_poll_at": _("next question"),
    "oauth_urls": _("addresses to sign in"),
    "poll_until": _("asked until"),
    "polls": _("questions"),
    "server_url": _("URL"),
    "services": _("services"),
    "state": _("state"),
    "user_key": _("key of the users' names"),
}

TABLES: Final[Tables] = {
    "KlavisAccount": (None, _("Klavis accounts")),
    "KlavisInstance": (None, _("Klavis instances")),
}
