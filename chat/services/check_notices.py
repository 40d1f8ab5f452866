"""Lines in people's bells about checks that ran by themselves."""

from __future__ import annotations

from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from chat.models import Bud, CheckRun
from workspaces.delivery.bell import tell


def tell_of_faults(run: CheckRun, passed: int) -> None:
    """Tell whoever chose the schedule that checks of a scheduled run failed. In the caller's transaction."""
    if not run.is_scheduled or run.person_id is None or passed == run.total:
        return
    failed = run.total - passed
    counts = {"failed": failed, "total": run.total}
    text = ngettext(
        "%(failed)d of %(total)d checks failed when they ran on schedule.",
        "%(failed)d of %(total)d checks failed when they ran on schedule.",
        failed,
    )
    tell_person(run.bud, run.person_id, text % counts)


def tell_person(bud: Bud, person_id: UUID, text: str) -> None:
    """Put a line about a bud's checks into a person's bell. In the caller's transaction."""
    path = reverse("chat:bud", args=[bud.workspace.slug, bud.pk])
    tell(
        workspace_id=bud.workspace_id,
        user_ids=[person_id],
        kind="checks",
        title=gettext("Checks of %(bud)s") % {"bud": bud.name},
        text=text,
        url=f"{path}#checks",
    )
