"""How large the database is, and what of: from the catalogues of each engine, in words that people know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from django.db import connection
from django.utils.functional import Promise
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from config.installation import sqlite_looks
from config.installation.sqlite_looks import FileFinding
from workspaces.database.time_limits import TookTooLong, at_most

MOST_PARTS: Final = 10
SECONDS: Final = 2.0
"""How long the database may count."""
_PARTS: Final[tuple[tuple[Promise, tuple[str, ...]], ...]] = (
    (_("Log entries"), ("audit_auditentry", "audit_auditseal", "audit_pendingseal")),
    (_("What calls sent and got, in the log"), ("audit_auditbody",)),
    (_("Seals and traces of the log"), ("audit_auditcheckpoint", "audit_audittombstone")),
    (_("Counts for reports"), ("audit_auditrollup", "audit_audithistogram", "audit_rollupcursor")),
    (_("Messages"), ("chat_message", "chat_queuedmessage")),
    (_("Search index of chats"), ("chat_message_words", "chat_message_lexemes", "chat_beside")),
    (_("Answers"), ("chat_turn",)),
    (_("Tool calls"), ("chat_toolcall",)),
    (_("Chats"), ("chat_conversation", "chat_draft", "chat_pin", "chat_folder")),
    (
        _("Files of chats: names and texts"),
        ("chat_artifactversion", "chat_artifact", "chat_attachment", "chat_filereading"),
    ),
    (_("Knowledge of buds"), ("chat_knowledgepassage", "chat_knowledge", "chat_passagevector")),
    (_("Buds and their versions"), ("chat_budversion", "chat_bud")),
    (_("Checks of buds"), ("chat_checkresult", "chat_check", "chat_budcheck")),
    (_("Shared chats"), ("chat_sharedchat",)),
    (
        _("Mails, notifications and webhooks"),
        (
            *("chat_webhookdelivery", "chat_remindermail", "chat_pushmessage"),
            *("audit_alertdelivery", "audit_notice"),
        ),
    ),
    (_("Messages of MCP servers (trace)"), ("mcp_servers_tracemessage",)),
    (_("Health checks of MCP servers"), ("mcp_servers_healthcheck",)),
    (_("MCP servers and their tools"), ("mcp_servers_mcptool", "mcp_servers_")),
    (_("Sessions"), ("django_session", "workspaces_workspacesession")),
)
"""Name, and what the names of its tables begin with; rows are those of the first."""
_OTHER: Final = _("Everything else")


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table with its indexes, as the database's catalogue has it."""

    size: int | None
    """Bytes; None: they were not counted."""
    rows: int | None
    """About; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGroup:
    """What people know as one thing."""

    what: str
    size: int | None
    rows: int | None
    """About; None: not known."""
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSize:
    """How large the database is."""

    engine: str
    size: int
    reusable: int | None
    """Bytes in it that hold nothing any more, and take what comes next; None: not known."""
    parts: list[TableGroup]
    """The largest first; what is left stands last, together."""
    is_counted: bool
    """Whether the sizes of the parts are known."""
    counted_at: datetime | None = None
    """When they were counted; None: just now, or not at all."""
    is_being_counted: bool = False
    """They will be known in a moment."""


def read_database() -> DatabaseSize:
    """Look once, within a few seconds at most."""
    waiting, counted_at, is_being_counted = 0, None, False
    if connection.vendor == "postgresql":
        size, reusable, tables = _postgresql()
        engine = "PostgreSQL"
    else:
        seen, is_being_counted = _pages_of_sqlite()
        size, reusable, tables = _sqlite(seen.found if seen else None)
        counted_at = seen.at if seen else None
        engine = "SQLite"
        waiting = _beside_sqlite()
    parts = parts_of(tables)
    is_counted = any(one.size is not None for one in parts)
    if waiting:
        what = _now("Latest changes, in a file beside the database's")
        parts.insert(-1, TableGroup(what=what, size=waiting, rows=None, tables=()))
    return DatabaseSize(
        engine=engine,
        size=size + waiting,
        reusable=reusable,
        parts=parts,
        is_counted=is_counted,
        counted_at=counted_at if is_counted else None,
        is_being_counted=is_being_counted,
    )


def parts_of(tables: Mapping[str, TableSize]) -> list[TableGroup]:
    """Put tables together to what people know, the largest first."""
    sizes: Counter[str] = Counter()
    names: dict[str, list[str]] = {}
    rows: dict[str, int | None] = {}
    is_counted = any(one.size is not None for one in tables.values())
    for name, table in tables.items():
        what, main = _part_of(name)
        sizes[what] += table.size or 0
        names.setdefault(what, []).append(name)
        if name == main:
            rows[what] = table.rows
    weight = sizes if is_counted else {what: rows.get(what) or 0 for what in names}
    other = str(_OTHER)
    known = sorted((one for one in names if one != other), key=lambda one: -weight[one])
    shown, rest = known[:MOST_PARTS], [*known[MOST_PARTS:], *({other} & names.keys())]
    parts = [
        TableGroup(
            what=what,
            size=sizes[what] if is_counted else None,
            rows=rows.get(what),
            tables=tuple(sorted(names[what])),
        )
        for what in shown
    ]
    if rest:
        parts.append(
            TableGroup(
                what=other,
                size=sum(sizes[one] for one in rest) if is_counted else None,
                rows=None,
                tables=tuple(sorted(name for one in rest for name in names[one])),
            )
        )
    return parts


def _part_of(table: str) -> tuple[str, str]:
    """What a table is a part of, and which table's rows count there."""
    found = max(
        (
            (len(start), str(what), starts[0])
            for what, starts in _PARTS
            for start in starts
            if table.startswith(start)
        ),
        default=(0, str(_OTHER), ""),
    )
    return found[1], found[2]


