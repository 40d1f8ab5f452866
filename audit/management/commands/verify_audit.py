"""``manage.py verify_audit``: is the log whole? Exit codes 0 whole, 1 altered, 2 incomplete, 3 unreadable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import trigger_check
from audit.actions import Action
from audit.errors import OtherLogKey
from audit.management.progress import Counted, count_on
from audit.proof import marks
from audit.proof.trellis_verify import (
    EXIT_CODES,
    VerificationReport,
    lines_of,
    read_external,
    verify_export,
)
from audit.sealing import sealer
from audit.services import EntryDraft, record
from audit.verification.online import verify
from workspaces.actors import Actor, Source
from workspaces.database.migration_state import is_of_this_version
from workspaces.models import Workspace


class Command(BaseCommand):
    """Checks the database, or an export without looking at the database."""

    help = "Checks every entry of the audit log against its seal, and says what is wrong."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", help="slug; without it, all of the log")
        parser.add_argument("--from-export", type=Path, help="check this file instead")
        parser.add_argument("--checkpoint", type=Path, help="a checkpoint file that was kept")
        parser.add_argument(
            "--key", action="append", default=[], help="fingerprint of a trusted key"
        )
        parser.add_argument("--incremental", action="store_true", help="only what is new")
        parser.add_argument(
            "--restore-triggers",
            action="store_true",
            help="first make the database's triggers under the log anew",
        )
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["restore_triggers"]:
            self._restore_triggers()
        progress = count_on(self.stderr, is_wanted=options["verbosity"] > 1)
        try:
            kept = read_external(options["checkpoint"]) if options["checkpoint"] else None
            if options["from_export"]:
                with options["from_export"].open("rb", buffering=1024 * 1024) as file:
                    report = verify_export(
                        file, trusted=options["key"], external=kept, progress=progress
                    )
            else:
                report = self._verify_database(options, kept, progress)
        except (OSError, ValueError) as error:
            report = VerificationReport()
            report.add("unreadable", f"Cannot be read: {error}.")
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(), indent=1))
        else:
            for line in lines_of(report):
                self.stdout.write(line)
        if code := EXIT_CODES[report.result]:
            sentence = f"The log is {report.result}."
            if not options["from_export"] and marks.is_key_other():
                sentence += f" Perhaps only its key is another: {marks.OTHER_KEY}. {marks.PUT_BACK}"
            raise CommandError(sentence, returncode=code)

    def _restore_triggers(self) -> None:
        faults = trigger_check.restore()
        for fault in faults:
            self.stderr.write(f"Restored: {fault}")
        if faults:
            actor = Actor.system(label="verify_audit", source=Source.COMMAND, workspace_id=None)
            details = {"faults": faults, "restored": True}
            record(
                EntryDraft(
                    action=Action.LOG_UNGUARDED, actor=actor, workspace_id=None, details=details
                )
            )

    def _verify_database(
        self, options: dict[str, Any], kept: Any, progress: Counted
    ) -> VerificationReport:
        if not is_of_this_version():
            raise CommandError(
                "The database's tables are of another version than this code, so the log can't be compared with them. "
                "Use the newest version, and run: python3 manage.py migrate",
                returncode=3,
            )
        workspace = None
        if options["workspace"]:
            workspace = Workspace.objects.filter(slug=options["workspace"]).first()
            if workspace is None:
                raise CommandError("No such workspace.", returncode=3)
        actor = Actor.system(label="verify_audit", source=Source.COMMAND, workspace_id=None)
        try:
            sealer.seal_refused()
            return verify(
                workspace.pk if workspace else None,
                actor=actor,
                outside=kept,
                is_incremental=options["incremental"],
                progress=progress,
            )
        except OtherLogKey as error:
            raise CommandError(f"{error} {marks.PUT_BACK}", returncode=3) from error
