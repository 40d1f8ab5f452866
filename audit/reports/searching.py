"""A filter as conditions of a query, pages by key in any order, and words in previews."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, Case, Exists, F, Func, OuterRef, Q, Value, When

from audit.actions import FAILURES, Action
from audit.filters import ENDED, FAILED, REFUSED, EntryFilter
from audit.models import AuditEntry
from workspaces.roles import Permission, has_permission
from workspaces.words.text_values import read_moment

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.scoping import WorkspaceQuerySet

PAGE_SIZE = 50
FEW: Final = 1_000
FREQUENT = 5_000
"""Words that more entries hold are searched along the order of the page."""
LONG_LOG = 1_000_000
"""A log with fewer entries is asked for all that hold the words, which takes some 30 ms at most."""
VERY_MANY = 50_000
_SAMPLED_PAGES = 30
_PARTLY_INDEXED: Final = {
    index.fields[1]: index.condition
    for index in AuditEntry._meta.indexes
    if index.condition is not None
}
"""Column → what its index leaves out. SQLite uses such an index only where the statement says the same."""
_SURE = 10
"""Entries that hold the words in the sampled pages, so that it is no chance."""
_WORDS = (
    "to_tsvector('simple', {0}arguments_preview || ' ' || {0}result_preview)"
    " @@ websearch_to_tsquery('simple', %s)"
)
"""As the expression of the index of words; of which table stands in front of the columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    """Some entries, and the keys of the neighbouring pages, for addresses."""

    entries: Sequence[AuditEntry]
    before: str | None
    """The page that is shown before this one begins here, going backwards."""
    after: str | None
    """The page that is shown next begins here."""


def matching(
    rows: WorkspaceQuerySet[AuditEntry], wanted: EntryFilter, *, actor: Actor | None = None
) -> WorkspaceQuerySet[AuditEntry]:
    """Narrow entries to a filter.

    Words are searched in previews, so only for an actor who may read those: for others the filter finds nothing,
    whatever is in them, and nothing can be guessed by asking.
    """
    return rows.filter(_fits(wanted, actor))


def few_of(found: WorkspaceQuerySet[AuditEntry]) -> list[UUID] | None:
    """Name the entries if they are few, so that what is counted of them need not look for each number anew; else None.

    No index knows most filters.
    """
    ids = list(found.order_by().values_list("pk", flat=True)[: FEW + 1])
    return ids if len(ids) <= FEW else None


def first_of_calls(
    rows: WorkspaceQuerySet[AuditEntry],
    wanted: EntryFilter,
    *,
    actor: Actor | None = None,
    also: Q | None = None,
) -> WorkspaceQuerySet[AuditEntry]:
    """Narrow entries to a filter, and of each call to its first entry that fits: one row for a call.

    The first one stays the first whatever is written later, so a call keeps its place while people turn pages.

    Args:
        also: what has to hold besides the filter. `rows` has to be the whole workspace: see below.
    """
    fits = _fits(wanted, actor) & (also or Q())
    of_call = rows.filter(call_id=OuterRef("call_id"))
    moment = ("created_at", "id")
    earlier = of_call.filter(key_condition("<", moment, [OuterRef(name) for name in moment]))
    if fits:
        # In a CASE no index serves it, so that the few entries of the call are read, and not all others that fit.
        earlier = earlier.filter(Case(When(fits, then=True), default=False))
    return rows.filter(fits).filter(~Exists(earlier))


def _fits(wanted: EntryFilter, actor: Actor | None) -> Q:
    found = _conditions(wanted)
    if wanted.since:
        found &= Q(created_at__gte=wanted.since)
    if wanted.until:
        found &= Q(created_at__lt=wanted.until)
    if wanted.words:
        found &= _has_words(wanted.words, actor) if may_search(actor) else Q(pk__in=[])
    if wanted.leaves_out_empty:
        is_text = wanted.sort_column in {"server_name", "tool_name", "outcome"}
        # As ranges of the index that is sorted by: what is empty would else be read and thrown away.
        there = {f"{wanted.sort_column}__gt": ""} if is_text else {f"{wanted.sort_column}__gte": 0}
        found &= Q(**there)
    return found


