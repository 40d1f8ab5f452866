"""What a workspace's file says of its spending limits."""

from __future__ import annotations

from django.utils.translation import gettext as _

from chat.models import MemberSpendingLimit, SpendingPolicy
from chat.providers.base import MonthLimit
from chat.services.spending_limits import (
    LimitsDraft,
    remove_member_limit,
    set_limits,
    set_member_limit,
)
from config.workspace_files.shapes import LimitFile, SpendingFile
from config.workspace_files.target import WorkspaceTarget, faults_at
from workspaces.errors import InvalidInput
from workspaces.models import Membership


def spending_file(target: WorkspaceTarget) -> SpendingFile | None:
    """The limits that are set; None: nobody has set any."""
    rows = SpendingPolicy.objects.for_workspace(target.pk)
    policy: SpendingPolicy | None = rows.first()
    if policy is None:
        return None
    own = MemberSpendingLimit.objects.for_workspace(target.pk).select_related("person")
    return SpendingFile(
        workspace=LimitFile(cost=policy.cost, tokens=policy.tokens),
        member=LimitFile(cost=policy.member_cost, tokens=policy.member_tokens),
        warn_percent=policy.warn_percent,
        time_zone=policy.time_zone or "UTC",
        members={
            row.person.email: LimitFile(cost=row.cost, tokens=row.tokens)
            for row in own.order_by("person__email")
        },
    )


def put_spending(target: WorkspaceTarget, wanted: SpendingFile) -> None:
    """Set the limits as the file says.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    with faults_at("spending"):
        set_limits(
            workspace=target.workspace,
            draft=LimitsDraft(
                workspace=_limit(wanted.workspace),
                member=_limit(wanted.member),
                warn_percent=wanted.warn_percent,
                time_zone=wanted.time_zone,
            ),
            actor=target.actor,
        )
    members = Membership.objects.also_suspended(target.workspace).select_related("user")
    people = {
        row.user.email.lower(): row.user
        for row in members.filter(user__email__in=[one.lower() for one in wanted.members])
    }
    for email, limit in wanted.members.items():
        with faults_at("spending.members"):
            person = people.get(email.lower())
            if person is None:
                message = _("“%(email)s” is no member of this workspace.") % {"email": email}
                raise InvalidInput(fields={email: [message]})
            if limit is None:
                remove_member_limit(workspace=target.workspace, person=person, actor=target.actor)
            else:
                set_member_limit(
                    workspace=target.workspace,
                    person=person,
                    limit=_limit(limit),
                    actor=target.actor,
                )


def _limit(wanted: LimitFile) -> MonthLimit:
    return MonthLimit(cost=wanted.cost, tokens=wanted.tokens)
