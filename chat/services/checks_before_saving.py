"""Running a bud's checks with what is about to be saved: with an earlier version, or with a file."""

from __future__ import annotations

from uuid import UUID

from django.utils.translation import gettext as _

from chat.models import Bud, CheckRun
from chat.services.bud_versions import values_of_version
from chat.services.bud_yaml import BudFile, bud_of_person, names_in_file, read_bud, values_in
from chat.services.buds import require_edit
from chat.services.check_runs import start_run
from workspaces.actors import Actor
from workspaces.errors import InvalidInput
from workspaces.models import User
from workspaces.roles import Permission, require


def check_version(*, bud: Bud, number: int, person: User, actor: Actor) -> CheckRun:
    """Run the checks of a bud with the values of an earlier version.

    Raises:
        NotFound: there is none of that number.
        InvalidInput: there are no checks.
        Conflict: its checks are running.
    """
    require_edit(bud, actor)
    earlier = values_of_version(bud, number)
    return start_run(
        bud=bud,
        person=person,
        actor=actor,
        values=earlier.values,
        provider_id=earlier.provider_id,
    )


def check_file(text: str, *, workspace_id: UUID, person: User, actor: Actor) -> CheckRun:
    """Run the checks of the bud that a file would change: with the file's values, and its checks if it names some.

    Raises:
        InvalidInput: with what is wrong at which field, there is no such bud yet, or there are no checks.
        Conflict: its checks are running.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=workspace_id)
    read = read_bud(text)
    bud = bud_of_person(read, workspace_id, person)
    if bud is None:
        message = _(
            "There is no bud of this short name yet. A new one has no checks to pass: import it."
        )
        raise InvalidInput(fields={"slug": [message]})
    return check_read(read, bud=bud, person=person, actor=actor)


def check_read(read: BudFile, *, bud: Bud, person: User, actor: Actor) -> CheckRun:
    """Run the checks of a bud with what a file says of it.

    Raises:
        As check_file().
    """
    values, provider_id = values_in(read, bud.workspace_id)
    with names_in_file():
        return start_run(
            bud=bud,
            person=person,
            actor=actor,
            values=values,
            provider_id=provider_id,
            shapes=read.checks or None,
        )