def _conditions(wanted: EntryFilter) -> Q:
    found = Q(**dict(wanted.equal))
    for column in wanted.equal:
        found &= _PARTLY_INDEXED.get(column, Q())
    if wanted.outcome == REFUSED:
        found &= ~Q(refused_by="")
    elif wanted.outcome == FAILED:
        found &= Q(action=Action.TOOL_CALL_FINISHED.value, outcome__in=FAILURES)
    elif wanted.outcome == ENDED:
        ends = [Action.TOOL_CALL_FINISHED.value, Action.TOOL_CALL_REFUSED.value]
        found &= Q(action__in=ends)
    elif wanted.outcome:
        found &= Q(outcome=wanted.outcome)
    if wanted.user_id:
        found &= Q(actor_id=wanted.user_id)
    elif wanted.user:
        found &= Q(actor_label=wanted.user, actor_id=None)
    for column, value in (
        ("action", wanted.action),
        ("server_name", wanted.server),
        ("tool_name", wanted.tool),
    ):
        if value:
            found &= Q(**{column: value})
    for column, text in wanted.begins.items():
        found &= Q(**({f"{column}__startswith": text} if text else {f"{column}__gt": ""}))
    for column, number in wanted.least.items():
        found &= Q(**{f"{column}__gte": number})
    for column, number in wanted.most.items():
        found &= Q(**{f"{column}__lte": number})
    return found


def may_search(actor: Actor | None) -> bool:
    """Whether the actor may search in what calls sent and gave."""
    return actor is not None and has_permission(
        actor, Permission.VIEW_AUDIT_BODIES, workspace_id=actor.workspace_id
    )


def is_frequent(workspace_id: UUID, words: str) -> bool:
    """Whether more entries hold the words than are looked up by them."""
    return connection.vendor == "postgresql" and _holders_of(workspace_id, words) is None


def _has_words(words: str, actor: Actor | None) -> Q:
    if connection.vendor != "postgresql":
        found = Q()
        for word in words.split():
            found &= Q(arguments_preview__icontains=word) | Q(result_preview__icontains=word)
        return found
    if actor is None or actor.workspace_id is None:
        return Q(pk__in=[])
    # The planner cannot know how rare a word is, and would read the log from its end to find it. Rare ones are looked
    # up in the index of words first; frequent ones are soon met in the order of the page.
    ids = _holders_of(actor.workspace_id, words)
    return Q(_HasWords(words)) if ids is None else Q(pk__in=ids)


def _holders_of(workspace_id: UUID, words: str) -> list[UUID] | None:
    """The entries that hold the words; None where more do than FREQUENT."""
    if _are_in_many(workspace_id, words):
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id FROM (SELECT id, workspace_id FROM audit_auditentry WHERE {_WORDS.format('')} OFFSET 0) found "  # noqa: S608 - a constant
            "WHERE workspace_id = %s LIMIT %s",
            [words, workspace_id, FREQUENT + 1],
        )
        found = [pk for (pk,) in cursor.fetchall()]
    return found if len(found) <= FREQUENT else None


