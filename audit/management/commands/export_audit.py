"""``manage.py export_audit``: the log as a file that proves itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.proof.signing import SigningKeyMissing
from audit.verification.exporting import proof_pieces, record_proof_export
from workspaces.actors import Actor, Source
from workspaces.models import Workspace


class Command(BaseCommand):
    """Streams: memory does not grow with the log."""

    help = "Writes the sealed log as JSON lines that audit/proof/trellis_verify.py checks anywhere."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        scope = parser.add_mutually_exclusive_group(required=True)
        scope.add_argument("--workspace", help="slug of the workspace")
        scope.add_argument("--platform", action="store_true", help="all chains")
        parser.add_argument(
            "--out", type=Path, required=True, help="file to write; - for the output"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = None
        if not options["platform"]:
            workspace = Workspace.objects.filter(slug=options["workspace"]).first()
            if workspace is None:
                raise CommandError("No such workspace.", returncode=2)
        workspace_id = workspace.pk if workspace else None
        actor = Actor.system(label="export_audit", source=Source.COMMAND, workspace_id=workspace_id)
        record_proof_export(actor=actor, workspace_id=workspace_id)
        out: Path = options["out"]
        if str(out) == "-":
            _write_to_output(workspace_id)
            return
        draft = out.with_name(f".{out.name}.{os.getpid()}")
        try:
            with draft.open("wb") as file:
                for piece in proof_pieces(workspace_id):
                    file.write(piece)
            draft.replace(out)
        except OSError as error:
            raise CommandError(f"{out}: {error.strerror}.", returncode=3) from error
        except SigningKeyMissing as error:
            raise CommandError(str(error), returncode=3) from error
        finally:
            draft.unlink(missing_ok=True)
        self.stdout.write(f"Written to {out}.")


def _write_to_output(workspace_id: UUID | None) -> None:
    """Write it piece by piece; whoever stops reading has a file that does not look whole, and the status says so."""
    try:
        for piece in proof_pieces(workspace_id):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Python flushes once more when it ends, and would complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(3)
    except SigningKeyMissing as error:
        raise CommandError(str(error), returncode=3) from error
