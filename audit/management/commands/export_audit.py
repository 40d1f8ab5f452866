"""``manage.py export_audit``: the log as a file that proves itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

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
        parser.add_argument("--out", type=Path, required=True, help="file to write")

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
        draft = out.with_name(f".{out.name}.{os.getpid()}")
        try:
            with draft.open("wb") as file:
                for piece in proof_pieces(workspace_id):
                    file.write(piece)
            draft.replace(out)
        except (OSError, SigningKeyMissing) as error:
            raise CommandError(str(error), returncode=3) from error
        finally:
            draft.unlink(missing_ok=True)
        self.stdout.write(f"Written to {out}.")
