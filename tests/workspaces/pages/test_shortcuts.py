"""Keyboard shortcuts are a setting of the person: every page of theirs carries their own keys."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest

from tests.factories import Tenant
from tests.workspaces.pages.profile import profile, root_of
from workspaces.people.shortcuts import MOST

pytestmark = pytest.mark.django_db

PAGE = "/account/shortcuts/"
CHOICE = {"is_on": True, "keys": {"newChat": ["alt", "n"], "search": []}}


def carried(root: str) -> Any:
    """What a page carries for the web app; None: the usual keys."""
    _, found, rest = root.partition('data-shortcuts="')
    return json.loads(unescape(rest.partition('"')[0])) if found else None


def test_every_page_carries_the_keys_of_its_person(tenant: Tenant) -> None:
    """REL-1050: on another device too, and nobody else's."""
    member = tenant.client("member")
    assert carried(root_of(member, PAGE)) is None
    assert profile(member, tenant).json()["shortcuts"] is None
    assert profile(member, tenant, shortcuts=CHOICE).json()["shortcuts"] == CHOICE
    other_device = tenant.client("member")
    for path in (f"/w/{tenant.workspace.slug}/", f"/w/{tenant.workspace.slug}/servers/", PAGE):
        assert carried(root_of(other_device, path)) == CHOICE, path
    assert carried(root_of(tenant.client("admin"), PAGE)) is None
    assert profile(member, tenant, name="Mia").json()["shortcuts"] == CHOICE
    assert profile(member, tenant, shortcuts=None).json()["shortcuts"] is None
    assert carried(root_of(other_device, PAGE)) is None


@pytest.mark.parametrize(
    ("shortcuts", "message"),
    [
        ({"keys": {"newChat": ["j"]}}, "need Ctrl, Command or Alt"),
        ({"keys": {"newChat": ["shift", "?"]}}, "need Ctrl, Command or Alt"),
        ({"keys": {"newChat": ["mod", "alt"]}}, "need Ctrl, Command or Alt"),
        ({"keys": {"newChat": ["x", "mod", "y"]}}, "need Ctrl, Command or Alt"),
        ({"keys": {"newChat": ["mod", "J"], "search": ["mod", "j"]}}, "another shortcut"),
        ({"keys": {"new chat": ["mod", "j"]}}, "no keys that Trellis knows"),
        ({"keys": {"newChat": ["mod", "\u0007"]}}, "no keys that Trellis knows"),
        ({"keys": {"newChat": ["mod", "mod"]}}, "no keys that Trellis knows"),
        ({"keys": {f"n{'x' * n}": [] for n in range(MOST + 1)}}, f"at most {MOST}"),
        ({"keys": {"newChat": ["mod"] * 9}}, ""),
        ({"keys": {"newChat": "mod"}}, ""),
        ({"keys": [1]}, ""),
        ("off", ""),
    ],
)
def test_keys_that_are_none_are_refused_at_the_field(
    tenant: Tenant, shortcuts: Any, message: str
) -> None:
    """REL-1050: and nothing of the request is kept."""
    member = tenant.client("member")
    answer = profile(member, tenant, name="New name", shortcuts=shortcuts)
    assert answer.status_code in {400, 422}
    faults = answer.json()["errors"]
    assert all(fault["attr"].startswith("shortcuts") for fault in faults)
    assert message in " ".join(fault["detail"] for fault in faults)
    kept = profile(member, tenant).json()
    assert (kept["shortcuts"], kept["name"]) == (None, tenant.people["member"].name)


def test_keys_that_write_nothing_need_no_other(tenant: Tenant) -> None:
    choice = {"is_on": False, "keys": {"newChat": ["f2"], "composer": ["shift", "escape"]}}
    answer = profile(tenant.client("member"), tenant, shortcuts=choice)
    assert answer.json()["shortcuts"] == choice
