"""Conversations, and the tree of their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from chat.models.buds import Bud
from chat.values import McpConfigOverrides, MessageRole, MessageStatus, parse_value
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User


class ConversationQuerySet(WorkspaceQuerySet["Conversation"]):
    def visible_to(self, user: User) -> ConversationQuerySet:
        """A conversation is its owner's alone, and only while they are a member."""
        return super().visible_to(user).filter(owner=user)


class Conversation(WorkspaceModel):
    """A person's talk with a bud."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    bud = models.ForeignKey(Bud, on_delete=models.PROTECT, related_name="+")
    title = models.CharField(max_length=200, blank=True)
    mcp_config_overrides = models.JSONField(default=dict, blank=True)
    is_pinned = models.BooleanField(default=False)
    is_archived = models.BooleanField(default=False)
    event_seq = models.PositiveBigIntegerField(
        default=0, editable=False, help_text="Number of the newest event; rows change with it."
    )
    last_message_at = models.DateTimeField(auto_now_add=True, db_index=True)

    objects = models.Manager.from_queryset(ConversationQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-last_message_at", "-id"]
        indexes = [
            models.Index(
                fields=["workspace", "owner", "-last_message_at", "-id"], name="conversation_list"
            )
        ]

    def __str__(self) -> str:
        return self.title or "New conversation"

    @property
    def overrides(self) -> McpConfigOverrides:
        return parse_value(
            McpConfigOverrides, self.mcp_config_overrides, field="mcp_config_overrides"
        )


class Message(WorkspaceModel):
    """What one side said. A tree: siblings are edits and regenerations."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="messages"
    )
    turn = models.ForeignKey(
        "chat.Turn", on_delete=models.CASCADE, null=True, related_name="messages"
    )
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="children")
    role = models.CharField(max_length=10, choices=[(r.value, r.value) for r in MessageRole])
    step = models.PositiveSmallIntegerField(default=0, help_text="Which step of the turn.")
    text = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=[(s.value, s.value) for s in MessageStatus])
    order_key = models.PositiveBigIntegerField(help_text="Place within the conversation.")
    client_id = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - absent ones are not equal
    json_meta = models.JSONField(
        default=dict, help_text="What the model asked for: tool_calls as it worded them."
    )

    class Meta(WorkspaceModel.Meta):
        ordering = ["order_key", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "client_id"], name="message_stored_once"
            ),
            models.UniqueConstraint(
                fields=["turn", "step"],
                condition=models.Q(role=MessageRole.ASSISTANT.value),
                name="message_one_per_step",
            ),
        ]
        indexes = [models.Index(fields=["conversation", "order_key"], name="message_order")]

    def __str__(self) -> str:
        return self.text[:60]
