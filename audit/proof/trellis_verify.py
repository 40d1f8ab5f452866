#!/usr/bin/env python3
"""Check an export of Trellis' audit log on any machine: python trellis_verify.py export.jsonl [--checkpoint file].

Needs Python 3.11 and the package `cryptography`; nothing of Trellis. The formats are described in docs/audit.md.
Exit codes: 0 whole, 1 altered, 2 incomplete, 3 unreadable.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import math
import re
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

EXPORT_FORMAT = "trellis-export/1"
CHECKPOINT_FORMAT = "trellis-checkpoint/1"
TOMBSTONE_FORMAT = "trellis-tombstone/1"
EXTERNAL_FORMAT = "trellis-external/1"
NO_HASH = "0" * 64
PLATFORM_CHAIN = "00000000-0000-0000-0000-000000000000"
WHOLE, ALTERED, INCOMPLETE, UNREADABLE = "whole", "altered", "incomplete", "unreadable"
EXIT_CODES = {WHOLE: 0, ALTERED: 1, INCOMPLETE: 2, UNREADABLE: 3}
MOST_FINDINGS = 100
MOST_LINE_BYTES = 64 * 1024 * 1024
MOST_EXACT_INTEGER = 2**53 - 1
Record = dict[str, Any]


# Canonical JSON ------------------------------------------------------------------------------------------------------


def canonical(value: object) -> bytes:
    """Write a JSON value as RFC 8785 says.

    Raises:
        ValueError: it cannot be written so (an integer beyond 2**53, a number that is not finite, half a character).
    """
    if _is_plain(value):
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        # Only keys beyond the basic plane sort differently; that they are keys need not be known.
        if text.isascii() or not _ASTRAL.search(text):
            return text.encode()
    return _written(value).encode()


_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def _is_plain(value: object) -> bool:
    """Whether Python writes the value as RFC 8785 does: without fractions and large integers."""
    kind = type(value)
    if kind is dict:
        for item in value.values():  # type: ignore[attr-defined]  # it is a dict
            kind = type(item)
            if kind is str or item is None or kind is bool:
                continue
            if not _is_plain(item):
                return False
        return True
    if kind is list:
        return all(_is_plain(item) for item in value)  # type: ignore[attr-defined]  # it is a list
    if kind is int:
        return -MOST_EXACT_INTEGER <= value <= MOST_EXACT_INTEGER  # type: ignore[operator]
    return value is None or kind is str or kind is bool


def _written(value: object) -> str:
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        if abs(value) > MOST_EXACT_INTEGER:
            raise ValueError("an integer beyond 2**53")
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, dict):
        # By UTF-16 code units; big-endian bytes compare like the units.
        items = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return "{" + ",".join(f"{_written(k)}:{_written(v)}" for k, v in items) + "}"
    raise ValueError(f"{type(value).__name__} is no JSON")


def _number(value: float) -> str:
    """As ECMAScript's Number::toString; Python's repr has the same digits."""
    if not math.isfinite(value):
        raise ValueError("a number that is not finite")
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        text = digits + "0" * (point - count)
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        rest = f".{digits[1:]}" if count > 1 else ""
        text = f"{digits[0]}{rest}e{point - 1:+d}"
    return f"-{text}" if value < 0 else text


# What is hashed and signed -------------------------------------------------------------------------------------------


def entry_hash(chain: str, seq: int, previous: str, entry: Record) -> str:
    """SHA-256 of the canonical JSON of {"chain", "entry", "previous", "seq"}."""
    text = b'{"chain":"%b","entry":%b,"previous":"%b","seq":%d}' % (
        chain.encode(),
        canonical(entry),
        previous.encode(),
        seq,
    )
    return hashlib.sha256(text).hexdigest()


def head_label(chain: str) -> str:
    """How a checkpoint names a chain, so that nobody learns from it of chains they do not know."""
    return hashlib.sha256(f"chain:{chain}".encode()).hexdigest()[:32]


def head_digest(chain: str, seq: int, hash_: str) -> str:
    """What a checkpoint says of where a chain stood."""
    return hashlib.sha256(f"{chain}:{seq}:{hash_}".encode()).hexdigest()


def fingerprint_of(public: bytes) -> str:
    """SHA-256 of a public key; its first 16 digits are the key's id."""
    return hashlib.sha256(public).hexdigest()


