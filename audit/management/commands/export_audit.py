"""``manage.py export_audit``: the log as a file that proves itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.management.progress import Counted, count_on
from audit.proof.signing import SigningKeyMissing
from audit.verification.exporting import proof_pieces, record_proof_export
from workspaces.actors import Actor, Source
from workspaces.models import Workspace

EVERY: Final = 20_000
"""Entries, after which a person at a terminal is told."""
_ENTRY: Final = b'"record":"entry"'


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
        pieces = _counting(proof_pieces(workspace_id), count_on(self.stderr, every=EVERY))
        if str(out) == "-":
            _write_to_output(pieces)
            return
        draft = out.with_name(f".{out.name}.{os.getpid()}")
        try:
            with draft.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
            draft.replace(out)
        except OSError as error:
            raise CommandError(f"{out}: {error.strerror}.", returncode=3) from error
        except SigningKeyMissing as error:
            raise CommandError(str(error), returncode=3) from error
        finally:
            draft.unlink(missing_ok=True)
        self.stdout.write(f"Written to {out}.")


def _counting(pieces: Iterable[bytes], progress: Counted) -> Iterator[bytes]:
    """Pass them on, and tell how many entries they hold."""
    entries = 0
    for piece in pieces:
        yield piece
        entries += piece.count(_ENTRY)
        progress(entries)


def _write_to_output(pieces: Iterable[bytes]) -> None:
    """Write it piece by piece; whoever stops reading has a file that does not look whole, and the status says so."""
    try:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Python flushes once more when it ends, and would complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(3)
    except SigningKeyMissing as error:
        raise CommandError(str(error), returncode=3) from error
