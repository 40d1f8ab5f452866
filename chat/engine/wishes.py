"""What the model is told when an answer shall go on, or be written again in another way. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from chat.engine.context_window import PastStep, PastTurn
from chat.values import Wish

GO_ON: Final = (
    "Your answer was cut off because it reached its greatest length. Continue exactly where it ends, in the middle of"
    " a word or a code block if need be. Repeat nothing, and add no introduction."
)
_WISHES: Mapping[Wish, str] = {
    Wish.SHORTER: "Write your answer again, much shorter. Keep what matters most.",
    Wish.LONGER: "Write your answer again, with more detail, reasons and examples.",
    Wish.SIMPLER: "Write your answer again in simpler words, for somebody who is new to the subject.",
}
_ONLY: Final = "Give the new answer alone, without speaking of the earlier one."


def with_wish(turns: tuple[PastTurn, ...], wish: Wish, before: str) -> tuple[PastTurn, ...]:
    """The last question with the answer that it had, and then what that shall become."""
    if wish not in _WISHES or not before or not turns:
        return turns
    *earlier, last = turns
    return (
        *earlier,
        replace(last, steps=(PastStep(before),)),
        PastTurn(f"{_WISHES[wish]} {_ONLY}", steps=last.steps),
    )
