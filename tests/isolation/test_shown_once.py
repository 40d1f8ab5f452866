"""Every answer of the REST interface that is stored for a repeated request, searched for secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any, cast

import pytest
from django.contrib.auth import get_user
from django.test import Client

from tests.isolation.calling import call
from tests.isolation.routes import SAMPLES, address, route_names
from tests.isolation.state import tenant_models
from tests.isolation.world import Side, World, make_world
from workspaces.models import IdempotentRequest
from workspaces.redaction import EVERY_WORKSPACE, is_secret_key, redact_known
from workspaces.secrets import encrypted_fields

pytestmark = [
    pytest.mark.django_db(transaction=True),  # some calls commit in another thread
    pytest.mark.usefixtures("no_known_secrets"),
]
POSTED = [name for name in route_names() if name.startswith("api:") and name in SAMPLES]
RANDOM = re.compile(r"[A-Za-z0-9_-]{24,}")
"""What looks like a token."""
CHECKSUMS = {"sha256"}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def no_body(_side: Side) -> dict[str, object]:
    return {}


def secrets_of(side: Side) -> Iterator[str]:
    """Every secret that is stored in a workspace now, and each value of those that hold several."""
    for model in tenant_models():
        for row in model._base_manager.filter(workspace_id=side.tenant.workspace.pk):
            for field in encrypted_fields(model):
                secret = getattr(row, field.attname)
                if secret is None:
                    continue
                plain = secret.reveal("searching for it", is_credential=False)
                yield plain
                try:
                    held = json.loads(plain)
                except ValueError:
                    continue
                if isinstance(held, dict):
                    yield from (value for value in held.values() if isinstance(value, str))


def fields_of(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text of an answer with the name that it stands under."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from fields_of(part, key)
    elif isinstance(value, list):
        for part in value:
            yield from fields_of(part, name)
    elif isinstance(value, str):
        yield name, value


def post_everything(world: World) -> dict[str, tuple[Any, IdempotentRequest]]:
    """Each POST of the schema with a key of its own, as each role that matters: what was answered, and what was stored."""
    found = {}
    rows = IdempotentRequest.objects.for_workspace(world.a.tenant.workspace)
    clients: dict[str, Client] = {}
    for role, name in product(("owner", "member"), POSTED):
        sample = SAMPLES[name]
        for number, make in enumerate(sample.bodies or (no_body,)):
            key = f"{role} {name} {number}"
            if role not in clients or not get_user(cast("Any", clients[role])).is_authenticated:
                # They have not signed in yet, or one of the calls has signed them out.
                world.a.tenant.people[role].refresh_from_db()
                clients[role] = world.a.tenant.client(role, headers={"X-Workspace": world.a.slug})
                clients[role].raise_request_exception = False
            client = clients[role]
            client.defaults["HTTP_IDEMPOTENCY_KEY"] = key
            answer = call(client, "POST", address(name, sample, world.a), make(world.a), name)
            stored = rows.filter(key=key).exclude(status_code=None).first()
            if stored is not None:
                found[key] = (answer, stored)
    return found


def test_no_stored_answer_holds_a_secret() -> None:
    """SEC-225: webhook secrets, keys, tokens, credentials; by value, by name, and by what only the first answer had."""
    world = make_world()
    found = post_everything(world)
    secrets = {secret for secret in secrets_of(world.a) if len(secret) >= 6}
    shown_once = 0
    for name, (answer, stored) in found.items():
        text = json.dumps(stored.body)
        assert not [secret for secret in secrets if secret in text], name
        assert redact_known(text, workspace_id=EVERY_WORKSPACE) == text, name
        named = [field for field, _ in fields_of(stored.body) if is_secret_key(field)]
        assert not named, name
        given = [value for field, value in fields_of(answer.json()) if is_secret_key(field)]
        assert not [value for value in given if value in text], name
        shown_once += len(given)
        left = [
            value
            for field, value in fields_of(stored.body)
            if field not in CHECKSUMS and RANDOM.search(UUID.sub("", value))
        ]
        assert not [value for value in left if value not in str(world.a.rows)], (name, left)
    assert shown_once >= 2, "the sweep did not meet the answers that show a secret"


def test_a_repeated_request_says_that_the_secret_was_shown() -> None:
    """SEC-225, REL-02: the same answer without the secret, and nothing is done twice."""
    world = make_world()
    headers = {"X-Workspace": world.a.tenant.workspace.slug, "Idempotency-Key": "once"}
    client = world.a.tenant.client("owner", headers=headers)
    body = {"url": "https://hook.example.org/", "events": ["turn.finished"]}
    first, second = (
        client.post("/api/webhooks/", body, content_type="application/json") for _ in range(2)
    )
    assert first.status_code == second.status_code == 201
    assert first.json()["secret"]
    assert second["Idempotency-Replayed"] == "true"
    assert second.json() == {**first.json(), "secret": None}
