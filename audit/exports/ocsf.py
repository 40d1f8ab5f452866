"""Entries as OCSF 1.3.0, class API Activity (6003). The mapping is in docs/audit.md. Source: schema.ocsf.io/1.3.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from audit.actions import FAILURES, Action, sentence_of
from audit.exports.columns import as_json
from audit.storable import mapping_of

if TYPE_CHECKING:
    from audit.models import AuditEntry

VERSION: Final = "1.3.0"
CLASS, CATEGORY = 6003, 6
_READ, _OTHER = 2, 99
_SUCCESS, _FAILURE, _OTHER_STATUS = 1, 2, 99
_MAPPED: Final = frozenset(
    {
        *("id", "created_at", "action", "actor_id", "actor_label", "ip_address", "request_id"),
        *("call_id", "trace_id", "server_name", "tool_name", "outcome", "duration_ms"),
    }
)
_READS: Final = ("resource_read.", "prompt_get.", "body.opened", "export.")


def event_of(entry: AuditEntry) -> dict[str, Any]:
    """Give an entry as an event; what the class has no place for is in `unmapped`."""
    activity = _READ if _is_read(entry) else _OTHER
    status, detail = _status(entry)
    user = {
        "name": entry.actor_label,
        "type_id": 1 if entry.actor_kind == "user" else 3 if entry.actor_kind == "system" else 0,
    }
    if entry.actor_id:
        user |= {"uid": str(entry.actor_id), "email_addr": entry.actor_label}
    event: dict[str, Any] = {
        "activity_id": activity,
        "activity_name": "Read" if activity == _READ else entry.action,
        "category_uid": CATEGORY,
        "category_name": "Application Activity",
        "class_uid": CLASS,
        "class_name": "API Activity",
        "type_uid": CLASS * 100 + activity,
        "time": int(entry.created_at.timestamp() * 1000),
        "severity_id": severity_of(entry),
        "status_id": status,
        "status": {_SUCCESS: "Success", _FAILURE: "Failure"}.get(status, "Other"),
        "message": sentence_of(entry.action) or entry.action,
        "metadata": {
            "version": VERSION,
            "product": {"name": "Trellis", "vendor_name": "Trellis"},
            "log_name": "audit",
            "uid": str(entry.pk),
        },
        "actor": {"user": user},
        "api": {
            "operation": entry.tool_name or entry.action,
            "service": {"name": entry.server_name or "trellis"},
            "request": {"uid": str(entry.call_id or entry.request_id or entry.pk)},
        },
        "src_endpoint": {"ip": entry.ip_address} if entry.ip_address else {"name": entry.source},
        "unmapped": {
            name: value
            for name, value in as_json(entry).items()
            if name not in _MAPPED and value not in (None, "", {}, [])
        },
    }
    if detail:
        event["status_detail"] = detail
    if entry.call_id:
        event["metadata"]["correlation_uid"] = str(entry.call_id)
    if entry.trace_id:
        event["unmapped"]["trace_id"] = entry.trace_id
    if entry.duration_ms is not None:
        event["duration"] = entry.duration_ms
    return event


def severity_of(entry: AuditEntry) -> int:
    """Give 1 informational, 2 low, 3 medium, 5 critical."""
    if entry.action in {Action.LOG_LOSS, Action.LOG_KEY_LOST, Action.RESTORE_FOUND}:
        return 5
    if entry.refused_by or entry.action == Action.AUTH_FAILED:
        return 3
    if entry.outcome in FAILURES or entry.action == Action.SERVER_ERROR:
        return 2
    return 1


def _is_read(entry: AuditEntry) -> bool:
    if entry.action.startswith(_READS):
        return True
    return bool(mapping_of(entry.annotations).get("readOnlyHint"))


def _status(entry: AuditEntry) -> tuple[int, str]:
    if entry.refused_by:
        return _FAILURE, f"refused by {entry.refused_by}"
    if entry.outcome == "ok":
        return _SUCCESS, ""
    if entry.outcome:
        return _FAILURE if entry.outcome in FAILURES else _OTHER_STATUS, entry.outcome
    if entry.action in {Action.AUTH_FAILED, Action.SERVER_ERROR, Action.LOG_LOSS}:
        return _FAILURE, ""
    if entry.action.endswith(".requested"):
        return _OTHER_STATUS, "not ended yet"
    return _SUCCESS, ""
