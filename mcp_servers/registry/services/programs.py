"""The platform's catalogue of programs: entries made, pinned to their files, and stopped when those change."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import ProtectedError
from django.utils.translation import gettext as _

from mcp_servers.models import McpServer, StdioProgram, version_pins
from mcp_servers.registry.services.server_notices import tell
from workspaces.actors import Actor, Source
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, InvalidInput
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from mcp_servers.registry.demo.programs import ProgramSeed

logger = logging.getLogger(__name__)

_MOST_NAMED: Final = 5


@transaction.atomic
def ensure_program(*, seed: ProgramSeed, actor: Actor) -> StdioProgram:
    """Make or update a catalogue entry that comes with the platform; its files are the platform's own.

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
        "file_hash": version_pins.program_hash(seed.command, seed.args),
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
        if program.problem:
            program.is_enabled, program.problem = True, ""
        program.full_clean()
        program.save()
    return program


@transaction.atomic
def save_program(*, program: StdioProgram, actor: Actor) -> StdioProgram:
    """Store a program as it is set now, new or changed. That is the owner's word on what runs, so its files are pinned.

    Raises:
        PermissionDenied: only the platform's owner may, and no token.
        InvalidInput: with each faulty field.
    """
    require(actor, Permission.MANAGE_CATALOGUE, workspace_id=None)
    try:
        program.full_clean()
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    program.file_hash = version_pins.program_hash(program.command, program.args)
    program.problem = ""
    if program._state.adding:
        program.save()
        record_created(program, actor=actor)
        return program
    with tracked_change(program, actor=actor):
        program.save()
    _tell_users(program)
    return program


@transaction.atomic
def delete_program(*, program: StdioProgram, actor: Actor) -> None:
    """Take a program out of the catalogue.

    Raises:
        PermissionDenied: only the platform's owner may, and no token.
        Conflict: servers run it.
    """
    require(actor, Permission.MANAGE_CATALOGUE, workspace_id=None)
    record_deleted(program, actor=actor)
    try:
        program.delete()
    except ProtectedError as error:
        users = ", ".join(sorted(str(row) for row in error.protected_objects)[:_MOST_NAMED])
        raise Conflict(_("This is still in use by %(users)s.") % {"users": users}) from error


@transaction.atomic
def accept_program(*, program: StdioProgram, actor: Actor) -> StdioProgram:
    """Put a program on offer as its files are now; the platform owner's word that they have looked at it.

    Raises:
        PermissionDenied: only the platform's owner may.
        InvalidInput: its command names no exact version.
    """
    require(actor, Permission.MANAGE_CATALOGUE, workspace_id=None)
    reason = version_pins.version_problem(program.command, program.args)
    if reason:
        raise InvalidInput(fields={"args": [reason]})
    with tracked_change(program, actor=actor):
        program.file_hash = version_pins.program_hash(program.command, program.args)
        program.problem = ""
        program.is_enabled = True
        program.save(update_fields=["file_hash", "problem", "is_enabled", "updated_at"])
    _tell_users(program)
    return program


@transaction.atomic
def withdraw_program(*, program: StdioProgram, actor: Actor) -> StdioProgram:
    """Take a program off offer. Its entry stays, and `accept_program` offers it again.

    Raises:
        PermissionDenied: only the platform's owner may.
        Conflict: it is not on offer.
    """
    require(actor, Permission.MANAGE_CATALOGUE, workspace_id=None)
    if not program.is_enabled:
        raise Conflict(_("%(name)s is not on offer.") % {"name": program.title})
    with tracked_change(program, actor=actor):
        program.is_enabled = False
        program.save(update_fields=["is_enabled", "updated_at"])
    _tell_users(program)
    return program


def check_programs() -> list[StdioProgram]:
    """Switch off every program that is no longer what the owner put into the catalogue; those switched off.

    An entry that was never pinned is pinned to what its files are now.
    """
    actor = Actor.system(label="catalogue", source=Source.TASK, workspace_id=None)
    stopped: list[StdioProgram] = []
    for program in StdioProgram.objects.filter(is_enabled=True):
        present = version_pins.program_hash(program.command, program.args)
        reason = version_pins.version_problem(program.command, program.args)
        if not reason and program.file_hash and present != program.file_hash:
            reason = version_pins.CHANGED
        if reason:
            with transaction.atomic():
                same = StdioProgram.objects.select_for_update(no_key=True).filter(pk=program.pk)
                if same.filter(updated_at=program.updated_at).first() is None:
                    continue  # its owner has just looked at it, or has deleted it
                with tracked_change(program, actor=actor):
                    program.is_enabled, program.problem = False, reason
                    program.save(update_fields=["is_enabled", "problem", "updated_at"])
            logger.warning("program_switched_off", extra={"program": program.slug})
            _tell_users(program)
            stopped.append(program)
        elif not program.file_hash and present:
            StdioProgram.objects.filter(pk=program.pk, file_hash="").update(file_hash=present)
    return stopped


def _tell_users(program: StdioProgram) -> None:
    """Servers that run it are looked at again soon."""
    for server in McpServer.objects.across_workspaces().filter(program=program):
        server.state.write(next_check_at=None)
        tell(server)
