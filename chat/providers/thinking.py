"""Parts what a model thinks from what it says, where both come as one text. Pure.

Some servers pass on a model's own form: `<think>…</think>` at the very start of the content, and then the
answer. Anywhere else these words are text like any other.
"""

from __future__ import annotations

_TAGS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"))
_OPENINGS = tuple(opening for opening, _ in _TAGS)
_CLOSING_OF = dict(_TAGS)


class ThinkingSplitter:
    """Feed it the content's pieces; it gives (text, reasoning) of each, wherever they are cut."""

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._is_over = False
        self._drops_blanks = False

    @property
    def is_done(self) -> bool:
        """Whether all that comes is text, as it comes."""
        return self._is_over and not self._drops_blanks

    def feed(self, piece: str) -> tuple[str, str]:
        """What this piece adds to the text and to the reasoning."""
        if self._is_over:
            return (self._after_thought(piece) if self._drops_blanks else piece), ""
        self._held += piece
        if not self._closing:
            start = self._held.lstrip()
            opening = next((o for o in _OPENINGS if start.startswith(o)), None)
            if opening is None:
                if any(o.startswith(start) for o in _OPENINGS):
                    return "", ""  # may still become one
                return self._end(), ""
            self._closing = _CLOSING_OF[opening]
            self._held = start[len(opening) :]
        return self._think()

    def close(self) -> tuple[str, str]:
        """What was held back because more might have come."""
        held, self._held = self._held, ""
        if self._is_over:
            return "", ""
        self._is_over = True
        return ("", held) if self._closing else (held, "")

    def _think(self) -> tuple[str, str]:
        thought, found, rest = self._held.partition(self._closing)
        if found:
            self._held = ""
            self._is_over = self._drops_blanks = True
            return self._after_thought(rest), thought
        keep = _overlap(thought, self._closing)
        self._held = thought[len(thought) - keep :]
        return "", thought[: len(thought) - keep]

    def _end(self) -> str:
        self._is_over = True
        held, self._held = self._held, ""
        return held

    def _after_thought(self, piece: str) -> str:
        """The empty lines between thought and answer belong to neither."""
        text = piece.lstrip()
        self._drops_blanks = not text
        return text


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of the text may be the beginning of the mark."""
    longest = min(len(text), len(mark) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(mark[:n])), 0)
