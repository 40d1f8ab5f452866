"""A workspace's rules on tool calls."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_servers.client.values import Effect
from workspaces.scoping import WorkspaceManager, WorkspaceModel

EFFECT_CHOICES: Final = [
    (Effect.CONFIRM.value, _("Ask each time")),
    (Effect.DENY.value, _("Refuse")),
    (Effect.AUTO.value, _("Run by itself")),
]


class Approver(models.TextChoices):
    """Who may allow a call that a rule has ask first."""

    REQUESTER = "requester", _("The person who asked")
    SECOND_PERSON = "second_person", _("A second person: an admin or owner")


class CallRule(WorkspaceModel):
    """What a workspace decides about calls of certain tools, of certain people, with certain arguments."""

    name = models.CharField(_("name"), max_length=100)
    reason = models.CharField(
        _("reason"),
        max_length=500,
        blank=True,
        help_text=_("People read it on the card, and the model when a call is refused."),
    )
    is_enabled = models.BooleanField(_("on"), default=True)
    servers = models.JSONField(_("servers"), default=list)
    """Names of servers; `*` and `?` stand for any letters."""
    tools = models.JSONField(_("tools"), default=list)
    """Names of tools, in the same way; of tools that run actions by name, of the actions."""
    roles = models.JSONField(_("roles"), default=list, blank=True)
    """Of whom it holds for; empty: for everybody."""
    conditions = models.JSONField(_("conditions"), default=list, blank=True)
    """See rule_conditions.Condition."""
    effect = models.CharField(_("effect"), max_length=10, choices=EFFECT_CHOICES)
    approver = models.CharField(
        _("who may allow it"),
        max_length=20,
        choices=Approver.choices,
        default=Approver.REQUESTER,
    )

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["name", "id"]
        verbose_name = _("call rule")
        verbose_name_plural = _("call rules")
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="call_rule_name_once")
        ]

    def __str__(self) -> str:
        return self.name
