"""Lines of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
            told = f"+{self.product - self.floor:.2f} {self.unit}"
        else:
            told = f"{self.product / self.floor:.2f} ×" if self.floor else "-"
        return (
            f"{self.measure:<58} floor {self.floor:9.3f} {self.unit:<8}"
            f" product {self.product:9.3f} {self.unit:<8} {told:>12}   target {self.target}"
        )


def part(values: Sequence[float], share: float) -> float:
    """The value that this share of the others lies below."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
