"""How large files are, in words: the same for people and models, whatever a person's formats are."""

from __future__ import annotations

_KB = 1024
_MB = 1024 * 1024


def size_in_words(size: int) -> str:
    """Write "800 bytes", "1.5 KB" or "20 MB"."""
    if size < _KB:
        return f"{size} bytes"
    number, unit = (size / _KB, "KB") if size < _MB else (size / _MB, "MB")
    return f"{number:.1f}".removesuffix(".0") + f" {unit}"
