"""How large files are, in words: the same for people and models, whatever a person's formats are."""

from __future__ import annotations

_KIB = 1024
_MIB = 1024 * 1024


def size_in_words(size: int) -> str:
    """Write "800 bytes", "1.5 KiB" or "20 MiB"."""
    if size < _KIB:
        return f"{size} bytes"
    number, unit = (size / _KIB, "KiB") if size < _MIB else (size / _MIB, "MiB")
    return f"{number:.1f}".removesuffix(".0") + f" {unit}"
