"""Who can sign in to the demo workspace."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.hashers import check_password
from django.db import transaction

from workspaces.actors import Actor, Role, Source
from workspaces.changes import record_created
from workspaces.models import Membership, User, Workspace

SLUG = "demo"
PASSWORD = "trellis-demo"  # noqa: S105 - printed at the start, and only for the demo


@dataclass(frozen=True, slots=True)
class DemoPerson:
    email: str
    name: str
    role: Role
    is_auditor: bool
    what: str


PEOPLE = (
    DemoPerson("admin@demo.example", "Ada Admin", Role.OWNER, False, "workspace admin"),
    DemoPerson("member@demo.example", "Max Member", Role.MEMBER, False, "end user"),
    DemoPerson("auditor@demo.example", "Olga Ops", Role.MEMBER, True, "auditor"),
)


@transaction.atomic
def seed_people() -> Workspace:
    """The demo workspace, made with its people. Nobody comes into one that is there, whatever became of them since."""
    workspace = Workspace.objects.filter(slug=SLUG).first()
    if workspace is not None:
        return workspace
    workspace = Workspace.objects.create(slug=SLUG, name="Demo workspace")
    record_created(workspace, actor=_seeder(workspace))
    for person in PEOPLE:
        if User.objects.filter(email=person.email).exists():
            continue
        user = User.objects.create_user(person.email, PASSWORD, name=person.name, is_confirmed=True)
        membership = Membership.objects.create(
            workspace=workspace,
            user=user,
            role=person.role.value,
            is_auditor=person.is_auditor,
        )
        record_created(membership, actor=_seeder(workspace))
    return workspace


def takes_known_password() -> bool:
    """Whether somebody of the demo can sign in with the password that everybody can read."""
    emails = [person.email for person in PEOPLE]
    there = User.objects.filter(email__in=emails, is_active=True)
    return any(check_password(PASSWORD, kept) for kept in there.values_list("password", flat=True))


def _seeder(workspace: Workspace) -> Actor:
    return Actor.system(label="demo content", source=Source.COMMAND, workspace_id=workspace.pk)
