"""What keeps Trellis from what it depends on, for the person who runs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind of refusal: what is wrong, and what to do about it."""

    text: str
    advice: str
