"""Libraries that others load only because they are installed, although nothing of Trellis asks for what they add.

Such a library is tried with ``try: import``, and is done without where that fails. It takes time of every start and memory
of every process. A module that stands as `None` in `sys.modules` is one that Python does not find.
Source: https://docs.python.org/3/reference/import.html#the-module-cache
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(*libraries: str) -> Iterator[None]:
    """Have imports within the block not find these libraries, unless they are loaded already.

    Only for imports at the start of a process: other threads do not find them either.
    """
    hidden = [name for name in libraries if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None is what the reference says
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
