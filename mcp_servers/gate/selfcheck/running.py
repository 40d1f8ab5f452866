"""Making the calls of the self-check one by one, and comparing the log with what really happened."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from audit.models import AuditEntry, AuditSeal
from audit.proof.marks import refuse_other_key
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.reading import chain_of
from audit.sealing.sealer import seal_pending
from audit.verification.online import verify
from mcp_servers.gate.selfcheck.cases import Case, cases
from mcp_servers.gate.selfcheck.ground import Ground, scratch_ground
from workspaces.actors import Actor, Source
from workspaces.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

_SEAL_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.1


@dataclass(slots=True, kw_only=True)
class Row:
    """One call: what was meant to become of it, and what is wrong with its entries."""

    case: str
    source: str
    expected: str
    entries: list[AuditEntry] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the self-check found."""

    workspace_id: UUID
    rows: Sequence[Row]
    seen_by_server: int
    finished: int
    refused: int
    verification: str
    faults: Sequence[str]
    """Of the whole; those of single calls are in their rows."""

    @property
    def is_good(self) -> bool:
        """Whether everything is as it should be."""
        return not self.faults and not any(row.faults for row in self.rows)


def check_log() -> Report:
    """Make allowed and refused calls through each door in a scratch workspace, and account for each in the log.

    Raises:
        SelfCheckImpossible: the counting server could not be started.
        AuditUnavailable: the log takes no entries.
        OtherLogKey: the log has another TRELLIS_AUDIT_KEY.
    """
    refuse_other_key()
    with scratch_ground() as ground:
        workspace_id = ground.workspace.pk  # which the row itself forgets when it is deleted
        ran = [(_run(ground, case), case) for case in cases(ground)]
        seen = ground.seen()
    rows = [row for row, _ in ran]
    _seal(workspace_id)
    seqs = _seqs(workspace_id)
    for row, case in ran:
        _check_row(row, case, ground, seqs)
    faults = [*_distinct(rows), *_accounted(ran, seen)]
    make_checkpoint()
    actor = Actor.system(label="audit_selfcheck", source=Source.COMMAND, workspace_id=workspace_id)
    verified = verify(workspace_id, actor=actor)
    faults += [f"The chain: {finding.text}" for finding in verified.findings]
    if verified.result != "whole" and not verified.findings:
        faults.append(f"The chain is {verified.result}.")
    return Report(
        workspace_id=workspace_id,
        rows=rows,
        seen_by_server=len(seen),
        finished=sum(case.refused_by is None for _, case in ran),
        refused=sum(case.refused_by is not None for _, case in ran),
        verification=verified.result,
        faults=faults,
    )


def _calls(workspace_id: UUID) -> list[AuditEntry]:
    rows = AuditEntry.objects.for_workspace(workspace_id).exclude(call_id=None)
    steps = rows.filter(action__regex=r"^(tool_call|resource_read)\.")
    return list(steps.order_by("created_at", "pk"))


def _run(ground: Ground, case: Case) -> Row:
    expected = f"refused by {case.refused_by.value}" if case.refused_by else "finished"
    row = Row(case=case.name, source=case.source.value, expected=expected)
    before = {entry.pk for entry in _calls(ground.workspace.pk)}
    try:
        case.run()
    except DomainError as error:
        if case.refused_by is None:
            row.faults.append(f"It was to be let through: {error.message}")
    else:
        if case.refused_by is not None:
            row.faults.append("It was to be refused.")
    row.entries = [entry for entry in _calls(ground.workspace.pk) if entry.pk not in before]
    return row


def _check_row(row: Row, case: Case, ground: Ground, seqs: dict[UUID, int]) -> None:
    row.seqs = [seqs[entry.pk] for entry in row.entries if entry.pk in seqs]
    ends = ["refused"] if case.refused_by else ["requested", "finished"]
    wanted = [f"{case.kind}.{end}" for end in ends]
    in_order = sorted(row.entries, key=lambda entry: seqs.get(entry.pk, 0))
    if [entry.action for entry in in_order] != wanted:
        found = ", ".join(entry.action for entry in in_order) or "nothing"
        row.faults.append(f"The log has {found}, in the order of sealing; not {', '.join(wanted)}.")
        return
    if len(row.seqs) != len(row.entries):
        row.faults.append("Not every entry is sealed.")
    last = in_order[-1]
    logged = (last.refused_by, last.rule if case.refused_by else "", last.outcome)
    meant = (
        (case.refused_by.value, case.rule, "") if case.refused_by is not None else ("", "", "ok")
    )
    if logged != meant:
        row.faults.append(f"The log says {logged}, not {meant}.")
    person = ground.stranger if case.is_stranger else ground.person
    for entry in row.entries:
        if (entry.source, entry.actor_label) != (case.source.value, person.email):
            row.faults.append(f"{entry.action} names another door or person.")


def _seal(workspace_id: UUID) -> None:
    """Until each call's entries are sealed, by this process or by another."""
    deadline = time.monotonic() + _SEAL_SECONDS
    while time.monotonic() < deadline:
        seal_pending()
        if {entry.pk for entry in _calls(workspace_id)} <= set(_seqs(workspace_id)):
            return
        time.sleep(_PAUSE_SECONDS)


def _seqs(workspace_id: UUID) -> dict[UUID, int]:
    seals = AuditSeal.objects.filter(chain_id=chain_of(workspace_id))
    return dict(seals.values_list("entry_id", "seq"))


def _distinct(rows: Sequence[Row]) -> list[str]:
    """No call shares its id, and none looks like another in all that tells what happened."""
    faults = []
    ids = Counter(entry.call_id for row in rows for entry in row.entries[:1])
    if ids and max(ids.values()) > 1:
        faults.append("Two calls share one id.")
    seqs = [seq for row in rows for seq in row.seqs]
    if len(seqs) != len(set(seqs)):
        faults.append("Two entries share one place in the chain.")
    return faults


def _accounted(ran: Sequence[tuple[Row, Case]], seen: Sequence[str]) -> list[str]:
    """What the server saw is what the log says was finished, and nothing else."""
    finished = [
        case
        for row, case in ran
        if case.reaches_server and any(entry.action.endswith(".finished") for entry in row.entries)
    ]
    faults = []
    if len(seen) != len(finished):
        faults.append(f"The server saw {len(seen)} calls, the log has {len(finished)} that ended.")
    refused = {case.name for _, case in ran if case.refused_by is not None}
    if reached := sorted(refused & set(seen)):
        faults.append(f"Refused, and sent all the same: {', '.join(reached)}.")
    return faults
