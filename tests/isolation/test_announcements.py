"""Every change of configuration through any route is announced by a service, so the triggers note nothing."""

from __future__ import annotations

import pytest
from django.db import transaction

from audit.models import OutsideWrite
from tests.isolation.calling import call
from tests.isolation.routes import METHODS, SAFE, SAMPLES, address, route_names
from tests.isolation.world import Side, make_world

pytestmark = pytest.mark.django_db


def no_body(_side: Side) -> dict[str, object]:
    return {}


def test_no_route_changes_configuration_in_silence() -> None:
    """Ours: create, change and delete, by the strongest role, with what it would accept."""
    world = make_world()
    OutsideWrite.objects.all().delete()
    client = world.a.tenant.client("owner")
    silent = []
    for name in sorted(set(route_names()) & set(SAMPLES)):
        sample = SAMPLES[name]
        for method in sorted(set(METHODS) - SAFE):
            for make in sample.bodies or (no_body,):
                block = transaction.atomic()
                # The test's own, around everything that a route does: not watched for standing idle.
                block._from_testcase = True  # type: ignore[attr-defined]  # as Django marks its tests' blocks
                with block:
                    call(client, method, address(name, sample, world.a), make(world.a), name)
                    left = list(OutsideWrite.objects.values_list("table_name", "verb", "after"))
                    transaction.set_rollback(True)
                silent += [(name, method, *write) for write in left]
    assert not silent
