"""Every way to falsify an export is found: an export of a real log, changed in memory a thousand times and more."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from audit.models import PLATFORM_CHAIN, AuditEntry, AuditSeal, AuditTombstone
from audit.proof import trellis_verify
from audit.proof.trellis_verify import (
    EXIT_CODES,
    VerificationReport,
    canonical,
    entry_hash,
    fingerprint_of,
    main,
    read_external,
    verify_export,
)
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.sealer import seal_pending
from audit.sealing.tombstones import make_tombstone
from audit.verification.exporting import proof_pieces
from tests.audit.tampering import sealed_log, write_entries
from tests.factories import TwoTenants

Lines = list[dict[str, Any]]
EACH = 145
"""Times each of the seven kinds."""


class Logs:
    """Exports of one log at different times, its checkpoint files, and an export of another workspace."""

    def __init__(self, tenants: TwoTenants, file: Path) -> None:
        a = tenants.a
        self.chain = str(a.workspace.pk)
        self.old: list[Lines] = []
        self.files: list[dict[str, Any]] = []
        for _ in range(3):
            sealed_log(a, rounds=2, each=3)
            sealed_log(tenants.b, rounds=1, each=2)
            self.old.append(lines_of(a.workspace.pk))
            self.files.append(read_external(file))
        _remove(a.workspace.pk, 2, 4)
        write_entries(a, 3)
        seal_pending()
        make_checkpoint()
        write_entries(a, 2)
        seal_pending()
        self.new = lines_of(a.workspace.pk)
        self.platform = lines_of(None)
        self.other = lines_of(tenants.b.workspace.pk)
        self.files.append(read_external(file))


def _remove(chain_id: Any, first: int, last: int) -> None:
    make_tombstone(
        chain_id=chain_id,
        kind=AuditTombstone.Kind.ENTRIES,
        first_seq=first,
        last_seq=last,
        reason="kept for 1 day",
    )
    seals = AuditSeal.objects.filter(chain_id=chain_id, seq__range=(first, last))
    ids = list(seals.values_list("entry_id", flat=True))
    AuditEntry.objects.for_workspace(chain_id).filter(pk__in=ids).delete()
    seals.delete()


def lines_of(workspace_id: Any) -> Lines:
    return [json.loads(line) for line in b"".join(proof_pieces(workspace_id)).splitlines()]


@pytest.fixture
def logs(two_workspaces: TwoTenants, checkpoint_file: Path) -> Logs:
    return Logs(two_workspaces, checkpoint_file)


def again(value: Any) -> Any:
    """A copy, quicker than by `copy`."""
    return json.loads(json.dumps(value))


def check(lines: Lines, **options: Any) -> VerificationReport:
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return verify_export(io.BytesIO(text), **options)


def places(lines: Lines) -> list[int]:
    return [at for at, line in enumerate(lines) if line["record"] == "entry"]


def rehash(lines: Lines, begin: int, *, renumber: bool = False, most: int = 10**9) -> None:
    """Make the hashes fit again, as somebody does who knows the format but has no key."""
    before = [line for line in lines[:begin] if line["record"] == "entry"]
    seq, previous = (before[-1]["seq"], before[-1]["hash"]) if before else (0, "0" * 64)
    for line in lines[begin:]:
        if line["record"] == "entry" and most > 0:
            seq = seq + 1 if renumber else line["seq"]
            line["seq"] = seq
            line["hash"] = entry_hash(line["chain"], seq, previous, line["entry"])
            previous = line["hash"]
            most -= 1


def edit(lines: Lines, rng: random.Random) -> int:
    at = rng.choice(places(lines))
    entry = lines[at]["entry"]
    change = rng.randrange(4)
    if change == 0:
        entry["actor_label"] = "nobody"
    elif change == 1:
        entry["details"]["number"] = -1
    elif change == 2:
        del entry["outcome"]
    else:
        entry["created_at"] = "2020-01-01T00:00:00.000000Z"
    skill = rng.randrange(3)
    if skill:
        rehash(lines, at, most=1 if skill == 1 else 10**9)
    return 1


def delete_inside(lines: Lines, rng: random.Random) -> int:
    found = places(lines)
    is_renumbered = rng.randrange(2)
    # Behind the newest checkpoint, renumbering is cutting the tail.
    at = rng.choice(found[:-2] if is_renumbered else found[:-1])
    del lines[at]
    if is_renumbered:
        rehash(lines, at, renumber=True)
        return 1
    return 2


def cut_tail(lines: Lines, rng: random.Random) -> int:
    found = places(lines)
    first = rng.choice(found[1:])
    keep_end = rng.randrange(2)
    end = lines[-1]
    if rng.randrange(2):
        del lines[first:]  # with the checkpoints behind it
    else:
        lines[:] = [
            line
            for at, line in enumerate(lines)
            if line["record"] not in {"entry", "end"} or at < first
        ]
    if keep_end and lines[-1] is not end:
        lines.append(end)
    return 2


def reorder(lines: Lines, rng: random.Random) -> int:
    one, two = sorted(rng.sample(places(lines), 2))
    lines[one], lines[two] = lines[two], lines[one]
    if rng.randrange(2):
        lines[one]["seq"], lines[two]["seq"] = lines[two]["seq"], lines[one]["seq"]
    return 1


def insert(lines: Lines, rng: random.Random) -> int:
    at = rng.choice(places(lines))
    forged = again(lines[at])
    forged["entry"]["details"] = {"forged": True}
    lines.insert(at + 1, forged)
    if rng.randrange(2):
        rehash(lines, at + 1, renumber=True)
    return 1


def duplicate(lines: Lines, rng: random.Random) -> int:
    at = rng.choice(places(lines))
    lines.insert(rng.randrange(at + 1, len(lines)), again(lines[at]))
    return 1


KINDS: dict[str, Callable[[Lines, random.Random], int]] = {
    "edit": edit,
    "delete inside": delete_inside,
    "cut tail": cut_tail,
    "reorder": reorder,
    "insert": insert,
    "duplicate": duplicate,
}


def test_a_thousand_mutations_of_seven_kinds_are_found(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-103: edit, delete inside, cut tail, reorder, insert, duplicate, restored old copy; each with its exit code."""
    # Most statements are the same each time: each different one is checked once.
    monkeypatch.setattr(trellis_verify, "is_signed", lru_cache(None)(trellis_verify.is_signed))
    assert check(logs.new, external=logs.files[-1]).findings == []
    rng = random.Random(103)
    done = 0
    for name, mutate in KINDS.items():
        for _ in range(EACH):
            lines = again(logs.new)
            wanted = mutate(lines, rng)
            report = check(lines)
            assert EXIT_CODES[report.result] == wanted, (name, lines, report)
            done += 1
    for _ in range(EACH):
        at = rng.randrange(len(logs.old))
        file = rng.choice(logs.files[at + 1 :])
        assert check(logs.old[at]).result == "whole"
        report = check(logs.old[at], external=file)
        assert EXIT_CODES[report.result] == 2, report
        done += 1
    assert done >= 1_000


