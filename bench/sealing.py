"""`python -m bench.sealing [entries]`: how fast the log is sealed, exported and verified, in a database of its own."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from uuid import UUID

from bench.database import own_database
from bench.installation import prepare


def main() -> int:
    """Measure, and print one line for each step."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    url = os.environ.get("TEST_DATABASE_URL")
    with (
        tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder,
        own_database(url) if url else nullcontext() as database_url,
    ):
        prepare(folder, database_url)
        from audit.models import AuditCheckpoint
        from audit.proof.trellis_verify import WHOLE, verify_export
        from audit.sealing.checkpoints import make_checkpoint
        from audit.sealing.sealer import seal_pending
        from audit.verification.exporting import proof_pieces
        from audit.verification.online import verify
        from workspaces.actors import Actor, Source

        workspace_id = _fill(count)

        def seal() -> None:
            while seal_pending().sealed:
                make_checkpoint()

        def export() -> None:
            with Path(folder, "export.jsonl").open("wb") as file:
                for piece in proof_pieces(workspace_id):
                    file.write(piece)

        def check_export() -> None:
            with Path(folder, "export.jsonl").open("rb") as file:
                assert verify_export(file).result == WHOLE

        def check() -> None:
            actor = Actor.system(label="bench", source=Source.COMMAND, workspace_id=None)
            assert verify(actor=actor).result == WHOLE

        for name, step in (
            ("sealed", seal),
            ("exported", export),
            ("verified from the export", check_export),
            ("verified in the database", check),
        ):
            _say(name, count, step)
        sys.stdout.write(f"{AuditCheckpoint.objects.count()} checkpoints\n")
    return 0


def _say(name: str, count: int, step: Callable[[], None]) -> None:
    began = perf_counter()
    step()
    seconds = perf_counter() - began
    sys.stdout.write(
        f"{name}: {count} entries in {seconds:.1f} s, {count / seconds:.0f} a second\n"
    )


def _fill(count: int) -> UUID:
    """Entries as calls leave them, that wait for their seal."""
    from uuid_utils.compat import uuid7

    from audit.actions import Action, Outcome
    from audit.models import AuditEntry
    from audit.proof.marks import mark_of
    from workspaces.models import Workspace

    workspace = Workspace.objects.create(name="Bench", slug="bench")
    for start in range(0, count, 1_000):
        made = [
            AuditEntry(
                workspace_id=workspace.pk,
                action=Action.TOOL_CALL_FINISHED.value,
                actor_kind="user",
                actor_id=workspace.pk,
                actor_label="person@example.org",
                source="chat",
                request_id="0123456789abcdef",
                call_id=uuid7(),
                conversation_id=workspace.pk,
                turn_id=workspace.pk,
                server_id=workspace.pk,
                server_name="files",
                tool_name="read_file",
                definition_hash="a" * 64,
                annotations={"readOnlyHint": True},
                outcome=Outcome.OK.value,
                duration_ms=number % 997,
                details={"attempt": 1},
            )
            for number in range(start, min(count, start + 1_000))
        ]
        for entry in made:
            entry.mark = mark_of(entry)
        AuditEntry.unscoped.bulk_create(made)
    return workspace.pk


if __name__ == "__main__":
    sys.exit(main())