def is_signed(text: str, signature: str, public: str) -> bool:
    """Whether an Ed25519 signature (base64) over the text holds under a public key (base64)."""
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public, validate=True))
        key.verify(base64.b64decode(signature, validate=True), text.encode())
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, in plain words."""

    result: str
    text: str
    chain: str | None = None
    seq: int | None = None


@dataclass(slots=True)
class VerificationReport:
    """What a verification found."""

    result: str = WHOLE
    findings: list[Finding] = field(default_factory=list)
    findings_in_all: int = 0
    gaps: int = 0
    """How many of them are ranges that lay unsigned, as signed statements say."""
    first_bad: dict[str, int] = field(default_factory=dict)
    """Chain → the first sequence number at which something is wrong."""
    notes: list[str] = field(default_factory=list)
    entries: int = 0
    checkpoints: int = 0
    tombstones: int = 0
    heads: dict[str, tuple[int, str]] = field(default_factory=dict)
    stated: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Where the chains stood at the newest checkpoint: from there a later verification can go on."""
    checkpoint: tuple[int, str] | None = None
    fingerprints: list[str] = field(default_factory=list)

    def add(self, result: str, text: str, chain: str | None = None, seq: int | None = None) -> None:
        """Note a finding; of very many only the first are kept."""
        if _GRAVITY.index(result) > _GRAVITY.index(self.result):
            self.result = result
        self.findings_in_all += 1
        if chain is not None and seq is not None:
            self.first_bad[chain] = min(seq, self.first_bad.get(chain, seq))
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(Finding(result, text, chain, seq))

    def as_json(self) -> Record:
        """The report as JSON values."""
        names = (
            *("result", "findings_in_all", "gaps", "first_bad", "notes", "entries", "checkpoints"),
            *("tombstones", "heads", "checkpoint", "fingerprints"),
        )
        return {name: getattr(self, name) for name in names} | {
            "findings": [
                {"result": f.result, "text": f.text, "chain": f.chain, "seq": f.seq}
                for f in self.findings
            ]
        }


_GRAVITY = (WHOLE, INCOMPLETE, ALTERED, UNREADABLE)


@dataclass(slots=True)
class _Chain:
    seq: int = 0
    hash: str = NO_HASH
    is_known: bool = True
    """Whether `hash` may be built upon: behind a gap it is not known."""
    stated: tuple[int, str] | None = None
    """Where the newest checkpoint that speaks of it found it."""


@dataclass(frozen=True, slots=True)
class _Tombstone:
    first: int
    last: int
    before: str
    hash: str


class _Tombstones:
    """Those of one chain and kind. Erasing what one person did leaves very many, so none is looked for one by one."""

    def __init__(self) -> None:
        self._all: dict[_Tombstone, None] = {}
        self._reach: list[tuple[int, int]] = []
        """First and last place of each, in order; the last is the greatest of all up to there. Empty: to be made anew."""

    def __iter__(self) -> Iterator[_Tombstone]:
        return iter(self._all)

    def add(self, stone: _Tombstone) -> bool:
        """Take one; whether it is new."""
        if stone in self._all:
            return False
        self._all[stone] = None
        self._reach.clear()
        return True

    def covers(self, seq: int) -> bool:
        """Whether one covers a place."""
        if not self._reach:
            last = 0
            for stone in sorted(self._all, key=lambda stone: stone.first):
                last = max(last, stone.last)
                self._reach.append((stone.first, last))
        index = bisect_right(self._reach, seq, key=lambda ends: ends[0])
        return index > 0 and seq <= self._reach[index - 1][1]


class MalformedRecord(ValueError):
    """A record that lacks what it must have, or has it in another form."""


# The check itself ----------------------------------------------------------------------------------------------------


