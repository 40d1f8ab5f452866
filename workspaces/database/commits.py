"""What is done after a commit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Final, ParamSpec

from django.db import connection, transaction

_P = ParamSpec("_P")


class _Registered(threading.local):
    """Where in its transaction's list something stands that is done after it."""

    def __init__(self) -> None:
        self.at: dict[object, tuple[int, Callable[[], object]]] = {}


_registered: Final = _Registered()


def after_commit(work: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Do something after this transaction; at once where there is none. What it raises is logged, and stops nothing."""
    _register(partial(work, *args, **kwargs))


def once_after_commit(work: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Do something after this transaction, once however often it is asked for; at once where there is none.

    What it raises is logged. The arguments have to be hashable.
    """
    waiting = connection.run_on_commit
    if not waiting:
        _registered.at.clear()
    asked_for = (work, args, tuple(kwargs.items()))
    place, known = _registered.at.get(asked_for, (0, None))
    # After a rollback, also of a part, it stands there no more.
    if place < len(waiting) and waiting[place][1] is known:
        return
    doing = partial(work, *args, **kwargs)
    _registered.at[asked_for] = (len(waiting), doing)
    _register(doing)


def _register(doing: partial[object]) -> None:
    # Django logs what fails by its name, which a partial has not, and would fail in turn.
    transaction.on_commit(update_wrapper(doing, doing.func), robust=True)
