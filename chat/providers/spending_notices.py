"""Lines in the bells of those who can raise a limit of a whole workspace."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import override

from chat.models import ModelProvider
from chat.providers.base import TokenCount
from chat.providers.spending import Bill, CrossedThreshold, LimitOwner, add_to_month
from chat.providers.spending_words import begin_in_words, used_in_words
from workspaces.actors import Role
from workspaces.database import database_now
from workspaces.delivery.bell import tell
from workspaces.models import Membership, User, Workspace
from workspaces.words.formats import whole, written_for

_KIND: Final = "spending.limit"
_FULL: Final = 100


def charge(
    bill: Bill, usage: TokenCount, ended_at: datetime | None = None
) -> list[CrossedThreshold]:
    """Add what a request used to its month, and tell those who can raise a limit that is nearly or wholly used.

    In the caller's transaction, and best at its end.

    Args:
        ended_at: by the database's clock, if the caller has asked for it; else that is now.

    Returns:
        What of the person's own limit is to be told to them.
    """
    crossed = add_to_month(bill, usage, ended_at or database_now())
    workspace_id = bill.allowance.payer.workspace_id
    for one in crossed:
        if one.line.whose is not LimitOwner.MEMBER:
            # Others read it, whoever's question it came of.
            with override(settings.LANGUAGE_CODE), written_for(None):
                _tell(workspace_id, one)
    return [one for one in crossed if one.line.whose is LimitOwner.MEMBER]


def charge_alone(bill: Bill, usage: TokenCount) -> None:
    """The same in a transaction of its own, for requests that are no step of an answer."""
    if usage.total:
        with transaction.atomic():
            charge(bill, usage)


def _tell(workspace_id: UUID, crossed: CrossedThreshold) -> None:
    workspace = Workspace.objects.get(pk=workspace_id)
    people: Iterable[Any]
    if crossed.line.whose is LimitOwner.PROVIDER:
        provider = ModelProvider.objects.for_workspace(workspace_id).filter(
            shared_id=crossed.line.subject
        )
        name = provider.values_list("name", flat=True).first() or ""
        subject = _("“%(name)s” in %(workspace)s") % {"name": name, "workspace": workspace.name}
        owners = User.objects.filter(is_superuser=True, is_active=True)
        people = {*owners.values_list("pk", flat=True), *_admins_of(workspace_id)}
    else:
        subject = workspace.name
        people = _admins_of(workspace_id)
    if crossed.percent >= _FULL:
        title = _("Spending limit reached: %(subject)s")
        text = _(
            "%(used)s this month. Models do not answer until %(begin)s, or until the limit is raised."
        )
    else:
        title = _("%(percent)s%% of the spending limit used: %(subject)s")
        text = _("%(used)s this month. At 100%%, models do not answer until %(begin)s.")
    values = {
        "subject": subject,
        "percent": whole(crossed.line.percent),
        "used": used_in_words(crossed.line),
        "begin": begin_in_words(crossed.month),
    }
    tell(
        workspace_id=workspace_id,
        user_ids=people,
        kind=_KIND,
        title=title % values,
        text=text % values,
        url=reverse("chat:spending", args=[workspace.slug]),
    )


def _admins_of(workspace_id: UUID) -> list[UUID]:
    admins = Membership.objects.for_workspace(workspace_id).filter(
        role__in=[Role.OWNER.value, Role.ADMIN.value], user__is_active=True
    )
    return list(admins.values_list("user_id", flat=True))
