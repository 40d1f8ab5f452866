"""Calls of the platform's owner to the REST interface: from a browser, or with a token."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.factories import MembershipFactory, signed_in
from workspaces.actors import Source
from workspaces.middleware import actor_for
from workspaces.models import User, Workspace
from workspaces.people.tokens import issue_token
from workspaces.roles import Role

URL = "/api/platform/"


@dataclass(frozen=True, slots=True)
class Api:
    """Somebody's way to `/api/platform/`."""

    client: Client
    headers: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send JSON."""
        return self.client.generic(
            method,
            f"{URL}{path}",
            "" if body is None else json.dumps(body),
            content_type="application/json",
            headers=self.headers | headers,
        )

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", path, body, **headers)

    def patch(self, path: str, body: Any) -> Any:
        return self.call("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self.call("DELETE", path)

    def statements(self, path: str) -> int:
        """How many a list takes."""
        with CaptureQueriesContext(connection) as asked:
            assert self.get(path).status_code == 200
        return len(asked)


def in_browser(person: User) -> Api:
    """As the person who is signed in."""
    client = signed_in(person, raise_request_exception=False)
    return Api(client)


@pytest.fixture
def root(superuser: User) -> Api:
    """The browser of the platform's owner."""
    return in_browser(superuser)


def issue(person: User, workspace: Workspace, *scopes: str, days: float = 1) -> str:
    """A token that the person makes for themselves on the page of that workspace."""
    _, plain = issue_token(
        workspace=workspace,
        user=person,
        name="script",
        scopes=scopes,
        expires_at=timezone.now() + timedelta(days=days),
        actor=actor_for(person, workspace, source=Source.WEB),
    )
    return plain


def with_token(person: User, workspace: Workspace, *scopes: str, role: Role = Role.MEMBER) -> Api:
    """As a program of the person, who is a member of the workspace."""
    if not person.memberships.filter(workspace=workspace).exists():
        MembershipFactory.create(user=person, workspace=workspace, role=role.value)
    plain = issue(person, workspace, *scopes)
    return Api(Client(raise_request_exception=False), {"Authorization": f"Bearer {plain}"})


def faults(answer: Any) -> dict[str, str]:
    """The code of each fault by its field; "" for one of none."""
    return {one["attr"] or "": one["code"] for one in answer.json()["errors"]}
