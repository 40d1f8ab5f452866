"""Conversations, and the tree of their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.buds import Bud, ProviderModel
from chat.models.folders import Folder
from chat.values import (
    McpConfigOverrides,
    MessageRole,
    MessageStatus,
    TitleSource,
    parse_value,
)
from workspaces.database.prepared_writes import WrittenOften
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User


def _client_digest() -> models.CharField[str, str]:
    return models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=_(
            "Of what came with the client id; anything else under the same one is refused."
        ),
    )


class ConversationQuerySet(WorkspaceQuerySet["Conversation"]):
    def visible_to(self, user: User) -> ConversationQuerySet:
        """A conversation is its owner's alone, and only while they are a member; not one that they have deleted."""
        return super().visible_to(user).filter(owner=user, deleted_at=None)

    def deleted_by(self, user: User) -> ConversationQuerySet:
        """Those that this person has deleted and can still bring back, the last one first."""
        return (
            super()
            .visible_to(user)
            .filter(owner=user, deleted_at__isnull=False)
            .order_by("-deleted_at", "-id")
        )


class Conversation(WrittenOften, WorkspaceModel):
    """A person's talk with a bud."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    bud = models.ForeignKey(Bud, on_delete=models.PROTECT, related_name="+")
    title = models.CharField(max_length=200, blank=True)
    title_source = models.CharField(
        max_length=10,
        blank=True,
        default=TitleSource.NONE.value,
        choices=[(s.value, s.value) for s in TitleSource],
    )
    client_id = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - absent ones are not equal
    client_digest = _client_digest()
    forked_from = models.UUIDField(null=True, editable=False)
    chat_import = models.ForeignKey(
        "chat.ChatImport",
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="conversations",
        help_text=_(
            "The import that it came with. None: it began here, or the import is forgotten."
        ),
    )
    leaf = models.ForeignKey(
        "chat.Message",
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        help_text=_("Where the path ends that is shown, and that the next message goes on from."),
    )
    comparison = models.UUIDField(
        null=True,
        editable=False,
        help_text=_("Whose answers stand side by side until the person chooses one."),
    )
    prompt_tokens = models.PositiveBigIntegerField(default=0, editable=False)
    cached_tokens = models.PositiveBigIntegerField(default=0, editable=False)
    completion_tokens = models.PositiveBigIntegerField(default=0, editable=False)
    cost = models.DecimalField(
        max_digits=14, decimal_places=6, null=True, editable=False, help_text=_("None: no prices.")
    )
    mcp_config_overrides = models.JSONField(default=dict, blank=True)
    has_files = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_("Buds that make no files may read these."),
    )
    chosen_model = models.ForeignKey(
        ProviderModel,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        help_text=_("Answers in place of the bud's own, as long as the bud lets people choose."),
    )
    folder = models.ForeignKey(
        Folder, on_delete=models.SET_NULL, null=True, editable=False, related_name="+"
    )
    is_pinned = models.BooleanField(default=False)
    is_archived = models.BooleanField(default=False)
    shared_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text=_("Others may read it as it was then; None: it is not shared."),
    )
    is_temporary = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_("In no list and no search, and erased some hours after its last activity."),
    )
    deleted_at = models.DateTimeField(
        null=True,
        editable=False,
        db_index=True,
        help_text=_("It can be brought back for some days, and is then erased."),
    )
    event_seq = models.PositiveBigIntegerField(
        default=0, editable=False, help_text=_("Number of the newest event; rows change with it.")
    )
    last_message_at = models.DateTimeField(auto_now_add=True, db_index=True)
    unseen_answer_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text=_("When the newest answer ended, until its owner has seen it on any device."),
    )

    objects = models.Manager.from_queryset(ConversationQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-last_message_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "client_id"], name="conversation_made_once")
        ]
        indexes = [
            models.Index(
                fields=["workspace", "owner", "-last_message_at", "-id"], name="conversation_list"
            ),
            models.Index(
                fields=["unseen_answer_at"],
                condition=models.Q(unseen_answer_at__isnull=False),
                name="conversation_unseen",
            ),
            models.Index(
                fields=["last_message_at"],
                condition=models.Q(is_temporary=True),
                name="conversation_temporary",
            ),
        ]

    def __str__(self) -> str:
        return self.title or "New conversation"

    @property
    def overrides(self) -> McpConfigOverrides:
        return parse_value(
            McpConfigOverrides, self.mcp_config_overrides, field="mcp_config_overrides"
        )


class Message(WrittenOften, WorkspaceModel):
    """What one side said. A tree: siblings are edits and regenerations.

    A migration that changes this table runs `sql/message_search` again: see there.
    """

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="messages"
    )
    turn = models.ForeignKey(
        "chat.Turn", on_delete=models.CASCADE, null=True, related_name="messages"
    )
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, related_name="children", db_index=False
    )
    role = models.CharField(max_length=10, choices=[(r.value, r.value) for r in MessageRole])
    step = models.PositiveSmallIntegerField(default=0, help_text=_("Which step of the turn."))
    text = models.TextField(blank=True)
    reasoning = models.TextField(blank=True, help_text=_("What the model thought before it spoke."))
    prompt_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=10, choices=[(s.value, s.value) for s in MessageStatus])
    order_key = models.PositiveBigIntegerField(help_text=_("Place within the conversation."))
    client_id = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - absent ones are not equal
    client_digest = _client_digest()
    json_meta = models.JSONField(
        default=dict, help_text=_("What the model asked for: tool_calls as it worded them.")
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
        indexes = [
            models.Index(fields=["conversation", "order_key"], name="message_order"),
            models.Index(fields=["parent", "order_key"], name="message_children"),
            models.Index(
                fields=["conversation", "order_key"],
                condition=models.Q(parent=None),
                name="message_firsts",
            ),
        ]

    def __str__(self) -> str:
        return self.text[:60]


class FoundByOwner(models.Model):
    """What belongs to a message, and is searched by whose it is.

    A trigger fills in the owner of the message's conversation (`sql/owner_of_calls_and_files`), whatever code stores the row.
    Others keep its words (`sql/beside_search`). A migration that changes one of these tables runs both again: see there.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,  # it goes with its message
        db_constraint=False,
        db_index=False,
        null=True,
        editable=False,
        related_name="+",
    )

    class Meta:
        abstract = True


class QueuedMessage(WorkspaceModel):
    """What a person said while a turn ran; it is sent when that has ended."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="queue")
    client_id = models.CharField(max_length=64)
    client_digest = _client_digest()
    text = models.TextField()
    attachments = models.JSONField(default=list, help_text=_("References, as they were sent."))
    mentioned_bud = models.ForeignKey(
        Bud,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text=_("Answers this once in place of the conversation's."),
    )
    compare = models.JSONField(
        null=True,
        help_text=_("The models that answer side by side: id of its row, provider, name."),
    )
    is_next = models.BooleanField(
        default=False, help_text=_("Sent even if the running turn is stopped: that was the wish.")
    )
    held_after = models.CharField(
        max_length=20,
        blank=True,
        default="",
        db_default="",
        db_column="held_by",
        help_text=_("How the turn ended after which it was not sent; empty: it waits its turn."),
    )
    held_after_turn = models.UUIDField(
        null=True, help_text=_("The turn after which it was not sent; a value, not a key.")
    )
    order_key = models.PositiveIntegerField()

    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    source = models.CharField(max_length=10)
    ip_address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    token_id = models.UUIDField(null=True)

    class Meta(WorkspaceModel.Meta):
        ordering = ["order_key", "id"]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "client_id"], name="queued_once")
        ]

    def __str__(self) -> str:
        return self.text[:60]
