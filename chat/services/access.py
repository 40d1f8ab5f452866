"""The buds that a member may use, and why."""

from __future__ import annotations

from django.utils.translation import gettext as _

from chat.models import Bud
from chat.models.buds import BudVisibility
from workspaces.models import Membership
from workspaces.people.access import AccessCursor, AccessItem, rows_after


def read_buds(membership: Membership, after: AccessCursor | None, most: int) -> list[AccessItem]:
    """Buds that are not archived: the workspace's, and the person's own."""
    rows = (
        Bud.objects.for_workspace(membership.workspace_id)
        .usable_by(membership.user_id)
        .filter(is_draft=False, is_archived=False)
    )
    return [
        AccessItem(
            kind="bud",
            name=bud.name,
            why=_("Everybody in the workspace may use it")
            if bud.visibility == BudVisibility.WORKSPACE
            else _("Their own"),
            key=str(bud.pk),
        )
        for bud in rows_after(rows, after, most)
    ]
