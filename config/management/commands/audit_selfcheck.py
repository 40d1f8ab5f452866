"""``manage.py audit_selfcheck``: calls whose fate is known, and whether the log tells the truth about each.

Exit status: 0 everything is as it should be, 1 it is not, 2 the check could not be made.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mcp_servers.client.connections import runtime
from mcp_servers.gate.selfcheck import Report, check_log
from workspaces.errors import DomainError


class Command(BaseCommand):
    """Works in a workspace of its own, which it removes; what it recorded stays in the log."""

    help = "Makes allowed and refused calls in a scratch workspace and checks what the log says."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = check_log()
        except DomainError as error:
            raise CommandError(error.message, returncode=2) from error
        finally:
            runtime.shutdown(2.0)
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(report), indent=1))
        else:
            self._print(report)
        if not report.is_good:
            raise CommandError("The log does not tell what happened.", returncode=1)

    def _print(self, report: Report) -> None:
        width = max(len(row.case) for row in report.rows)
        for row in report.rows:
            seqs = "–".join(str(seq) for seq in row.seqs) or "not sealed"
            verdict = " ".join(row.faults) or "as it should be"
            self.stdout.write(
                f"{row.case:<{width}}  {row.source:<8}  {row.expected:<22}  {seqs:<10}  {verdict}"
            )
        self.stdout.write(
            f"{report.finished} let through, {report.refused} refused; "
            f"the server saw {report.seen_by_server}. The chain is {report.verification}."
        )
        for fault in report.faults:
            self.stdout.write(fault)


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "is_good": report.is_good,
        "workspace": str(report.workspace_id),
        "seen_by_server": report.seen_by_server,
        "let_through": report.finished,
        "refused": report.refused,
        "verification": report.verification,
        "faults": list(report.faults),
        "calls": [
            {
                "case": row.case,
                "source": row.source,
                "expected": row.expected,
                "entries": [entry.action for entry in row.entries],
                "seqs": row.seqs,
                "faults": row.faults,
            }
            for row in report.rows
        ],
    }
