"""Lines of the result."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_PAGE = Path(__file__).parents[1] / "docs" / "performance.md"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result."""

    measure: str
    floor: float
    product: float
    unit: str
    target: str
    is_difference: bool = False

    def as_text(self) -> str:
        """The line as people read it."""
        if self.is_difference:
            added = f"+{self.product - self.floor:.2f} {self.unit}"
        else:
            added = f"{self.product / self.floor:.2f} ×" if self.floor else "-"
        return (
            f"{self.measure:<58} floor {self.floor:9.3f} {self.unit:<8}"
            f" product {self.product:9.3f} {self.unit:<8} {added:>12}   target {self.target}"
        )

    def as_cells(self) -> list[str]:
        """The same as a line of a table."""
        ratio = f"{self.product / self.floor:.2g} ×" if self.floor else "–"
        added = f"+{self.product - self.floor:.1f} {self.unit}" if self.is_difference else ratio
        floor = f"{self.floor:.3g} {self.unit}" if self.floor else "–"
        return [self.measure, floor, f"{self.product:.3g} {self.unit}", added, self.target]


def write_table(name: str, rows: Sequence[Row]) -> None:
    """Put the rows into docs/performance.md, in the place of the last run's, with the day and the commit.

    Args:
        name: of the databases that were measured.
    """
    is_changed = _git("status", "--porcelain", "--", ":!docs")
    commit = _git("rev-parse", "--short", "HEAD") + (" with changes" if is_changed else "")
    head = f"{name}, {datetime.now(UTC):%d %B %Y}, commit {commit}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}:"
    lines = [
        head,
        "",
        "| measure | floor | Trellis | | goal |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(row.as_cells())} |" for row in rows),
    ]
    begin, end = f"<!-- bench {name} -->", f"<!-- end of bench {name} -->"
    before, _, rest = _PAGE.read_text().partition(begin)
    _, _, after = rest.partition(end)
    table = "\n".join(lines)
    _PAGE.write_text(f"{before}{begin}\n{table}\n{end}{after}")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)  # noqa: S603, S607
    return done.stdout.strip()


def part(values: Sequence[float], share: float) -> float:
    """The value that this share of the others lies below."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