class Verifier:
    """Is fed the records of a log in the order of sealing, keeps one place per chain, and says what is wrong.

    Args:
        trusted: fingerprints (or at least 16 digits of them) of which one must have signed; none: the log's own first.
        external: the newest checkpoint as kept outside the database: {"statement", "signature"}.
        heads, checkpoint, key: where an earlier verification ended, to go on from there.
    """

    def __init__(
        self,
        *,
        trusted: Iterable[str] = (),
        external: Record | None = None,
        heads: dict[str, tuple[int, str]] | None = None,
        checkpoint: tuple[int, str] | None = None,
        key: tuple[str, str] | None = None,
    ) -> None:
        self.report = VerificationReport(checkpoint=checkpoint)
        self._trusted = [text.lower().replace(":", "") for text in trusted]
        self._chains = {
            name: _Chain(seq, hash_, stated=(seq, hash_))
            for name, (seq, hash_) in (heads or {}).items()
        }
        self._tombstones: dict[tuple[str, str], _Tombstones] = {}
        self._scope: set[str] | None = None
        self._keys: dict[str, str] = dict([key] if key else [])
        self._key: str | None = key[0] if key else None
        self._key_uses: dict[str, str] = {}
        self._begun_anew: int | None = None
        self._untrusted: list[str] = []
        self._ended = False
        self._has_header = False
        self._restores: list[Record] = []
        self._external: Record | None = None
        self._seen: dict[str, str] = {}
        self._seen_checkpoint: str | None = None
        if external is not None:
            self._external = self._read_external(external)

    def feed(self, record: Record) -> None:
        """Take the next record.

        Raises:
            MalformedRecord: it is none.
        """
        try:
            kind = record["record"]
            if kind == "entry":
                self._entry(record)
            elif self._ended:
                self.report.add(ALTERED, "Something follows after the end of the export.")
            elif kind == "checkpoint":
                self._checkpoint(record)
            elif kind == "tombstone":
                self._tombstone(record)
            elif kind == "header":
                self._header(record)
            elif kind == "end":
                self._end(record)
            else:
                raise MalformedRecord(f"a record of unknown kind {str(kind)[:40]!r}")
        except (KeyError, TypeError, AttributeError) as error:
            raise MalformedRecord(f"a record without what it must have ({error})") from error

    def limit_to(self, chain: str) -> None:
        """Expect one chain only, as in an export of a workspace."""
        self._scope = {chain}

    def place_of(self, chain: str) -> int:
        """As far as a chain has been read."""
        return self._place(chain).seq

    def trust_nothing(self) -> None:
        """Ask for no known key: for a log so young that nothing of it is signed."""
        self._trusted = []

    def finish(self, *, needs_end: bool) -> VerificationReport:
        """Say what was found; `needs_end` for an export, which is complete only with its last line."""
        report = self.report
        if needs_end and not self._has_header:
            report.add(UNREADABLE, "This is no verifiable export: its first line is missing.")
        elif needs_end and not self._ended:
            report.add(INCOMPLETE, "The export breaks off: its last line is missing.")
        for key_id, what in self._key_uses.items():
            if key_id not in self._keys:
                report.add(
                    ALTERED, f"{what} is signed with key {key_id}, which the log does not know."
                )
        if not self._is_trusted(self._key):  # else its statements vouch for those before them
            for text in self._untrusted:
                report.add(ALTERED, text)
        fingerprints = [fingerprint_of(base64.b64decode(public)) for public in self._keys.values()]
        if self._trusted and not any(f.startswith(t) for f in fingerprints for t in self._trusted):
            report.add(ALTERED, "The log is not signed with the key that you trust.")
        report.fingerprints = fingerprints
        self._check_external()
        report.stated = {name: chain.stated for name, chain in self._chains.items() if chain.stated}
        report.heads = {name: (chain.seq, chain.hash) for name, chain in self._chains.items()}
        return report

    # Entries

    def _entry(self, record: Record) -> None:
        if self._ended:
            self.report.add(
                ALTERED, "An entry follows after the end.", record["chain"], record["seq"]
            )
            return
        name, seq, hash_, entry = record["chain"], record["seq"], record["hash"], record["entry"]
        if type(seq) is not int or type(name) is not str or type(hash_) is not str:
            raise MalformedRecord("an entry whose place is not written as it must be")
        self.report.entries += 1
        if self._scope is not None and name not in self._scope:
            self.report.add(ALTERED, "An entry of a chain that is not part of this.", name, seq)
            return
        chain = self._chains.get(name)
        if chain is None:
            chain = self._chains[name] = _Chain()
        if seq <= chain.seq:
            self.report.add(
                ALTERED, "The entry stands a second time, or not in its place.", name, seq
            )
            return
        if seq != chain.seq + 1:
            self._cross(name, chain, seq - 1)
            if seq != chain.seq + 1:
                self._miss(name, chain, seq - 1)
        self._compare(name, chain, seq, hash_, entry)
        chain.seq, chain.hash, chain.is_known = seq, hash_, True
        if entry is not None and entry.get("action") == "log.key_lost":
            self._note_loss(name, entry)
        if self._external is not None:
            head = self._external["heads"].get(name)
            if head is not None and head[0] == seq:
                self._seen[name] = hash_

    def _note_loss(self, name: str, entry: Record) -> None:
        """Say what a person has declared of a lost key, once for each chain and time."""
        details = entry.get("details")
        if not isinstance(details, dict) or details.get("part") != 1:
            return
        until, without_seal = details.get("until"), details.get("without_seal")
        if not until and not without_seal:
            return
        at, by = entry.get("created_at"), entry.get("actor_label", "")
        text = (
            f"Chain {name}, up to seq {until}: {by} declared at {at} that the key of these entries is lost. Their "
            "chain and its signatures still prove what they say. Arguments and results are proven only since then."
        )
        if without_seal:
            text += f" {without_seal} entries have no seal: nothing proves who wrote these."
        self.report.notes.append(text)

    def _compare(
        self, name: str, chain: _Chain, seq: int, hash_: str, entry: Record | None
    ) -> None:
        if entry is None:
            self.report.add(
                INCOMPLETE,
                "The entry is gone or cannot be read; its seal is still there.",
                name,
                seq,
            )
            return
        if entry.get("workspace_id", PLATFORM_CHAIN) != name:
            self.report.add(ALTERED, "The entry belongs to another workspace.", name, seq)
        if not chain.is_known:
            return
        try:
            is_same = entry_hash(name, seq, chain.hash, entry) == hash_
        except (ValueError, RecursionError):
            is_same = False
        if not is_same:
            text = "The entry does not match its seal: it, or what stands before it, was changed."
            self.report.add(ALTERED, text, name, seq)

    def _cross(self, name: str, chain: _Chain, target: int) -> None:
        """Go over ranges that were removed and signed for, as far as to `target`."""
        while chain.seq < target:
            over = next(
                (
                    stone
                    for stone in self._tombstones.get((name, "entries"), ())
                    if stone.first <= chain.seq + 1 <= stone.last
                ),
                None,
            )
            if over is None:
                return
            if chain.is_known and over.first == chain.seq + 1 and over.before != chain.hash:
                text = "What was removed here does not join what stands before it."
                self.report.add(ALTERED, text, name, over.first)
            # A statement may stop in the midst of what is gone; which hash stood there, only it can say.
            chain.seq = min(over.last, target)
            chain.hash, chain.is_known = over.hash, chain.seq == over.last

    def _miss(self, name: str, chain: _Chain, last: int) -> None:
        first = chain.seq + 1
        text = (
            f"Entries {first} to {last} are missing." if last > first else "The entry is missing."
        )
        self.report.add(INCOMPLETE, text, name, first)
        chain.seq, chain.is_known = last, False

    def stand(self, name: str, seq: int, hash_: str, what: str) -> None:
        """Check that a chain stands where a statement says."""
        chain = self._chains.setdefault(name, _Chain())
        if chain.seq < seq:
            self._cross(name, chain, seq)
        if chain.seq < seq:
            text = f"Entries {chain.seq + 1} to {seq} are missing, which {what} speaks of."
            self.report.add(INCOMPLETE, text, name, chain.seq + 1)
            chain.seq, chain.hash, chain.is_known = seq, hash_, True
        elif chain.seq > seq:
            self.report.add(
                ALTERED, f"Entries stand before {what} that came after it.", name, seq + 1
            )
        elif not chain.is_known:
            chain.hash, chain.is_known = hash_, True
        elif chain.hash != hash_:
            first = (chain.stated[0] if chain.stated else 0) + 1
            where = f"Between entries {first} and {seq}" if first < seq else "Here"
            text = f"{where} something was changed: the chain differs from what {what} says."
            self.report.add(ALTERED, text, name, min(first, seq))

    def covers(self, chain: str, kind: str, seq: int) -> bool:
        """Whether a signed tombstone of that kind covers a place."""
        stones = self._tombstones.get((chain, kind))
        return stones is not None and stones.covers(seq)

    # Statements

    def _header(self, record: Record) -> None:
        if record["format"] != EXPORT_FORMAT:
            raise MalformedRecord(f"an export in the form {str(record['format'])[:40]!r}")
        if self._has_header:
            self.report.add(ALTERED, "There are two first lines.")
        self._has_header = True
        if record["scope"] != "platform":
            self._scope = {record["scope"]}

    def _read(self, record: Record, form: str, what: str) -> Record | None:
        """A signed statement, or None if its signature does not hold."""
        text = record["statement"]
        try:
            statement: Record = json.loads(text, object_pairs_hook=_once)
            key = statement["key"]
            public = base64.b64decode(key["public"], validate=True)
            is_ours = statement["format"] == form and fingerprint_of(public)[:16] == key["id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            self.report.add(ALTERED, f"{what} cannot be read.")
            return None
        if not is_ours or not is_signed(text, record["signature"], key["public"]):
            self.report.add(ALTERED, f"The signature of {what} does not hold.")
            return None
        return statement

    def _tombstone(self, record: Record) -> None:
        statement = self._read(record, TOMBSTONE_FORMAT, "a tombstone")
        self.report.tombstones += 1
        if statement is None:
            return
        name, first, last = statement["chain"], statement["first"], statement["last"]
        stone = _Tombstone(first, last, statement["before"], statement["hash"])
        stones = self._tombstones.setdefault((name, statement["kind"]), _Tombstones())
        if not (1 <= first <= last):
            self.report.add(ALTERED, "A tombstone names no range.", name, first)
        elif not stones.add(stone):
            self.report.tombstones -= 1
        self._key_uses.setdefault(statement["key"]["id"], "A tombstone")
        expected = {key: statement[key] for key in ("chain", "kind", "first", "last", "reason")}
        expected |= {"made_at": statement["made_at"], "key_id": statement["key"]["id"]}
        self._match(record, expected, "a tombstone", name, first)

    def _match(
        self,
        record: Record,
        expected: Record,
        what: str,
        chain: str | None = None,
        seq: int | None = None,
    ) -> None:
        """Compare what stands beside a statement with what was signed; older exports say nothing of it."""
        if "columns" not in record:
            return
        columns = record["columns"]
        for name, value in expected.items():
            if columns.get(name) != value:
                text = f"The {name} of {what} is not the one that was signed."
                self.report.add(ALTERED, text, chain, seq)

    def _checkpoint(self, record: Record) -> None:
        report = self.report
        report.checkpoints += 1
        statement = self._read(record, CHECKPOINT_FORMAT, "a checkpoint")
        if statement is None:
            return
        number = statement["number"]
        what = f"checkpoint {number}"
        hash_ = hashlib.sha256(record["statement"].encode()).hexdigest()
        before, before_hash = report.checkpoint or (0, NO_HASH)
        if number <= before:
            report.add(ALTERED, f"C{what[1:]} stands a second time, or not in its place.")
            return
        if number == before + 1:
            if statement["previous"] != before_hash:
                report.add(ALTERED, f"C{what[1:]} does not follow from the one before it.")
        elif self._scope is None:
            report.add(INCOMPLETE, f"Checkpoints {before + 1} to {number - 1} are missing.")
        report.checkpoint = (number, hash_)
        self._follow_key(statement, record, what)
        expected = {"number": number, "kind": statement["kind"], "made_at": statement["made_at"]}
        self._match(record, expected | {"key_id": statement["key"]["id"], "hash": hash_}, what)
        opened = {head_label(name): (name, *head) for name, head in record["heads"].items()}
        mine = None if self._scope is None else {head_label(name) for name in self._scope}
        for label, digest in statement["heads"].items():
            head = opened.get(label)
            if head is not None:
                if head_digest(*head) != digest:
                    report.add(ALTERED, f"What stands beside {what} is not what it says.", head[0])
                    continue
                name, seq, hash_at = head
                self._look_for_gap(name, seq, statement)
                self.stand(name, seq, hash_at, what)
                self._chains[name].stated = (seq, hash_at)
            elif mine is None or label in mine:
                report.add(ALTERED, f"What {what} says of a chain is withheld.")
        if opened.keys() - statement["heads"].keys():
            report.add(ALTERED, f"Beside {what} stands more than was signed.")
        if statement["kind"] == "restored":
            restored = statement["restored"]
            self._restores.append(restored)
            report.notes.append(
                f"The database was restored from a backup: what was sealed after checkpoint "
                f"{restored['after']} and up to {restored['to']} of the lost copy is not in it. "
                "A person confirmed that."
            )
        if self._external is not None and number == self._external["number"]:
            self._seen_checkpoint = hash_

    def _look_for_gap(self, name: str, last: int, statement: Record) -> None:
        """Name the entries that lay unsigned while the signing key was missing."""
        since = statement.get("unsigned_since")
        stated = self._place(name).stated
        first = (stated[0] if stated else 0) + 1
        if since is None or first > last:
            return
        if self._begun_anew == statement["number"]:
            text = f"Chain {name}, entries {first} to {last}: nothing was signed from {since} to {statement['made_at']}."
            self.report.notes.append(text)
            return
        text = (
            f"Between entries {first} and {last} nothing was signed from {since} to {statement['made_at']}, since "
            "the signing key was missing: nothing proves that they were not changed in that time."
        )
        self.report.gaps += 1
        self.report.add(INCOMPLETE, text, name, first)

    def _is_trusted(self, key_id: str | None) -> bool:
        public = self._keys.get(key_id or "")
        if public is None:
            return False
        fingerprint = fingerprint_of(base64.b64decode(public))
        return any(fingerprint.startswith(text) for text in self._trusted)

    def _follow_key(self, statement: Record, record: Record, what: str) -> None:
        key = statement["key"]
        if self._key is None:
            self._key = key["id"]
            self._keys[key["id"]] = key["public"]
        elif statement["kind"] == "key_lost":
            self._begin_anew(statement, what)
            return
        elif key["id"] != self._key:
            text = (
                f"C{what[1:]} is signed with key {key['id']}, which nothing before it introduces."
            )
            self.report.add(ALTERED, text)
            return
        if statement["kind"] != "rotation" and record.get("countersignature"):
            self.report.add(ALTERED, f"C{what[1:]} is countersigned, although no key changed.")
        if statement["kind"] == "rotation":
            new = statement["next_key"]
            public = base64.b64decode(new["public"])
            signature = record.get("countersignature") or ""
            if fingerprint_of(public)[:16] != new["id"] or not is_signed(
                record["statement"], signature, new["public"]
            ):
                self.report.add(ALTERED, f"The new key's signature of {what} does not hold.")
                return
            self._key = new["id"]
            self._keys[new["id"]] = new["public"]

    def _begin_anew(self, statement: Record, what: str) -> None:
        """Go on with a key that none before it introduced. It counts once a key signs that is trusted by another way."""
        key, lost = statement["key"], statement["lost_key"]
        if key["id"] == self._key or lost["fingerprint"][:16] != self._key:
            self.report.add(ALTERED, f"C{what[1:]} declares a key lost that was not the log's.")
            return
        self._key = key["id"]
        self._keys[key["id"]] = key["public"]
        self._begun_anew = statement["number"]
        self._untrusted.append(
            f"C{what[1:]} is signed with key {key['id']}, which nothing before it introduces, because the key before it is "
            "said to be lost. If you were told of the log's newest key by another way, name that one, too."
        )
        self.report.notes.append(
            f"At c{what[1:]}, {lost['declared_by']} declared key {lost['fingerprint']} lost, and key {key['id']} went on. "
            "What stands before is proven only if the lost one was your key, too."
        )

    def _end(self, record: Record) -> None:
        self._ended = True
        statement = self._read(record, EXPORT_FORMAT, "the last line")
        if statement is None:
            return
        report = self.report
        if not self._keys:  # a log so young that it has no checkpoint
            self._keys[statement["key"]["id"]] = statement["key"]["public"]
        self._key_uses.setdefault(statement["key"]["id"], "The last line")
        for name, (seq, hash_) in statement["heads"].items():
            self.stand(name, seq, hash_, "the last line")
        for name in self._chains.keys() - statement["heads"].keys():
            report.add(ALTERED, "The last line knows nothing of this chain.", name, 1)
        for what in ("entries", "tombstones", "checkpoints"):
            given, stated = getattr(report, what), statement[what]
            if given != stated:
                result = INCOMPLETE if given < stated else ALTERED
                report.add(result, f"The last line says {stated} {what}; there are {given}.")
        found = statement.get("found", [])
        for one in found:
            report.add(ALTERED, one["text"], one["chain"], one["seq"])
        report.findings_in_all += max(0, statement.get("found_in_all", 0) - len(found))
        stated_checkpoint = statement["checkpoint"]
        if stated_checkpoint is not None and tuple(stated_checkpoint) != report.checkpoint:
            is_older = report.checkpoint is None or report.checkpoint[0] < stated_checkpoint[0]
            text = f"The newest checkpoint is not {stated_checkpoint[0]}, as the last line says."
            report.add(INCOMPLETE if is_older else ALTERED, text)

    # What is kept outside

    def _read_external(self, record: Record) -> Record | None:
        try:
            statement = self._read(record, EXTERNAL_FORMAT, "the checkpoint file")
            if statement is not None:
                self._key_uses.setdefault(statement["key"]["id"], "The checkpoint file")
                for name, (seq, _hash) in statement["heads"].items():
                    if self._place(name).seq == seq:
                        self._seen[name] = self._place(name).hash
                _ = statement["number"] + 0, statement["checkpoint"]
        except (KeyError, TypeError, ValueError, AttributeError):
            self.report.add(UNREADABLE, "The checkpoint file cannot be read.")
            return None
        return statement

    def _place(self, name: str) -> _Chain:
        return self._chains.get(name, _Chain())

    def _check_external(self) -> None:
        outside = self._external
        if outside is None:
            return
        report = self.report
        number = outside["number"]
        newest = report.checkpoint[0] if report.checkpoint else 0
        if newest == number and report.checkpoint and self._seen_checkpoint is None:
            self._seen_checkpoint = report.checkpoint[1]
        wrong: list[tuple[str, str, str | None, int | None]] = []
        if newest < number:
            text = (
                f"The log ends with checkpoint {newest}, but {number} was made: its end was cut off, "
                "or an old copy was restored."
            )
            wrong.append((INCOMPLETE, text, None, None))
        elif self._seen_checkpoint not in {None, outside["checkpoint"]}:
            text = f"Checkpoint {number} is not the one that was kept outside."
            wrong.append((ALTERED, text, None, None))
        for name, (seq, hash_) in outside["heads"].items():
            if self._scope is not None and name not in self._scope:
                continue
            at = self._place(name).seq
            if at < seq:
                text = (
                    f"Entries {at + 1} to {seq} are missing, which the checkpoint file speaks of."
                )
                wrong.append((INCOMPLETE, text, name, at + 1))
            elif self._seen.get(name, hash_) != hash_:
                text = "The chain differs from what was kept outside."
                wrong.append((ALTERED, text, name, seq))
        if wrong and any(r["after"] < number <= r["to"] for r in self._restores):
            report.notes.append("The checkpoint file is of the copy that was lost.")
            return
        for finding in wrong:
            report.add(*finding)


# An export -----------------------------------------------------------------------------------------------------------


def _once(pairs: list[tuple[str, Any]]) -> Record:
    """A JSON object; one that says something twice is none."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def read_export(file: IO[bytes]) -> Iterator[Record]:
    """The records of an export.

    Raises:
        MalformedRecord: a line is no JSON object.
    """
    number = 0
    loads = json.JSONDecoder(object_pairs_hook=_once).decode
    while line := file.readline(MOST_LINE_BYTES):
        number += 1
        try:
            record = loads(line.decode())
        except (ValueError, RecursionError) as error:
            raise MalformedRecord(f"line {number} is no JSON object ({error})") from error
        if not isinstance(record, dict):
            raise MalformedRecord(f"line {number} is no JSON object")
        yield record


def verify_export(
    file: IO[bytes],
    *,
    trusted: Iterable[str] = (),
    external: Record | None = None,
    progress: Callable[[int], None] | None = None,
) -> VerificationReport:
    """Check an export from beginning to end."""
    verifier = Verifier(trusted=trusted, external=external)
    try:
        for record in read_export(file):
            verifier.feed(record)
            if progress and verifier.report.entries % 100_000 == 0:
                progress(verifier.report.entries)
    except (MalformedRecord, ValueError) as error:
        verifier.report.add(UNREADABLE, f"The export cannot be read: {error}.")
    return verifier.finish(needs_end=verifier.report.result != UNREADABLE)


def read_external(path: Path) -> Record:
    """A checkpoint file.

    Raises:
        OSError: there is none.
        ValueError: it is none.
    """
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict) or not isinstance(found.get("statement"), str):
        raise ValueError("no checkpoint file")
    return found


def lines_of(report: VerificationReport) -> Iterator[str]:
    """The report for people."""
    yield f"{report.result.upper()}: {report.entries} entries, {report.checkpoints} checkpoints, {report.tombstones} tombstones."
    for finding in report.findings:
        place = f"chain {finding.chain}" if finding.chain else ""
        place += f", seq {finding.seq}" if finding.seq is not None else ""
        yield (
            f"{finding.result}: {place}: {finding.text}"
            if place
            else f"{finding.result}: {finding.text}"
        )
    if report.findings_in_all > len(report.findings):
        yield f"… and {report.findings_in_all - len(report.findings)} more."
    for chain, seq in report.first_bad.items():
        yield f"First bad in chain {chain}: seq {seq}."
    for note in report.notes:
        yield f"Note: {note}"
    for fingerprint in report.fingerprints:
        yield f"Signed with key {fingerprint}. Compare it with the one that the operator gave you by another way."


def main(arguments: list[str] | None = None) -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(description="Check an export of Trellis' audit log.")
    parser.add_argument("export", type=Path)
    parser.add_argument(
        "--checkpoint", type=Path, help="the checkpoint file kept outside the database"
    )
    parser.add_argument("--key", action="append", default=[], help="fingerprint of a key you trust")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(arguments)
    began = time.monotonic()

    def progress(entries: int) -> None:
        if entries and sys.stderr.isatty():
            print(f"{entries} entries, {time.monotonic() - began:.0f} s", file=sys.stderr)

    try:
        if any(len(key) < 16 for key in options.key):
            raise ValueError("a fingerprint has at least 16 digits")
        external = read_external(options.checkpoint) if options.checkpoint else None
        with options.export.open("rb", buffering=1024 * 1024) as file:
            report = verify_export(file, trusted=options.key, external=external, progress=progress)
    except (OSError, ValueError) as error:
        report = VerificationReport()
        report.add(UNREADABLE, f"Cannot be read: {error}.")
    if options.json:
        print(json.dumps(report.as_json(), indent=1))
    else:
        for line in lines_of(report):
            print(line)
    return EXIT_CODES[report.result]


if __name__ == "__main__":
    sys.exit(main())
