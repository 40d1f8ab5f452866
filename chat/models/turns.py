"""Turns and their tool calls: the ledger that outlives every process."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db import models
from django.db.models.functions import Upper
from django.utils.translation import gettext_lazy as _

from chat.models.buds import Bud, ProviderModel
from chat.models.conversations import Conversation, FoundByOwner, Message
from chat.models.visibility import OfConversationQuerySet
from chat.values import Decision, Rating, ToolCallStatus, TurnStatus, Wish
from workspaces.actors import Source
from workspaces.database.prepared_writes import WrittenOften
from workspaces.scoping import WorkspaceModel
from workspaces.secrets import EncryptedTextField

ACTIVE = [
    TurnStatus.QUEUED.value,
    TurnStatus.RUNNING.value,
    TurnStatus.WAITING_FOR_APPROVAL.value,
    TurnStatus.WAITING_FOR_INPUT.value,
]
"""The most urgent one comes last, also by the alphabet."""


def most_urgent(statuses: Iterable[str]) -> str | None:
    """What a conversation shows of its turns' states: one that waits for a person before all others; None: it is idle."""
    return max((one for one in statuses if one in ACTIVE), key=ACTIVE.index, default=None)


class TurnQuerySet(OfConversationQuerySet["Turn"]):
    def answered_by(self, bud: Bud) -> TurnQuerySet:
        """Those that a bud answered: in its conversations, unless another was named, and where it was named."""
        own = models.Q(conversation__bud=bud, mentioned_bud=None)
        return self.filter(own | models.Q(mentioned_bud=bud))


class Turn(WrittenOften, WorkspaceModel):
    """One user message and all that answers it."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="turns")
    user_message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    source = models.CharField(max_length=10, choices=[(s.value, s.value) for s in Source])
    ip_address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    token_id = models.UUIDField(null=True)
    client_id = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - absent ones are not equal

    status = models.CharField(
        max_length=20,
        choices=[(s.value, s.value) for s in TurnStatus],
        default=TurnStatus.QUEUED.value,
    )
    error_code = models.CharField(max_length=50, blank=True)
    error_message = models.TextField(blank=True)
    can_retry = models.BooleanField(default=False)
    notice = models.TextField(blank=True)
    has_read_untrusted = models.BooleanField(
        default=False,
        help_text=_("What the model reads in this turn holds something from outside."),
    )
    untrusted_source = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text=_("The newest of it, as the card names it."),
    )
    trims_history = models.BooleanField(
        default=False,
        help_text=_("The model could not read it all: send it less of what is older."),
    )
    stop_requested_at = models.DateTimeField(null=True)

    lease_owner = models.CharField(max_length=64, blank=True)
    lease_token = models.PositiveIntegerField(default=0, help_text=_("Grows with each holder."))
    lease_until = models.DateTimeField(null=True)
    attempt = models.PositiveSmallIntegerField(default=0)

    model = models.CharField(max_length=200, blank=True)
    work_ms = models.PositiveBigIntegerField(default=0, help_text=_("Time spent, waits left out."))
    prompt_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    finished_at = models.DateTimeField(null=True)

    # What the request that is under way is believed to use; without one, there is no number of tokens.
    held_tokens = models.BigIntegerField(null=True)
    held_cost = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    held_shared_cost = models.DecimalField(
        max_digits=14,
        decimal_places=6,
        null=True,
        help_text=_("By the list prices of a shared provider."),
    )
    held_shared = models.UUIDField(null=True, help_text=_("The shared provider that is asked."))

    revises = models.UUIDField(null=True, help_text=_("The turn whose answer is written again."))
    wish = models.CharField(
        max_length=10,
        blank=True,
        default="",
        db_default="",
        choices=[(w.value, w.value) for w in Wish],
        help_text=_("How it shall differ from that one."),
    )
    chosen_model = models.ForeignKey(
        ProviderModel,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text=_("Answers this once in place of the conversation's."),
    )
    mentioned_bud = models.ForeignKey(
        Bud,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text=_("Answers this once in place of the conversation's."),
    )
    comparison = models.UUIDField(
        null=True,
        help_text=_("Shared by the answers to one question that stand side by side."),
    )
    place = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text=_("Among answers that may be written at the same time."),
    )
    rating = models.CharField(
        _("rating"),
        max_length=4,
        blank=True,
        default="",
        db_default="",
        choices=[("", _("None")), (Rating.GOOD.value, _("Good")), (Rating.BAD.value, _("Bad"))],
    )
    rating_reason = models.TextField(_("reason"), blank=True, default="", db_default="")
    rated_at = models.DateTimeField(_("rated"), null=True)

    objects = models.Manager.from_queryset(TurnQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "place"],
                condition=models.Q(status__in=ACTIVE),
                name="turn_one_active",
            ),
            models.UniqueConstraint(fields=["conversation", "client_id"], name="turn_begun_once"),
        ]
        indexes = [
            models.Index(fields=["status", "lease_until"], name="turn_orphans"),
            models.Index(
                fields=["workspace", "-rated_at"],
                condition=~models.Q(rating=""),
                name="turn_rated",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.pk} ({self.status})"

    @property
    def answering_bud(self) -> Bud:
        """The bud that the question named, or the conversation's."""
        return self.mentioned_bud or self.conversation.bud


