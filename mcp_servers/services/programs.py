"""The platform's catalogue of programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from mcp_servers.models import StdioProgram
from workspaces.actors import Actor
from workspaces.changes import record_created, tracked_change
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from mcp_servers.demo.programs import ProgramSeed


@transaction.atomic
def ensure_program(*, seed: ProgramSeed, actor: Actor) -> StdioProgram:
    """Make or update a catalogue entry that comes with the platform.

    Raises:
        PermissionDenied: only the platform itself or its owner may.
    """
    require(actor, Permission.MANAGE_CATALOGUE, workspace_id=None)
    program = StdioProgram.objects.filter(slug=seed.slug).first()
    values: dict[str, Any] = {
        "title": seed.title,
        "description": seed.description,
        "command": seed.command,
        "args": list(seed.args),
        "parameters": [dict(parameter) for parameter in seed.parameters],
    }
    if program is None:
        program = StdioProgram(slug=seed.slug, **values)
        program.full_clean()
        program.save()
        record_created(program, actor=actor)
        return program
    with tracked_change(program, actor=actor):
        for name, value in values.items():
            setattr(program, name, value)
        program.full_clean()
        program.save()
    return program
