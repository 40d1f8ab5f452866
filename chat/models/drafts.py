"""What people were writing, found again on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.conversations import Conversation
from workspaces.scoping import PersonalQuerySet, WorkspaceModel

if TYPE_CHECKING:
    from workspaces.models import User


class DraftQuerySet(PersonalQuerySet["Draft"]):
    def visible_to(self, user: User) -> DraftQuerySet:
        """A draft is its writer's alone; not one of a conversation that they have deleted."""
        return super().visible_to(user).filter(conversation__deleted_at=None)


class Draft(WorkspaceModel):
    """What stands in the message field of one conversation, or of the start page."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    conversation = models.ForeignKey(
        Conversation,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        help_text=_("None: the start page."),
    )
    text = models.TextField(
        blank=True, help_text=_("Empty: it was sent or removed, and older texts stay so.")
    )
    attachments = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text=_("Files and resources that were chosen, as the writer's page shows them."),
    )
    written_at = models.DateTimeField(
        help_text=_("The last writer wins, where a device does not say which version it has seen.")
    )
    version = models.PositiveIntegerField(
        default=1,
        db_default=1,
        help_text=_("Counts its changes, so that no device replaces what it has not seen."),
    )

    objects = models.Manager.from_queryset(DraftQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-written_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "conversation"], name="draft_once"),
            models.UniqueConstraint(
                fields=["workspace", "owner"],
                condition=models.Q(conversation=None),
                name="draft_of_start_page_once",
            ),
        ]

    def __str__(self) -> str:
        return self.text[:60]
