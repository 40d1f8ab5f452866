"""From one workspace to another: what menus offer, and all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from workspaces.actors import Role
from workspaces.database.prepared import PreparedRows
from workspaces.models import Membership, User, Workspace, WorkspaceQuery
from workspaces.people.entering import lacks_second_step, listed_workspaces

MOST_IN_MENU: Final = 30
"""Of workspaces in a menu; the page of all of them goes on."""
_ONE_MORE: Final = MOST_IN_MENU + 1
_ADMINISTERING: Final = (Role.ADMIN.value, Role.OWNER.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceMenu:
    """The workspaces that a menu offers."""

    shown: list[Workspace]
    has_more: bool

    @property
    def offers_choice(self) -> bool:
        """Whether there is another one to go to."""
        return len(self.shown) > 1


def choices_of(user: User, current: Workspace | None) -> WorkspaceMenu:
    """A person's workspaces, by name. The current one is among them wherever its name stands."""
    rows = listed_workspaces(user)[:_ONE_MORE] if user.is_superuser else _OPEN.all(user.pk)
    choices = _menu_of(list(rows))
    if current is None or current in choices.shown:
        return choices
    return WorkspaceMenu(
        shown=[current, *choices.shown[: MOST_IN_MENU - 1]], has_more=choices.has_more
    )


def other_admins_of(user: User, current: Workspace) -> WorkspaceMenu:
    """The other workspaces whose admin a person may enter, by name."""
    if user.is_superuser:
        rows = list(listed_workspaces(user).exclude(pk=current.pk)[:_ONE_MORE])
    else:
        rows = _OTHERS.all(user.pk, current.pk)
    return _menu_of(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """A workspace in the list of all that are a person's."""

    workspace: Workspace
    role: str
    """In words; empty: the platform's owner is no member there."""
    is_auditor: bool
    opens_admin: bool
    needs_two_steps: bool
    """It requires two-step verification, and the person has none."""


def entrances_of(user: User, workspaces: Iterable[Workspace]) -> list[Entrance]:
    """As what the person enters these workspaces, and whether they can, in one statement."""
    rows = list(workspaces)
    mine = Membership.objects.across_workspaces().filter(user=user, workspace__in=rows)
    roles: dict[UUID, Membership] = {one.workspace_id: one for one in mine}
    return [_entrance(one, roles.get(one.pk), user) for one in rows]


def _entrance(workspace: Workspace, membership: Membership | None, user: User) -> Entrance:
    is_admin = membership is not None and membership.role in _ADMINISTERING
    return Entrance(
        workspace=workspace,
        role=membership.get_role_display() if membership is not None else "",
        is_auditor=membership is not None and membership.is_auditor,
        opens_admin=is_admin or user.is_superuser,
        needs_two_steps=lacks_second_step(user, workspace),
    )


def _menu_of(found: list[Workspace]) -> WorkspaceMenu:
    return WorkspaceMenu(shown=found[:MOST_IN_MENU], has_more=len(found) > MOST_IN_MENU)


def _open(user_id: UUID) -> WorkspaceQuery:
    return Workspace.objects.joined_by(User(pk=user_id))[:_ONE_MORE]


def _others(user_id: UUID, current_id: UUID) -> WorkspaceQuery:
    mine = Membership.objects.across_workspaces().filter(user=user_id, role__in=_ADMINISTERING)
    others = Workspace.objects.joined_by(User(pk=user_id)).exclude(pk=current_id)
    return others.filter(pk__in=mine.values("workspace_id"))[:_ONE_MORE]


# Each page asks for these, and each of the admin for those.
_OPEN = PreparedRows[Workspace](_open, UUID)
_OTHERS = PreparedRows[Workspace](_others, UUID, UUID)
