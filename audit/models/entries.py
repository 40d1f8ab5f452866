"""The log itself. Entries hold values, not foreign keys, so that they outlive what they speak of."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome, RefusedBy
from workspaces.actors import ActorKind, Source
from workspaces.database.prepared_writes import WrittenOften
from workspaces.scoping import WorkspaceManager

_FOUND_BY = (
    ("kind", "action"),
    ("server_name", "server_name"),
    ("tool_name", "tool_name"),
    ("person", "actor_id"),
    ("result", "outcome"),
    ("source", "source"),
)
_NAMED = (
    ("bud", "bud_name"),
    ("model", "model"),
    ("layer", "refused_by"),
    ("request", "request_id"),
    ("trace", "trace_id"),
)
_GIVEN = (
    ("conversation", "conversation_id"),
    ("turn", "turn_id"),
    ("address", "ip_address"),
    ("duration", "duration_ms"),
    ("sent", "arguments_size"),
    ("received", "result_size"),
)
"""What the log is searched and sorted by. Each index ends in the order of the pages, so that a page is read from it."""


def _index(name: str, *columns: str, where: models.Q | None = None) -> models.Index:
    return models.Index(
        fields=["workspace_id", *columns, "created_at", "id"],
        name=f"audit_at_{name}",
        condition=where,
    )


def action_choices() -> list[tuple[str, str]]:
    """A function, so that a new action is no change of the table."""
    return [(action.value, action.value) for action in Action]


class AuditEntry(WrittenOften):
    """One thing that happened. Triggers in the database refuse to change it.

    It can be deleted only behind a signed tombstone (retention). Its two previews can be emptied only behind one
    (erasure): they are no part of what is sealed, the keyed `body_commitment` to them is.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    action = models.CharField(max_length=40, choices=action_choices)

    actor_kind = models.CharField(max_length=10, choices=[(k.value, k.value) for k in ActorKind])
    actor_id = models.UUIDField(null=True)
    actor_label = models.CharField(max_length=254)
    actor_role = models.CharField(max_length=20, blank=True)
    on_behalf_of = models.CharField(
        max_length=254,
        blank=True,
        default="",
        db_default="",
        help_text=_("Whom a part of the system acted for."),
    )
    sign_in = models.CharField(
        max_length=20,
        blank=True,
        default="",
        db_default="",
        help_text=_("How the actor signed in."),
    )
    token_id = models.UUIDField(null=True)
    source = models.CharField(max_length=10, choices=[(s.value, s.value) for s in Source])
    ip_address = models.GenericIPAddressField(_("IP address"), null=True)
    request_id = models.CharField(max_length=64, blank=True)
    trace_id = models.CharField(max_length=64, blank=True)

    call_id = models.UUIDField(
        null=True, help_text=_("Ties what was requested to how it finished.")
    )
    bud_id = models.UUIDField(null=True)
    bud_name = models.CharField(max_length=200, blank=True)
    conversation_id = models.UUIDField(null=True)
    turn_id = models.UUIDField(null=True)
    model = models.CharField(max_length=200, blank=True)
    server_id = models.UUIDField(null=True)
    server_name = models.CharField(max_length=200, blank=True)
    transport = models.CharField(max_length=20, blank=True)
    protocol_revision = models.CharField(max_length=20, blank=True)
    credential_id = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text=_("Which stored credential was used."),
    )
    tool_id = models.UUIDField(null=True)
    tool_name = models.CharField(max_length=256, blank=True)
    definition_hash = models.CharField(max_length=64, blank=True)
    annotations = models.JSONField(null=True)

    arguments_preview = models.TextField(blank=True)
    arguments_size = models.PositiveBigIntegerField(null=True, help_text=_("Bytes."))
    arguments_commitment = models.CharField(max_length=64, blank=True)
    result_preview = models.TextField(blank=True)
    result_size = models.PositiveBigIntegerField(null=True, help_text=_("Bytes."))
    result_commitment = models.CharField(max_length=64, blank=True)
    body_commitment = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text=_("Keyed, over previews and stored body."),
    )
    redactions = models.JSONField(null=True, help_text=_("What was masked, and by which rule."))
    mark = models.CharField(  # noqa: DJ001 - a new column without null would rebuild the guarded table
        max_length=64,
        null=True,
        help_text=_("Keyed, over what is sealed: that Trellis wrote the entry."),
    )

    outcome = models.CharField(
        max_length=20, blank=True, choices=[(o.value, o.value) for o in Outcome]
    )
    refused_by = models.CharField(
        max_length=20, blank=True, choices=[(r.value, r.value) for r in RefusedBy]
    )
    rule = models.CharField(max_length=100, blank=True)
    duration_ms = models.PositiveIntegerField(null=True)
    queue_ms = models.PositiveIntegerField(null=True)
    approval = models.JSONField(null=True)
    details = models.JSONField(default=dict)

    objects = WorkspaceManager()
    unscoped = models.Manager()

    class Meta:
        base_manager_name = "unscoped"
        default_manager_name = "unscoped"
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["workspace_id", "-id"], name="audit_by_time"),
            models.Index(
                fields=["call_id", "workspace_id", "created_at", "id"], name="audit_of_call"
            ),
            _index("moment"),
            *(_index(*names) for names in _FOUND_BY),
            *(_index(name, column, where=~models.Q(**{column: ""})) for name, column in _NAMED),
            *(
                _index(name, column, where=models.Q(**{f"{column}__isnull": False}))
                for name, column in _GIVEN
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.tool_name or self.server_name}".strip()