def _are_in_many(workspace_id: UUID, words: str) -> bool:
    """Whether a few pages of a long log say that very many entries hold the words.

    The index of words gives all of them at once, however few are wanted: a third of a second for two million. The
    pages are the same for each search, so they stay in memory.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT reltuples, relpages FROM pg_class WHERE oid = 'audit_auditentry'::regclass"
        )
        entries, pages = cursor.fetchone() or (0, 0)
        if entries < LONG_LOG or not pages:
            return False
        cursor.execute(
            f"SELECT count(*) FILTER (WHERE workspace_id = %s AND {_WORDS.format('')}), count(*) "  # noqa: S608 - a constant
            "FROM audit_auditentry TABLESAMPLE SYSTEM (%s) REPEATABLE (1)",
            [workspace_id, words, min(100, 100 * _SAMPLED_PAGES / pages)],
        )
        holding, sampled = cursor.fetchone() or (0, 0)
    return holding >= _SURE and holding * entries > VERY_MANY * sampled


class _HasWords(Func):
    """Whether the previews hold words, which the database answers from its index of words."""

    output_field = BooleanField()
    conditional = True

    def __init__(self, words: str) -> None:
        super().__init__(F("arguments_preview"))
        self.words = words

    def as_sql(self, compiler: Any, connection: Any, **_extra: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        column, _ = compiler.compile(self.source_expressions[0])
        return _WORDS.format(column.rpartition(".")[0] + "."), [self.words]


class _Beyond(Func):
    """(a, b, c) < (x, y, z), which the database answers from one index."""

    output_field = BooleanField()
    conditional = True

    def __init__(self, sign: str, left: Sequence[F], right: Sequence[Value | F]) -> None:
        super().__init__(*left, *right)
        self.sign = sign
        self.half = len(left)

    def as_sql(self, compiler: Any, connection: Any, **_extra: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        parts, values = [], []
        for one in self.source_expressions:
            sql, some = compiler.compile(one)
            parts.append(sql)
            values += some
        left, right = ", ".join(parts[: self.half]), ", ".join(parts[self.half :])
        return f"({left}) {self.sign} ({right})", values


def key_condition(sign: str, columns: Sequence[str], key: Sequence[Any]) -> _Beyond:
    """Give the condition that an entry stands behind (">") or before ("<") a key of those columns."""
    fields: list[Any] = [AuditEntry._meta.get_field(name) for name in columns]
    values = [
        value if isinstance(value, F) else Value(value, output_field=field)
        for value, field in zip(key, fields, strict=True)
    ]
    return _Beyond(sign, [F(name) for name in columns], values)


def page_of(
    rows: WorkspaceQuerySet[AuditEntry],
    *,
    sort: str = "created_at",
    is_ascending: bool = False,
    before: str | None = None,
    after: str | None = None,
    size: int = PAGE_SIZE,
) -> EntryPage:
    """Give one page, found by key: entries that arrive meanwhile shift nothing. A key that is none is ignored."""
    columns = ("created_at", "id") if sort == "created_at" else (sort, "created_at", "id")
    key = _read_key(before or after, columns)
    is_backwards = before is not None and key is not None
    is_up = is_ascending != is_backwards
    if key is not None:
        sign = ">" if is_up else "<"
        rows = rows.filter(key_condition(sign, columns, key))
    order = [name if is_up else f"-{name}" for name in columns]
    found = list(rows.order_by(*order)[: size + 1])
    has_more = len(found) > size
    entries = found[:size]
    if is_backwards:
        entries.reverse()
    has_before = has_more if is_backwards else key is not None
    has_after = True if is_backwards else has_more
    return EntryPage(
        entries=entries,
        before=_key_of(entries[0], columns) if entries and has_before else None,
        after=_key_of(entries[-1], columns) if entries and has_after else None,
    )


def _key_of(entry: AuditEntry, columns: Sequence[str]) -> str:
    values = [getattr(entry, name) for name in columns]
    return json.dumps(
        [value.isoformat() if isinstance(value, datetime) else _plain(value) for value in values],
        separators=(",", ":"),
    )


def _plain(value: object) -> object:
    return str(value) if isinstance(value, UUID) else value


def _read_key(text: str | None, columns: Sequence[str]) -> list[Any] | None:
    if not text or len(text) > 2_000:
        return None
    try:
        values = json.loads(text)
        if not isinstance(values, list) or len(values) != len(columns):
            return None
        moment = read_moment(values[-2])
        key: list[Any] = [moment, UUID(values[-1])]
        if moment is None:
            return None
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    if len(columns) == 3:
        first = values[0]
        is_number = columns[0] in {"duration_ms", "arguments_size", "result_size"}
        if is_number and (not isinstance(first, int) or not 0 <= first < 2**63):
            return None
        if not is_number and (not isinstance(first, str) or "\x00" in first):
            return None
        key.insert(0, first)
    return key
