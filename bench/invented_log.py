"""`python -m bench.invented_log --workspace slug --entries N`: an invented log of any length, to measure pages and reports.

The entries are back-dated, sealed and counted like real ones, so this is no part of the product, and it writes only
into a database in which nobody has an account yet: make one with `migrate`, fill it, then `createsuperuser` and `up`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice
from time import monotonic
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()

from django.db import connection, transaction
from django.db.models import NOT_PROVIDED
from django.utils import timezone

from audit.actions import Action, Outcome, RefusedBy
from audit.models import AuditEntry, AuditHead, AuditSeal, PendingSeal, RollupCursor
from audit.proof.marks import mark_of
from audit.proof.records import record_of
from audit.proof.trellis_verify import entry_hash
from audit.rollups.counting import add, tally_of
from audit.rollups.folding import CountedEntry
from audit.sealing.reading import head_of
from audit.sealing.sealer import sealing_lock
from bench.words import WORDS
from workspaces.errors import Conflict
from workspaces.models import User, Workspace

BATCH, COUNTED_TOGETHER = 10_000, 100_000
_FIELDS: Final = tuple(AuditEntry._meta.concrete_fields)
_SERVERS: Final = ("notes", "maps", "crm", "billing", "calendar", "search", "files", "weather")
_TOOLS: Final = ("read", "write", "list", "find", "create", "update", "delete", "summarise")
_LAYERS: Final = (*RefusedBy,)


def _defaults() -> dict[str, Any]:
    """What a column holds that nothing is put into."""
    values: dict[str, Any] = {}
    for field in _FIELDS:
        default = field.default if field.default is not NOT_PROVIDED else None
        values[field.attname] = (
            None if field.null else default() if callable(default) else default or ""
        )
    return values


class Inventor:
    """Invents what happened, in order of time; the same seed invents the same."""

    def __init__(self, workspace_id: UUID, since: datetime, until: datetime, number: int) -> None:
        self._chance = random.Random(20261121)  # noqa: S311 - invented data, no secret
        self._step = (until - since) / max(number, 1)
        self._moment = since
        self._workspace_id = workspace_id
        self._defaults = _defaults() | {"workspace_id": workspace_id}
        self._people = [(self._uuid(), f"person{n}@example.org") for n in range(60)]
        self._servers = [(name, self._uuid()) for name in _SERVERS]
        self._hashes = [f"{self._chance.getrandbits(256):064x}" for _ in range(64)]

    def entries(self) -> Iterator[SimpleNamespace]:
        """Give one after the other, for ever."""
        chance = self._chance
        while True:
            kind = chance.random()
            if kind < 0.9:
                yield from self._call()
            elif kind < 0.94:
                yield self._entry(action=Action.AUTH_SIGNED_IN.value, source="web")
            elif kind < 0.97:
                name, pk = chance.choice(self._servers)
                action = chance.choice([Action.SERVER_CONNECTED, Action.SERVER_ERROR])
                yield self._entry(action=action.value, server_name=name, server_id=pk)
            else:
                details = {"verb": "changed", "kind": "tool", "before": {"a": 1}, "after": {"a": 2}}
                yield self._entry(action=Action.CONFIG_CHANGED.value, details=details)

    def _call(self) -> Iterator[SimpleNamespace]:
        chance = self._chance
        server = min(int(chance.expovariate(0.5)), len(_SERVERS) - 1)
        name, server_id = self._servers[server]
        tool = min(int(chance.expovariate(0.4)), len(_TOOLS) - 1)
        person = self._people[min(int(chance.expovariate(0.08)), 59)]
        arguments = self._text(chance.randrange(4, 20))
        source = chance.choices(["chat", "api", "task", "gateway"], [80, 14, 5, 1])[0]
        shared: dict[str, Any] = {
            "actor_id": person[0],
            "actor_label": person[1],
            "source": source,
            "call_id": self._uuid(),
            "conversation_id": self._uuid() if chance.random() < 0.3 else self._conversation,
            "turn_id": self._uuid(),
            "bud_name": f"bud {chance.randrange(6)}" if source == "chat" else "",
            "model": f"model-{chance.randrange(3)}" if source == "chat" else "",
            "server_name": name,
            "server_id": server_id,
            "transport": "streamable_http",
            "tool_name": f"{_TOOLS[tool]}_{name}",
            "definition_hash": self._hashes[server * 8 + tool],
            "request_id": f"{chance.getrandbits(64):016x}",
            "trace_id": f"{chance.getrandbits(128):032x}",
            "ip_address": f"10.0.{person[0].int % 4}.{person[0].int % 250}",
        }
        self._conversation = shared["conversation_id"]
        if chance.random() < 0.05:
            layer = chance.choice(_LAYERS).value
            refusal = {"refused_by": layer, "rule": f"{layer}.{chance.randrange(3)}"}
            yield self._entry(action=Action.TOOL_CALL_REFUSED.value, **refusal, **shared)
            return
        body = {"arguments_preview": arguments, "arguments_size": len(arguments)}
        if chance.random() < 0.08:
            yield self._entry(action=Action.APPROVAL_REQUESTED.value, **body, **shared)
            answered = self._moment + timedelta(seconds=chance.expovariate(1 / 40))
            yield self._entry(action=Action.APPROVAL_GRANTED.value, created_at=answered, **shared)
        yield self._entry(action=Action.TOOL_CALL_REQUESTED.value, **body, **shared)
        result = self._text(chance.randrange(10, 60))
        outcome = chance.choices(list(Outcome), [930, 35, 10, 10, 10, 5])[0]
        yield self._entry(
            action=Action.TOOL_CALL_FINISHED.value,
            outcome=outcome.value,
            duration_ms=int(chance.lognormvariate(5.5, 1.2)),
            queue_ms=chance.randrange(4),
            result_preview=result,
            result_size=len(result),
            result_commitment=f"{chance.getrandbits(256):064x}",
            **shared,
        )

    _conversation = UUID(int=7)

    def _entry(self, **values: Any) -> SimpleNamespace:
        self._moment += self._step * self._chance.random() * 2
        made = {
            **self._defaults,
            "id": self._uuid(self._moment),
            "created_at": self._moment,
            "actor_kind": "user",
            "actor_label": "system",
            "source": "task",
            "details": {},
            **values,
        }
        return SimpleNamespace(**made)

    def _text(self, words: int) -> str:
        chosen = self._chance.choices(WORDS, k=words)
        number = self._chance.randrange(1_000_000)
        return json.dumps({"text": " ".join(chosen), "reference": f"ref{number}"})

    def _uuid(self, moment: datetime | None = None) -> UUID:
        if moment is None:
            return UUID(int=self._chance.getrandbits(128), version=4)
        high = int(moment.timestamp() * 1000) << 80
        return UUID(int=(high | self._chance.getrandbits(80)) & ~(0xF << 76) | (7 << 76))


def generate(workspace_id: UUID, number: int, *, since: datetime, until: datetime) -> Iterator[int]:
    """Write entries with their seals and counters, batch by batch; gives after each how many there are.

    Raises:
        Conflict: another process seals all the time, or writes into this log.
    """
    source = Inventor(workspace_id, since, until, number).entries()
    written = 0
    facts: list[CountedEntry] = []
    while written < number:
        batch = [next(source) for _ in range(min(BATCH, number - written))]
        written += len(batch)
        facts += (
            CountedEntry(*(getattr(entry, name) for name in CountedEntry._fields))
            for entry in batch
        )
        head = head_of(workspace_id)
        seals = _sealed(workspace_id, batch, head)
        is_counted = len(facts) >= COUNTED_TOGETHER or written == number
        tally = tally_of(facts) if is_counted else None
        with _alone():  # all that takes long is done before: a transaction must not lie idle
            if head_of(workspace_id) != head:
                raise Conflict("Something else writes into this log.")
            _insert(batch, seals)
            _, _, seq, digest = seals[-1]
            AuditHead.objects.update_or_create(
                chain_id=workspace_id, defaults={"seq": seq, "hash": digest}
            )
            if tally is not None:
                add(workspace_id, tally)
                RollupCursor.objects.update_or_create(
                    chain_id=workspace_id, defaults={"seq": seq, "months_seq": seq}
                )
                facts.clear()
        yield written


def generate_counters(
    workspace_id: UUID, number: int, *, since: datetime, until: datetime
) -> Iterator[int]:
    """Write only the counters of that many entries, which is all that most reports read."""
    source = Inventor(workspace_id, since, until, number).entries()
    for written in range(0, number, COUNTED_TOGETHER):
        some = islice(source, min(COUNTED_TOGETHER, number - written))
        facts = [
            CountedEntry(*(getattr(entry, name) for name in CountedEntry._fields)) for entry in some
        ]
        with transaction.atomic():
            add(workspace_id, tally_of(facts))
        yield written + len(facts)


@contextmanager
def _alone() -> Iterator[None]:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '10s'")
    for _ in range(100):
        with sealing_lock() as has_lock:
            if has_lock:
                yield
                return
    raise Conflict("Another process is sealing the log all the time.")


def _sealed(
    workspace_id: UUID, batch: Sequence[SimpleNamespace], head: tuple[int, str]
) -> list[tuple[UUID, UUID, int, str]]:
    seq, previous = head
    seals = []
    for entry in batch:
        seq += 1
        content = record_of(entry)  # type: ignore[arg-type]
        entry.mark = mark_of(entry, content)  # type: ignore[arg-type]
        previous = entry_hash(str(workspace_id), seq, previous, content)
        seals.append((entry.id, workspace_id, seq, previous))
    return seals


def _insert(batch: Sequence[SimpleNamespace], seals: Sequence[tuple[Any, ...]]) -> None:
    if connection.vendor != "postgresql":
        AuditEntry.objects.bulk_create(
            [AuditEntry(**vars(entry)) for entry in batch], batch_size=500
        )
        PendingSeal.objects.filter(entry_id__in=[entry.id for entry in batch]).delete()
        AuditSeal.objects.bulk_create(
            [
                AuditSeal(entry_id=pk, chain_id=chain, seq=seq, hash=digest)
                for pk, chain, seq, digest in seals
            ],
            batch_size=500,
        )
        return
    names = ", ".join(f'"{field.column}"' for field in _FIELDS)
    json_names = {field.attname for field in _FIELDS if field.get_internal_type() == "JSONField"}
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY audit_auditentry ({names}) FROM STDIN") as copy:
            for entry in batch:
                values = vars(entry)
                copy.write_row(
                    [
                        json.dumps(values[f.attname])
                        if f.attname in json_names and values[f.attname] is not None
                        else values[f.attname]
                        for f in _FIELDS
                    ]
                )
        cursor.execute(
            "DELETE FROM audit_pendingseal WHERE entry_id = ANY(%s)",
            [[entry.id for entry in batch]],
        )
        with cursor.copy("COPY audit_auditseal (entry_id, chain_id, seq, hash) FROM STDIN") as copy:
            for seal in seals:
                copy.write_row(seal)


def main(arguments: list[str] | None = None) -> int:
    """Fill the database that the environment names."""
    parser = argparse.ArgumentParser(description="Fill an invented workspace's log.")
    parser.add_argument("--entries", type=int, required=True, help="How many.")
    parser.add_argument("--workspace", required=True, help="Its slug; it must not exist yet.")
    parser.add_argument("--days", type=int, default=90, help="Over how many days, up to now.")
    parser.add_argument(
        "--counters-only", action="store_true", help="Write no entries, only what reports read."
    )
    options = parser.parse_args(arguments)
    number, days = options.entries, options.days
    if number < 1 or days < 1:
        parser.error("Entries and days are at least 1.")
    if User.objects.exists() or Workspace.objects.filter(slug=options.workspace).exists():
        parser.error("This database is in use: invented entries go into one of their own.")
    workspace = Workspace.objects.create(slug=options.workspace, name=options.workspace)
    begin, until = monotonic(), timezone.now()
    make = generate_counters if options.counters_only else generate
    for written in make(workspace.pk, number, since=until - timedelta(days=days), until=until):
        rate = written / (monotonic() - begin)
        sys.stdout.write(f"{written} of {number} entries, {rate:.0f} a second\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