def _postgresql() -> tuple[int, int | None, dict[str, TableSize]]:
    """Sizes of files that PostgreSQL asks its own disk for; rows as its statistics have them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        (size,) = cursor.fetchone()
    try:
        with at_most(SECONDS), connection.cursor() as cursor:
            # One that is being rebuilt is waited for, but not for long.
            cursor.execute(
                "SELECT relname, pg_total_relation_size(oid), reltuples::bigint FROM pg_class"
                " WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'm')"
            )
            rows = cursor.fetchall()
    except TookTooLong:
        rows = []
    tables = {
        str(name): TableSize(int(total or 0), int(number) if number >= 0 else None)
        for name, total, number in rows
    }
    return int(size), None, tables


def _sqlite(pages: Mapping[str, int] | None) -> tuple[int, int | None, dict[str, TableSize]]:
    """Size of the file, and what of; `pages` are the bytes of its tables and indexes, where they are known."""
    with connection.cursor() as cursor:
        found = {}
        for pragma in ("page_size", "page_count", "freelist_count"):
            cursor.execute(f"PRAGMA {pragma}")
            found[pragma] = int(cursor.fetchone()[0])
        cursor.execute(
            "SELECT name, tbl_name, type FROM sqlite_master WHERE type IN ('table', 'index') AND rootpage > 0"
        )
        owners, tables = {}, []
        for name, table, kind in cursor.fetchall():
            owners[name] = table
            tables += [name] if kind == "table" else []
    rows = _rows_of_sqlite()
    sizes: Counter[str] = Counter()
    for name, size in (pages or {}).items():
        sizes[owners.get(name, name)] += size
    page = found["page_size"]
    return (
        found["page_count"] * page,
        found["freelist_count"] * page,
        {
            name: TableSize(sizes[name] if pages is not None else None, rows.get(name))
            for name in tables
        },
    )


def _beside_sqlite() -> int:
    """Bytes of the log of changes that SQLite keeps beside its file, and writes over again and again."""
    try:
        return Path(f"{connection.settings_dict['NAME']}-wal").stat().st_size
    except OSError:
        return 0


def _pages_of_sqlite() -> tuple[FileFinding[dict[str, int] | None] | None, bool]:
    """Bytes of each table and index, as somebody last counted them; and whether they are being counted for the first time."""
    path = sqlite_looks.database_file()
    if path is not None:
        seen = sqlite_looks.pages.last(path)
        return seen, seen is None and sqlite_looks.pages.fault is None
    connection.ensure_connection()
    return FileFinding(
        sqlite_looks.count_pages(connection.connection, SECONDS), datetime.now(UTC)
    ), False


def _rows_of_sqlite() -> dict[str, int]:
    """Rows of each table, as the last `ANALYZE` found them, which runs every hour."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'")
        if cursor.fetchone() is None:
            return {}
        cursor.execute("SELECT tbl, stat FROM sqlite_stat1")
        found: dict[str, int] = {}
        for table, stat in cursor.fetchall():
            number = str(stat).partition(" ")[0]
            if number.isdigit():
                found[str(table)] = max(found.get(str(table), 0), int(number))
        return found
