"""Paths through the tree of a conversation's messages. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol, TypeVar
from uuid import UUID


class Node(Protocol):
    """A message, as far as the tree goes."""

    @property
    def pk(self) -> UUID: ...

    @property
    def parent_id(self) -> UUID | None: ...

    @property
    def order_key(self) -> int: ...


_Row = TypeVar("_Row", bound=Node)


def path_to(rows: Sequence[_Row], leaf_id: UUID | None) -> list[_Row]:
    """From the first message to this one, along the parents; empty if it is not among the rows."""
    by_id = {row.pk: row for row in rows}
    current = by_id.get(leaf_id) if leaf_id else None
    path: list[_Row] = []
    while current is not None and len(path) <= len(rows):
        path.append(current)
        current = by_id.get(current.parent_id) if current.parent_id else None
    return path[::-1]


def newest_leaf(rows: Sequence[Node], start: UUID) -> UUID:
    """The end of the path through `start` that always takes the newest branch below it."""
    children: defaultdict[UUID | None, list[Node]] = defaultdict(list)
    for row in rows:
        children[row.parent_id].append(row)
    current = start
    for _ in rows:
        below = children.get(current)
        if not below:
            break
        current = max(below, key=lambda row: row.order_key).pk
    return current
