"""For whom a command of the terminal works: a workspace by its slug, and a person of it."""

from __future__ import annotations

import getpass
import platform
from typing import NoReturn

from django.core.management.base import CommandError, CommandParser
from uuid_utils.compat import uuid7

from workspaces.actors import Actor, Source
from workspaces.middleware import actor_for
from workspaces.models import Membership, User, Workspace


def person_at_machine() -> str:
    """The person who runs this, as the machine knows them."""
    try:
        return f"{getpass.getuser()} on {platform.node()}"
    except (KeyError, OSError):
        return platform.node()


def add_who(parser: CommandParser) -> None:
    """Take ``--workspace`` and ``--user``."""
    parser.add_argument("--workspace", required=True, help="the workspace's slug")
    parser.add_argument("--user", help="e-mail address; default: the workspace's first owner")


def find_workspace(slug: str) -> Workspace:
    """Give an open workspace; a wrong name, or that of a suspended one, ends the command."""
    workspace = Workspace.objects.filter(slug=slug).first()
    if workspace is None:
        bad_arguments(f"There is no workspace “{slug}”.")
    if not workspace.is_active:
        bad_arguments(f"The workspace “{slug}” is suspended. Open it again first.")
    return workspace


def find_person(workspace: Workspace, email: str | None) -> tuple[User, Actor]:
    """Give a member and who they are here; a wrong address ends the command."""
    members = Membership.objects.for_workspace(workspace).select_related("user")
    members = members.filter(user__is_active=True)
    if email:
        member = members.filter(user__email__iexact=email).first()
    else:
        member = members.filter(role="owner").order_by("created_at").first()
    if member is None:
        bad_arguments(
            f"{email} is no member of this workspace."
            if email
            else "This workspace has no owner. Name a member with --user."
        )
    user: User = member.user
    actor = actor_for(user, workspace, source=Source.COMMAND, request_id=str(uuid7()))
    return user, actor


def bad_arguments(message: str) -> NoReturn:
    """End the command with status 2."""
    raise CommandError(message, returncode=2)