def test_the_first_bad_place_is_named(logs: Logs) -> None:
    """SEC-103: by chain and sequence number, and not everything behind it."""
    lines = again(logs.new)
    at = places(lines)[5]
    lines[at]["entry"]["actor_label"] = "nobody"
    report = check(lines)
    assert report.first_bad == {logs.chain: lines[at]["seq"]}
    assert report.findings_in_all == 1


def test_entries_of_another_workspace_do_not_fit_in(logs: Logs) -> None:
    """SEC-103: as they are, under this chain's name, and with hashes made anew."""
    foreign = next(line for line in logs.other if line["record"] == "entry")
    at = places(logs.new)[3]
    for skill in range(3):
        lines = again(logs.new)
        spliced = again(foreign)
        if skill:
            spliced["chain"] = logs.chain
            spliced["seq"] = lines[at]["seq"]
        lines[at] = spliced
        if skill == 2:
            rehash(lines, at)
        assert check(lines).result == "altered"


def _resign(line: dict[str, Any], private: Ed25519PrivateKey, **changes: Any) -> None:
    raw = private.public_key().public_bytes_raw()
    key = {"id": fingerprint_of(raw)[:16], "public": base64.b64encode(raw).decode()}
    text = canonical({**json.loads(line["statement"]), **changes, "key": key}).decode()
    line["statement"] = text
    line["signature"] = base64.b64encode(private.sign(text.encode())).decode()


def test_forged_and_deleted_checkpoints_are_found(logs: Logs) -> None:
    """SEC-103: one that was changed, one signed with another key, one left out, and the newest left out."""
    at = [n for n, line in enumerate(logs.new) if line["record"] == "checkpoint"]
    other = Ed25519PrivateKey.generate()
    lines = again(logs.new)
    lines[at[1]]["statement"] = lines[at[1]]["statement"].replace("interval", "end")
    assert check(lines).result == "altered"
    for which in (at[1], at[-1]):
        lines = again(logs.new)
        _resign(lines[which], other)
        assert check(lines).result == "altered"
        lines = again(logs.new)
        del lines[which]
        assert check(lines).result == "incomplete"
    lines = again(logs.new)
    del lines[at[1]]["heads"][logs.chain]
    assert check(lines).result == "altered"


