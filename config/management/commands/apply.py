"""``manage.py apply``: make a workspace as a YAML file says; without effect where it is so already.

Values of `auth`, `headers` and `env` may name variables of the environment as ${NAME}, so that no secret need stand in
the file.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chat.models import CheckRun, RunStatus
from chat.services.check_demands import has_passed
from chat.services.check_runs import advance_run
from config.workspace_files import (
    ChecksMissing,
    KeysUntested,
    WorkspaceTarget,
    apply_file,
    check_buds,
    fill_variables,
)
from mcp_servers.client.connections import runtime
from workspaces.command_arguments import add_who, bad_arguments, find_person, find_workspace
from workspaces.errors import DomainError, InvalidInput
from workspaces.yaml_text import read_yaml

_PAUSE_SECONDS: Final = 0.3


class Command(BaseCommand):
    """Prints what changes as a diff. Exit status 0, also where nothing changes; 1 if checks fail; 2 if the file is refused."""

    help = "Make a workspace as a YAML file says. What the file does not name stays as it is."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", type=Path, help="as export_workspace writes it; - for the input"
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only print what would change; new keys of providers are tested",
        )
        parser.add_argument(
            "--untested-keys",
            action="store_true",
            help="store new keys of providers without a test, as while a provider is down",
        )
        parser.add_argument(
            "--skip-bud-checks",
            action="store_true",
            help="apply it though checks that buds demand have not passed; the log says so",
        )
        parser.add_argument(
            "--run-checks",
            action="store_true",
            help="change nothing; run the checks that buds demand for the file, and wait for them",
        )
        add_who(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = find_workspace(options["workspace"])
        person, actor = find_person(workspace, options["user"])
        target = WorkspaceTarget(workspace, actor)
        path: Path = options["file"]
        try:
            text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
            document = fill_variables(read_yaml(text), os.environ)
            if options["run_checks"]:
                self._run(check_buds(target, document, person=person), target)
                return
            applied = apply_file(
                target,
                document,
                is_dry_run=options["dry_run"],
                tests_keys=not options["untested_keys"],
                skips_checks=options["skip_bud_checks"],
            )
        except InvalidInput as error:
            lines = [f"{field}: {text}" for field, texts in error.fields.items() for text in texts]
            if isinstance(error, KeysUntested):
                lines.append("With --untested-keys they are stored without a test.")
            if isinstance(error, ChecksMissing):
                lines.append("--run-checks runs them. With --skip-bud-checks the file is applied.")
            bad_arguments("\n".join(["Nothing was changed.", *(lines or [error.message])]))
        except DomainError as error:
            bad_arguments(error.message)
        except OSError as error:
            bad_arguments(f"{path} cannot be read: {error.strerror}.")
        except UnicodeDecodeError:
            bad_arguments(f"{path} cannot be read: it is not text in UTF-8.")
        finally:
            runtime.shutdown(2.0)
        if applied.is_none:
            self.stdout.write("Nothing changes.")
        if applied.diff:
            self.stdout.write(applied.diff)
        if applied.secrets:
            self.stdout.write(f"Secrets that change: {', '.join(applied.secrets)}.")
        self._tell_notes(target)

    def _run(self, runs: Sequence[CheckRun], target: WorkspaceTarget) -> None:
        """Take runs to their end: their answers come from this process, and would end with it."""
        self._tell_notes(target)
        for run in runs:
            self.stdout.write(f"The checks of {run.bud.name} run with the file…")
            while run.status == RunStatus.RUNNING:
                time.sleep(_PAUSE_SECONDS)
                advance_run(run)
                run.refresh_from_db()
            self.stdout.write(f"{run.passed} of {run.total} passed.")
        if target.notes or not all(has_passed(run) for run in runs):
            raise CommandError("Not all checks have run and passed.", returncode=1)

    def _tell_notes(self, target: WorkspaceTarget) -> None:
        for note in target.notes:
            self.stdout.write(f"Note: {note}")
