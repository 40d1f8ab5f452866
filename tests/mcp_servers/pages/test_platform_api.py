"""The program catalogue and the platform's servers over REST, for the platform's owner."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from audit.models import AuditEntry
from mcp_servers.models import GlobalServer, McpServer, StdioProgram
from mcp_servers.registry import services
from tests.factories import Tenant
from tests.platform_api import Api, faults, with_token
from workspaces.actors import Source
from workspaces.errors import PermissionDenied
from workspaces.middleware import actor_for
from workspaces.models import ApiToken, User
from workspaces.people.tokens import PLATFORM_READ, PLATFORM_WRITE

pytestmark = pytest.mark.django_db

PROGRAM = {
    "title": "Clock",
    "slug": "clock",
    "command": sys.executable,
    "args": ["-m", "clock", "--zone={zone}"],
    "parameters": [{"name": "zone", "title": "Zone", "type": "word", "required": True}],
    "env_names": ["CLOCK_TOKEN"],
}


def test_programs_are_added_changed_accepted_and_deleted(
    root: Api, superuser: User, tenant: Tenant
) -> None:
    """REL-1060: as the form does it, with its files pinned. One that servers run is not deleted."""
    made = root.post("programs/", PROGRAM)
    assert made.status_code == 201, made.content
    [parameter] = made.json()["parameters"]
    assert (parameter["name"], parameter["type"], parameter["required"]) == ("zone", "word", True)
    for name in ("title", "command", "args", "env_names"):
        assert made.json()[name] == PROGRAM[name]
    assert StdioProgram.objects.get().parameters == PROGRAM["parameters"]
    path = f"programs/{made.json()['id']}/"
    off = root.patch(path, {"is_enabled": False}).json()
    assert (off["is_enabled"], off["args"]) == (False, PROGRAM["args"])
    StdioProgram.objects.update(problem="It has changed.")
    accepted = root.post(f"{path}accept/").json()
    assert (accepted["is_enabled"], accepted["problem"]) == (True, "")
    program = StdioProgram.objects.get()
    server = McpServer.objects.create(
        workspace=tenant.workspace, name="clock", transport="stdio", program=program
    )
    refused = root.delete(path)
    assert (refused.status_code, "clock" in refused.content.decode()) == (409, True)
    server.delete()
    assert root.delete(path).status_code == 204
    rows = AuditEntry.objects.across_workspaces().filter(details__kind="program").order_by("pk")
    assert [(one.details["verb"], one.actor_label) for one in rows] == [
        (verb, superuser.email) for verb in ("created", "changed", "changed", "deleted")
    ]


@pytest.mark.parametrize(
    ("changes", "status", "fields"),
    [
        ({"title": ""}, 400, {"title"}),
        ({"slug": "not a slug"}, 422, {"slug"}),
        ({"slug": "taken"}, 422, {"slug"}),
        ({"command": "sh -c ls"}, 422, {"command"}),
        ({"args": ["{unknown}"]}, 422, {"args"}),
        ({"args": "ls"}, 400, {"args"}),
        ({"env_names": ["PATH"]}, 422, {"env_names"}),
        ({"parameters": [{"name": "zone"}]}, 400, {"parameters.0.title"}),
        ({"parameters": [{"name": "Zone", "title": "x"}]}, 422, {"parameters"}),
        ({"command": "/usr/bin/npx", "args": ["pkg"], "parameters": []}, 422, {"args"}),
        ({"cwd": "/"}, 400, {"cwd"}),
    ],
)
def test_a_faulty_program_is_told_at_its_field(
    root: Api, changes: dict[str, Any], status: int, fields: set[str]
) -> None:
    """REL-1060."""
    StdioProgram.objects.create(slug="taken", title="Taken", command="python")
    answer = root.post("programs/", {**PROGRAM, **changes})
    assert (answer.status_code, set(faults(answer))) == (status, fields)
    assert StdioProgram.objects.count() == 1


def test_no_token_decides_what_runs_here(superuser: User, tenant: Tenant) -> None:
    """SEC-502: the service itself refuses it. A token reads the catalogue."""
    program = StdioProgram.objects.create(slug="clock", title="Clock", command="python")
    api = with_token(superuser, tenant.workspace, PLATFORM_READ, PLATFORM_WRITE)
    assert api.get(f"programs/{program.pk}/").json()["title"] == "Clock"
    assert api.delete(f"programs/{program.pk}/").status_code == 403
    token = ApiToken.objects.for_workspace(tenant.workspace).get()
    actor = actor_for(superuser, None, source=Source.API, token=token)
    for verb in (services.save_program, services.delete_program, services.accept_program):
        with pytest.raises(PermissionDenied):
            verb(program=program, actor=actor)
    assert StdioProgram.objects.get().is_enabled


def test_known_programs_fill_a_new_entry(root: Api) -> None:
    """REL-1060: as the form that a link of the catalogue opens."""
    known = root.get("programs/known/").json()
    assert known
    for one in known:
        one.pop("package")
        assert root.post("programs/", one).status_code in {201, 422}  # not every machine has them
    assert StdioProgram.objects.exists()


def test_the_platforms_servers_are_listed_and_not_changed(root: Api) -> None:
    """REL-1060: their file is where they are changed."""
    server = GlobalServer.objects.create(
        name="weather", transport="streamable_http", target_label="weather.example.org"
    )
    shown = root.get("servers/?is_present=true").json()["results"]
    assert [one["target_label"] for one in shown] == ["weather.example.org"]
    path = f"servers/{server.pk}/"
    assert root.get(path).json()["name"] == "weather"
    assert root.patch(path, {"name": "x"}).status_code == 405
    assert root.delete(path).status_code == 405
