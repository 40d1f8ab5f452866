"""Programs that stay what the platform's owner saw."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.client import transports
from mcp_servers.models import McpServer, StdioProgram, version_pins
from mcp_servers.registry import services
from mcp_servers.registry.demo.programs import PROGRAMS
from mcp_servers.registry.services import ServerDraft
from mcp_servers.registry.specs import connection_spec
from tests.factories import Tenant
from workspaces.actors import Actor, Source
from workspaces.errors import Conflict, InvalidInput, PermissionDenied

OWNER = Actor.system(source=Source.COMMAND, workspace_id=None)


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("/usr/bin/npx", ["-y", "@scope/server"]),
        ("/usr/bin/npx", ["-y", "@scope/server@latest"]),
        ("/usr/bin/npx", ["--package=server", "server"]),
        ("/usr/bin/npx", ["server@^1.2.3"]),
        ("/usr/bin/npm", ["exec", "server"]),
        ("/usr/bin/uvx", ["mcp-server-time"]),
        ("/usr/bin/uvx", ["--from", "mcp-server>=1", "mcp-server"]),
        ("/usr/bin/uv", ["tool", "run", "mcp-server-time"]),
        ("/usr/bin/pipx", ["run", "mcp-server-time"]),
        ("/usr/bin/docker", ["run", "-i", "mcp/time"]),
        ("/usr/bin/docker", ["run", "-i", "mcp/time:latest"]),
        ("/bin/sh", ["-c", "npx -y server"]),
        ("/usr/bin/env", ["A=1", "npx", "server"]),
        ("/usr/bin/npx", ["-c", "server"]),
    ],
)
def test_that_a_program_without_an_exact_version_is_refused(command: str, args: list[str]) -> None:
    """SEC-43: the check of the catalogue fails on an unpinned entry."""
    assert version_pins.version_problem(command, args)
    with pytest.raises(ValidationError, match=r"args|version|digest|shell"):
        StdioProgram(slug="p", title="P", command=command, args=args).clean()


@pytest.mark.parametrize(
    ("command", "args", "reason"),
    [
        ("/usr/bin/npx", ["-y server@1.2.3"], "“-y server@1.2.3” holds several arguments"),
        ("/usr/bin/npx", ["-y"], "names no package"),
        ("/usr/bin/uvx", [], "names no package"),
    ],
)
def test_that_a_runner_is_given_a_package(command: str, args: list[str], reason: str) -> None:
    """SEC-1224: what a person writes on one line is one argument, and names none."""
    with pytest.raises(ValidationError, match=reason):
        StdioProgram(slug="p", title="P", command=command, args=args).clean()


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("/usr/bin/npx", ["-y", "@scope/server@1.2.3", "--flag"]),
        ("/usr/bin/npx", ["-p", "server@1.2.3-beta.1", "server"]),
        ("/usr/bin/uvx", ["mcp-server-time==2025.8.4"]),
        ("/usr/bin/uvx", ["--from", "mcp-server[all]==1.0", "mcp-server"]),
        ("/usr/bin/docker", ["run", "-i", "mcp/time@sha256:" + "a" * 64]),
        ("/opt/tools/server", ["--listen"]),
        ("python", ["-m", "mcp_server_time", "--local-timezone={timezone}"]),
    ],
)
def test_that_an_exact_version_is_enough(command: str, args: list[str]) -> None:
    """Whatever comes behind it belongs to the program."""
    assert version_pins.version_problem(command, args) == ""


def a_program(path: Path) -> StdioProgram:
    """A script in the catalogue, pinned."""
    path.write_text("print('one')")
    program = StdioProgram.objects.create(
        slug="script", title="Script", command="python", args=[str(path)]
    )
    assert services.check_programs() == []
    program.refresh_from_db()
    assert program.file_hash
    return program


def a_server(tenant: Tenant, program: StdioProgram) -> McpServer:
    """A server that runs it."""
    draft = ServerDraft(name="script", transport=transports.STDIO, program=program)
    return services.add_server(workspace_id=tenant.workspace.pk, draft=draft, actor=tenant.actor())


def test_that_a_changed_file_switches_its_entry_off(tenant: Tenant, tmp_path: Path) -> None:
    """SEC-43: with the reason, in the log, and nothing of it is started even before the check has run."""
    path = tmp_path / "server.py"
    program = a_program(path)
    server = a_server(tenant, program)
    connection_spec(server)

    path.write_text("print('two')")
    with pytest.raises(InvalidInput, match="has changed"):
        connection_spec(server)
    assert services.check_programs() == [program]

    program.refresh_from_db()
    assert (program.is_enabled, program.problem) == (False, version_pins.CHANGED)
    assert AuditEntry.unscoped.filter(details__after__problem=version_pins.CHANGED).exists()
    with pytest.raises(InvalidInput, match="has changed"):
        connection_spec(McpServer.objects.for_workspace(tenant.workspace).get())


def test_that_a_withdrawn_program_is_not_run(tenant: Tenant, tmp_path: Path) -> None:
    """REL-1194: servers that run it are looked at soon, and refused until it is offered again."""
    program = a_program(tmp_path / "server.py")
    server = a_server(tenant, program)
    server.state.write(next_check_at=timezone.now() + timedelta(days=1))
    services.withdraw_program(program=program, actor=OWNER)
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert server.state.next_check_at is None
    with pytest.raises(InvalidInput, match="no longer on offer"):
        connection_spec(server)
    with pytest.raises(Conflict):
        services.withdraw_program(program=program, actor=OWNER)
    services.accept_program(program=program, actor=OWNER)
    connection_spec(McpServer.objects.for_workspace(tenant.workspace).get())
    program.is_enabled = False
    services.save_program(program=program, actor=OWNER)
    with pytest.raises(InvalidInput, match="no longer on offer"):
        connection_spec(McpServer.objects.for_workspace(tenant.workspace).get())


def test_that_only_the_platforms_owner_accepts_the_new_file(tenant: Tenant, tmp_path: Path) -> None:
    """An administrator of a workspace cannot."""
    path = tmp_path / "server.py"
    program = a_program(path)
    server = a_server(tenant, program)
    path.write_text("print('two')")
    services.check_programs()
    program.refresh_from_db()
    with pytest.raises(PermissionDenied):
        services.accept_program(program=program, actor=tenant.actor("owner"))
    services.accept_program(program=program, actor=OWNER)
    server.program.refresh_from_db()  # type: ignore[union-attr]
    connection_spec(server)


@pytest.mark.django_db
def test_that_the_platforms_own_programs_are_pinned_to_their_files() -> None:
    """Those that come with it keep working after an upgrade changed them."""
    for seed in PROGRAMS:
        program = services.ensure_program(seed=seed, actor=OWNER)
        assert program.file_hash
        StdioProgram.objects.filter(pk=program.pk).update(
            file_hash="0" * 64, is_enabled=False, problem=version_pins.CHANGED
        )
        again = services.ensure_program(seed=seed, actor=OWNER)
        assert (again.is_enabled, again.problem) == (True, "")
    assert services.check_programs() == []


def test_that_a_module_is_hashed_with_its_package() -> None:
    """Another module has another hash; one that is not there has none."""
    assert version_pins.program_hash("python", ["-m", "json"]) != version_pins.program_hash(
        "python", ["-m", "csv"]
    )
    assert version_pins.program_hash("python", ["-m", "no_such_module_here"]) == ""
    assert version_pins.program_hash(sys.executable, []) != ""
