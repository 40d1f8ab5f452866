"""Entries at a place of their chain, without the sealer: for tests of what reads by place."""

from __future__ import annotations

from uuid import UUID

from audit.models import AuditEntry, AuditHead, AuditSeal, PendingSeal


def seal_all(workspace_id: UUID, most: int | None = None) -> int:
    """Give the workspace's waiting entries their places; gives the newest one."""
    waiting = list(PendingSeal.objects.order_by("id")[:most])
    mine = set(
        AuditEntry.objects.for_workspace(workspace_id)
        .filter(pk__in=[row.entry_id for row in waiting])
        .values_list("pk", flat=True)
    )
    head, _ = AuditHead.objects.get_or_create(chain_id=workspace_id, defaults={"seq": 0})
    for row in waiting:
        if row.entry_id in mine:
            head.seq += 1
            AuditSeal.objects.create(
                entry_id=row.entry_id, chain_id=workspace_id, seq=head.seq, hash="0" * 64
            )
            row.delete()
    head.save()
    return head.seq