def test_a_log_forged_from_beginning_to_end_is_not_signed_with_the_known_key(logs: Logs) -> None:
    """SEC-103: who has no key can write a whole log of his own; the fingerprint tells it apart."""
    fingerprint = check(logs.new).fingerprints[0]
    assert check(logs.new, trusted=[fingerprint]).result == "whole"
    assert check(logs.new, trusted=[fingerprint[:16]]).result == "whole"
    other = Ed25519PrivateKey.generate()
    lines = again(logs.platform)
    for line in lines:
        if "statement" in line:
            _resign(line, other)
    assert check(lines, trusted=[fingerprint]).result == "altered"
    assert check(lines, external=logs.files[0]).result == "altered"


def test_tombstones_must_be_signed_and_fit(logs: Logs) -> None:
    """SEC-103: a range that is gone needs a statement, and the statement must join what stands around it."""
    at = next(n for n, line in enumerate(logs.new) if line["record"] == "tombstone")
    lines = again(logs.new)
    del lines[at]
    report = check(lines)
    assert report.result == "incomplete"
    assert report.first_bad == {logs.chain: 2}
    for change in ({"last": 5}, {"before": "1" * 64}, {"hash": "1" * 64}):
        lines = again(logs.new)
        _resign(lines[at], Ed25519PrivateKey.generate(), **change)
        assert check(lines).result == "altered"
        lines = again(logs.new)
        statement = {**json.loads(lines[at]["statement"]), **change}
        lines[at]["statement"] = canonical(statement).decode()
        assert check(lines).result == "altered"


def test_the_platforms_export_holds_every_chain_and_a_workspaces_only_its_own(logs: Logs) -> None:
    """SEC-12: of other workspaces an export tells neither id nor number of entries."""
    chains = {line["chain"] for line in logs.platform if line["record"] == "entry"}
    other = next(line["chain"] for line in logs.other if line["record"] == "entry")
    assert {logs.chain, other} <= chains
    assert check(logs.platform, external=logs.files[-1]).result == "whole"
    assert other not in json.dumps(logs.new)
    assert str(PLATFORM_CHAIN) not in chains - {logs.chain, other} or len(chains) == 3


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]\n", b'{"a":1,"a":2}\n', b'{"record":"entry"}\n', b"\xff\n", b"null\n"]
)
def test_what_is_no_export_is_unreadable(text: bytes) -> None:
    """SEC-103: with its own exit code; never a traceback."""
    assert verify_export(io.BytesIO(text)).result == "unreadable"


def test_records_of_the_wrong_shape_are_never_a_traceback(logs: Logs) -> None:
    """Ours: each field of each line replaced by something else is found, and nothing raises."""
    wrong: tuple[Any, ...] = (None, [], {}, -1, "x")
    kinds = {line["record"]: at for at, line in enumerate(logs.new)}
    for at in kinds.values():
        line = logs.new[at]
        for name in line:
            for value in wrong:
                if line["record"] == "header" and name == "made_at":
                    continue  # says when, and proves nothing
                if name == "countersignature":
                    continue  # nobody reads it where keys do not change
                lines = again(logs.new)
                lines[at][name] = value
                if lines[at] != line:
                    assert check(lines).result != "whole", (line, name, value)


def test_the_program_says_it_in_words_and_exit_codes(
    logs: Logs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SEC-103: what an auditor runs on a machine of his own."""
    export, outside = tmp_path / "export.jsonl", tmp_path / "checkpoint.json"
    export.write_bytes(b"".join(canonical(line) + b"\n" for line in logs.new))
    outside.write_text(json.dumps(logs.files[-1]))
    fingerprint = check(logs.new).fingerprints[0]
    command = [str(export), "--checkpoint", str(outside), "--key", fingerprint]
    assert main(command) == 0
    assert main([*command, "--json"]) == 0
    assert (
        json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))["result"] == "whole"
    )
    export.write_bytes(b"".join(canonical(line) + b"\n" for line in logs.old[0]))
    assert main(command) == 2
    assert "INCOMPLETE" in capsys.readouterr().out
    assert main([str(export), "--key", "0" * 16]) == 1
    assert main([str(tmp_path / "none")]) == 3
    assert main([str(export), "--key", "short"]) == 3
