"""One builder for each model of the ground, and two workspaces with a person in each role.

The second workspace is full of canaries: strings that must never be seen by anybody of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import factory
import pytest
from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.backends.base import VALID_KEY_CHARS
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from django.utils.crypto import get_random_string

from workspaces.actors import Actor, Source
from workspaces.middleware import actor_for
from workspaces.models import Membership, User, Workspace
from workspaces.people.session_store import SessionStore
from workspaces.roles import Role

PASSWORD = "correct horse battery staple"
CANARY = "canary-of-b"
"""Part of every text in the second workspace."""
BACKEND = "allauth.account.auth_backends.AuthenticationBackend"
"""What people sign in with."""
ROLES = {
    "owner": Role.OWNER,
    "admin": Role.ADMIN,
    "member": Role.MEMBER,
    "auditor": Role.MEMBER,
}
"""The people of a workspace."""


class UserFactory(factory.django.DjangoModelFactory[User]):
    """A person who can sign in with PASSWORD."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    email = factory.Sequence(lambda n: f"person{n}@example.org")
    name = factory.Sequence(lambda n: f"Person {n}")

    @classmethod
    def _create(cls, model_class: type[User], *args: Any, **kwargs: Any) -> User:
        values = {"password": PASSWORD, "is_confirmed": True, **kwargs}
        return User.objects.create_user(**values)


class WorkspaceFactory(factory.django.DjangoModelFactory[Workspace]):
    """An empty workspace."""

    class Meta:
        model = Workspace

    name = factory.Sequence(lambda n: f"Workspace {n}")
    slug = factory.Sequence(lambda n: f"workspace-{n}")


class MembershipFactory(factory.django.DjangoModelFactory[Membership]):
    """A person's role in a workspace; a plain member unless it is said otherwise."""

    class Meta:
        model = Membership

    workspace = factory.SubFactory(WorkspaceFactory)
    user = factory.SubFactory(UserFactory)
    role = Role.MEMBER.value
    is_auditor = False

    @classmethod
    def _get_manager(cls, model_class: type[Membership]) -> Any:
        return model_class.unscoped


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A workspace with a person in each role."""

    workspace: Workspace
    owner: User
    admin: User
    member: User
    auditor: User
    """A plain member with the auditor right."""

    @property
    def people(self) -> dict[str, User]:
        """Everybody, by role."""
        return {
            "owner": self.owner,
            "admin": self.admin,
            "member": self.member,
            "auditor": self.auditor,
        }

    def actor(self, role: str = "admin", source: Source = Source.WEB) -> Actor:
        """The person of that role, acting in this workspace."""
        return actor_for(self.people[role], self.workspace, source=source, request_id="test")

    def allow_personal_servers(self) -> None:
        """Let members have servers of their own."""
        self.workspace.allows_personal_servers = True
        self.workspace.save()

    def client(self, role: str = "admin", **defaults: Any) -> Client:
        """A browser in which that person is signed in."""
        return signed_in(self.people[role], **defaults)

    def sign_in(self, role: str = "admin") -> Client:
        """A browser in which that person has just signed in: the log and their account say so."""
        client = Client()
        client.force_login(self.people[role], backend=BACKEND)
        return client


def signed_in(person: User, **defaults: Any) -> Client:
    """Make a browser with a session of a person: one statement, where a sign-in takes twenty.

    No sign-in is in the log, nor in the account. Tests about that use ``Tenant.sign_in`` or the form.
    """
    client = Client(**defaults)
    values = {
        SESSION_KEY: str(person.pk),
        BACKEND_SESSION_KEY: BACKEND,
        HASH_SESSION_KEY: person.get_session_auth_hash(),
    }
    kept = Session.objects.create(
        session_key=get_random_string(32, VALID_KEY_CHARS),
        session_data=SessionStore().encode(values),
        expire_date=timezone.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE),
    )
    client.cookies[settings.SESSION_COOKIE_NAME] = kept.session_key
    return client


def make_tenant(slug: str, text: str = "") -> Tenant:
    """Make a workspace with a person in each role; ``text`` goes into every name."""
    label = f"{text or slug}"
    workspace = WorkspaceFactory.create(slug=slug, name=f"{label} workspace")
    # Nearly every test begins with this, so the rows that `create_user` makes are written in three statements.
    password = make_password(PASSWORD)
    people = {
        name: User(
            email=f"{name}@{slug}.example.org".lower(),
            name=f"{label} {name}",
            password=password,
            is_address_confirmed=True,
        )
        for name in ROLES
    }
    User.objects.bulk_create(people.values())
    EmailAddress.objects.bulk_create(
        EmailAddress(user=user, email=user.email, primary=True, verified=True)
        for user in people.values()
    )
    Membership.unscoped.bulk_create(
        Membership(
            workspace=workspace, user=user, role=ROLES[name].value, is_auditor=name == "auditor"
        )
        for name, user in people.items()
    )
    return Tenant(workspace=workspace, **people)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoTenants:
    """Two workspaces that must know nothing of each other."""

    a: Tenant
    b: Tenant


@pytest.fixture
def tenant(db: None) -> Tenant:
    """One workspace with a person in each role."""
    return make_tenant("a")


@pytest.fixture
def two_workspaces(db: None) -> TwoTenants:
    """Two workspaces with a person in each role; every text of the second holds CANARY."""
    return TwoTenants(a=make_tenant("a"), b=make_tenant(CANARY, CANARY))


@pytest.fixture
def superuser(db: None) -> User:
    """The platform's owner, who is in no workspace."""
    return UserFactory.create(email="root@platform.example.org", is_superuser=True)
