"""Background tasks, management commands and forms: the doors without an address."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from django import forms
from django.core.management import CommandError, call_command, get_commands

from audit.models import AuditEntry
from config.celery import app
from config.env import ROOT
from tests.factories import CANARY
from tests.isolation.conftest import States
from tests.isolation.form_choices import check_choices
from tests.isolation.state import OWN_APPS, state_of
from tests.isolation.world import Side, World

pytestmark = pytest.mark.django_db

# Task → its arguments, with the workspace of one side and the rows of the other.
TASKS: Mapping[str, Callable[[Side, Side], tuple[Any, ...]]] = {
    "chat.tasks.title_conversation": lambda a, b: (
        str(a.tenant.workspace.pk),
        str(b["conversation"].pk),
    ),
    "chat.tasks.summarise_conversation": lambda a, b: (
        str(a.tenant.workspace.pk),
        str(b["turn"].pk),
    ),
    "chat.tasks.advance_checks": lambda a, b: (str(a.tenant.workspace.pk),),
    "mcp_servers.registry.tasks.check_server": lambda a, b: (
        str(a.tenant.workspace.pk),
        str(b["server"].pk),
    ),
    "mcp_servers.registry.tasks.look_as_person": lambda a, b: (
        str(a.tenant.workspace.pk),
        str(b["server"].pk),
        str(b.tenant.member.pk),
    ),
    "mcp_servers.registry.tasks.look_first": lambda a, b: (
        str(a.tenant.workspace.pk),
        str(b["server"].pk),
        str(b.tenant.people["admin"].pk),
    ),
    "mcp_servers.klavis.tasks.read_klavis_catalogue": lambda a, b: (str(a.tenant.workspace.pk),),
    "mcp_servers.klavis.tasks.poll_klavis": lambda a, b: (
        str(a.tenant.workspace.pk),
        str(b["klavis_instance"].pk),
    ),
    "mcp_servers.klavis.tasks.check_klavis": lambda a, b: (
        str(a.tenant.workspace.pk),
        str(b["klavis_instance"].pk),
    ),
    "mcp_servers.klavis.tasks.remove_at_klavis": lambda a, b: (
        str(a.tenant.workspace.pk),
        str(b["klavis_removal"].pk),
    ),
}

# Command → a call that names one side's workspace and the other's rows; None: it knows no workspace.
COMMANDS: Mapping[str, Callable[[Side, Side], list[str]] | None] = {
    "ask": lambda a, b: ["--workspace", a.slug, "--bud", b["bud"].slug, "hello"],
    "apply": None,
    "audit_selfcheck": None,
    "backup": None,
    "bench": None,
    "chaos": None,
    "check_project": None,
    "confirm_restore": None,
    "conformance": None,
    "count_audit": None,
    "declare_keys_lost": None,
    "doctor": None,
    "export_audit": None,
    "export_workspace": None,
    "generate_keys": None,
    "migrate": None,
    "restore": None,
    "rotate_keys": None,
    "seed_demo": None,
    "soak": None,
    "turn_off_two_steps": None,
    "up": None,
    "verify_audit": None,
    "write_configuration_docs": None,
    "write_security_docs": None,
    "write_wire": None,
}


def own_tasks() -> dict[str, Any]:
    """Every task of ours."""
    app.loader.import_default_modules()
    return {name: task for name, task in app.tasks.items() if not name.startswith("celery.")}


def test_every_task_that_is_given_ids_has_a_sample() -> None:
    """SEC-01, SEC-09: what is found and not known is red. A task without arguments is the platform's."""
    with_ids = {
        name for name, task in own_tasks().items() if inspect.signature(task.run).parameters
    }
    assert with_ids == set(TASKS), "add a sample of each task to this file"


def test_the_beat_schedule_names_tasks_that_exist() -> None:
    """Ours: each task says itself when it runs, and whoever starts the scheduler imports them all."""
    app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert {name.partition(".")[0] for name in scheduled} == set(OWN_APPS)
    assert scheduled <= set(own_tasks())


def test_tasks_that_are_sent_by_name_exist() -> None:
    """Ours."""
    files = [path for name in (*OWN_APPS, "config") for path in (ROOT / name).rglob("*.py")]
    assert len(files) > 100
    named = {
        name for path in files for name in re.findall(r'"([\w.]+\.tasks\.\w+)"', path.read_text())
    }
    assert named <= set(own_tasks())


@pytest.mark.parametrize("name", sorted(TASKS))
def test_no_task_crosses_workspaces(world: World, before: States, name: str) -> None:
    """SEC-09: workspace A with an object of B does nothing to B."""
    own_tasks()[name].run(*TASKS[name](world.a, world.b))
    assert state_of(world.b) == before.b


def test_every_command_has_a_sample() -> None:
    """SEC-01: what is found and not known is red."""
    own = {name for name, owner in get_commands().items() if owner in {*OWN_APPS, "config"}}
    assert own <= set(COMMANDS), f"add a sample of each: {sorted(own - set(COMMANDS))}"


@pytest.mark.parametrize("name", sorted(name for name, make in COMMANDS.items() if make))
def test_no_command_crosses_workspaces(
    world: World, before: States, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """SEC-01: a row of B is not found in A, and the message names nothing of B but what was typed."""
    make = COMMANDS[name]
    assert make is not None
    arguments = make(world.a, world.b)
    with pytest.raises(CommandError) as caught:
        call_command(name, *arguments)
    output = f"{caught.value} {capsys.readouterr()}"
    for argument in arguments:
        output = output.replace(argument, "")
    assert CANARY not in output
    assert caught.value.returncode == 2
    assert (state_of(world.a), state_of(world.b)) == (before.a, before.b)


def own_forms() -> Iterator[type[forms.BaseForm]]:
    """Every form class of ours."""
    for name in OWN_APPS:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if ".migrations" in found.name or ".management" in found.name or ".web" in found.name:
                continue
            for member in vars(importlib.import_module(found.name)).values():
                if (
                    inspect.isclass(member)
                    and issubclass(member, forms.BaseForm)
                    and member.__module__ == found.name
                ):
                    yield member


@pytest.mark.parametrize("form", sorted(set(own_forms()), key=str), ids=lambda form: form.__name__)
def test_no_form_offers_rows_before_it_knows_the_workspace(world: World, form: Any) -> None:
    """SEC-04: choices that a class itself carries are of no tenant.

    What a form of the admin takes from its model is scoped there, and walked with the admin.
    """
    declared: dict[str, Any] = getattr(form, "declared_fields", {})
    for name, field in declared.items():
        check_choices(f"{form.__name__}.{name}", field, world)


def test_entries_outlive_and_stay_apart(world: World) -> None:
    """SEC-12: counting in one log tells nothing of the other."""
    mine = AuditEntry.objects.for_workspace(world.a.tenant.workspace)
    assert CANARY not in str(list(mine.values()))
