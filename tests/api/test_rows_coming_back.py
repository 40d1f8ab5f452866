"""Programs read a row, change one field, and send all of it back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import transaction
from django.urls import resolve

from chat.models import Conversation
from chat.values import TitleSource
from tests.isolation.routes import SAMPLES, address
from tests.isolation.world import World

NOT_THEIRS = 409
"""A view that somebody else made and shared."""
MOVED_BY_ANY_CHANGE = frozenset({"updated_at", "version", "next_attempt_at"})
OF_A_NEW_CHOICE = frozenset({"person", "next_at", "trouble"})
"""Whoever chooses a plan of checks that could not run takes it over."""


@pytest.mark.django_db
def test_what_a_row_shows_may_come_back(world: World) -> None:
    """REL-3201: each address that takes a PATCH takes what it shows, and shows the same afterwards."""
    clients = [world.a.client(role) for role in ("owner", "member")]
    faults: dict[str, Any] = {}
    tried = []
    for name, sample in SAMPLES.items():
        url = address(name, sample, world.a)
        actions = getattr(resolve(url).func, "actions", {})
        if not {"get", "patch"} <= set(actions):
            continue
        person = next((one for one in clients if one.get(url).status_code == 200), None)
        with transaction.atomic():
            if person is not None:
                shown = person.get(url)
                tried.append(name)
                sent = json.dumps(shown.json())
                answer = person.generic("PATCH", url, sent, content_type="application/json")
                if answer.status_code == NOT_THEIRS:
                    assert shown.json()["is_shared"]
                elif answer.status_code != 200:
                    faults[name] = answer.json()
                elif changed := _difference(shown.json(), person.get(url).json()):
                    faults[name] = changed
            transaction.set_rollback(True)
    assert not faults, json.dumps(faults, indent=1)
    assert len(tried) > 15, tried


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [value, after[name]]
        for name, value in before.items()
        if name not in MOVED_BY_ANY_CHANGE | OF_A_NEW_CHOICE and after[name] != value
    }


@pytest.mark.django_db
def test_a_chat_without_a_title_comes_back_without_one(world: World) -> None:
    """REL-3201: it was refused for its empty title. One that a program only pins keeps the title that Trellis gives."""
    owner, side = world.a.client("owner"), world.a

    def change(url: str, body: dict[str, Any]) -> Any:
        return owner.generic("PATCH", url, json.dumps(body), content_type="application/json")

    made = owner.post("/api/conversations/", {"bud_id": str(side["bud"].pk)}, "application/json")
    url = f"/api/conversations/{made.json()['id']}/"
    assert made.json()["title"] == ""
    pinned = change(url, {**made.json(), "is_pinned": True})
    assert (pinned.status_code, pinned.json()["is_pinned"]) == (200, True)
    row = Conversation.objects.for_workspace(side.tenant.workspace).get(pk=made.json()["id"])
    assert row.title_source != TitleSource.PERSON
    assert change(url, {"title": "Named"}).json()["title"] == "Named"
    refused = change(url, {"title": " "})
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (400, "blank")