class ToolCallQuerySet(OfConversationQuerySet["ToolCall"]):
    conversation = "turn__conversation"


class ToolCall(WrittenOften, FoundByOwner, WorkspaceModel):
    """One call that the model asked for, from the asking to the result."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="tool_calls")
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="tool_calls")
    position = models.PositiveSmallIntegerField(help_text=_("Order in which the model asked."))
    provider_call_id = models.CharField(max_length=200)
    function_name = models.CharField(max_length=200, help_text=_("As the model wrote it."))

    # Values, so that a card still reads right when server or tool are gone.
    server_id = models.UUIDField(null=True)
    server_name = models.CharField(max_length=200, blank=True)
    tool_id = models.UUIDField(null=True)
    tool_name = models.CharField(max_length=256, blank=True)
    tool_title = models.CharField(max_length=256, blank=True)
    builtin = models.CharField(
        max_length=40,
        blank=True,
        help_text=_("Name of the built-in tool that was asked for, if one."),
    )
    artifact = models.JSONField(
        null=True, help_text=_("The artifact's version that it sends, or that it made.")
    )
    definition_hash = models.CharField(max_length=64, blank=True)
    annotations = models.JSONField(default=dict)
    input_schema = models.JSONField(null=True)

    arguments = models.JSONField(default=dict)
    proposed_arguments = models.JSONField(default=dict)
    status = models.CharField(
        max_length=20,
        choices=[(s.value, s.value) for s in ToolCallStatus],
        default=ToolCallStatus.QUEUED.value,
    )

    approval_rule = models.CharField(max_length=100, blank=True)
    approval_reason = models.TextField(blank=True)
    approval_rule_name = models.CharField(max_length=100, blank=True, default="", db_default="")
    needs_second_person = models.BooleanField(
        default=False,
        db_default=False,
        help_text=_("Only an admin or owner who did not ask may allow it."),
    )
    approval_expires_at = models.DateTimeField(null=True)
    approval_id = models.UUIDField(null=True, help_text=_("The single-use approval at the gate."))
    decision = models.CharField(
        max_length=10, blank=True, choices=[(d.value, d.value) for d in Decision]
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    decision_note = models.TextField(blank=True)

    repeats = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    resolution_note = models.TextField(blank=True)
    resolution_due_at = models.DateTimeField(
        null=True, help_text=_("Until when a person may say what becomes of it.")
    )
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    checkpoint = EncryptedTextField()
    """Where a call that a server interrupted goes on: JSON of the gate's, from whatever process."""
    was_cached = models.BooleanField(
        default=False, help_text=_("The result is that of an earlier, identical call.")
    )
    result = models.JSONField(null=True, help_text=_("Content parts, and whether they were cut."))
    model_text = models.TextField(blank=True, help_text=_("What the model reads as the result."))
    error = models.TextField(blank=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)

    objects = models.Manager.from_queryset(ToolCallQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["message_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["message", "position"], name="tool_call_place_once")
        ]
        indexes = [
            models.Index(
                "owner", "workspace", Upper("tool_name"), "message", name="tool_call_of_tool"
            ),
            models.Index(
                "owner", "workspace", Upper("server_name"), "message", name="tool_call_of_server"
            ),
            models.Index(
                "owner", "workspace", Upper("builtin"), "message", name="tool_call_of_builtin"
            ),
            # In words that both engines find again in a query for one of them, or for either.
            models.Index(
                fields=["workspace"],
                condition=models.Q(status=ToolCallStatus.WAITING_FOR_APPROVAL.value)
                | models.Q(status=ToolCallStatus.OUTCOME_UNKNOWN.value),
                name="tool_call_waiting",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server_name}.{self.tool_name} ({self.status})"
