"""What a process has read for a turn that it holds, and carries on instead of reading it again.

Nobody else writes a turn's messages and calls while it is held, so what was said before is read once and appended to.
Rights, servers and tools are read anew for each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from chat.engine.answers import AnsweredStep
from chat.models import Attachment, Bud, Message, ToolCall, Turn
from chat.providers.known_models import ModelFacts
from chat.providers.standing_in import StandIn
from chat.summaries import Summary
from workspaces.actors import Actor

Identity = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class TurnContext:
    """For whom a turn works, and with which bud."""

    turn: Turn
    bud: Bud
    actor: Actor
    spending_zone: str | None = None
    """In which months begin for the workspace's spending limits; None: it has set none."""


@dataclass(frozen=True, slots=True)
class EarlierCalls:
    """What the model has asked for before in this turn."""

    counts: Counter[Identity]
    """In how many steps."""
    has_broken: bool = False
    """It was told once that its arguments cannot be read."""


@dataclass(frozen=True, slots=True)
class UnreadPath:
    """What the unread beginning of a path holds."""

    questions: int
    factor: float
    """Real tokens for each estimated one, as its newest counted answer shows."""
    untrusted_source: str
    """Its newest words from outside, as a clause; empty: there are none."""
    is_final: bool
    """Whether that stays so: no server's own word of today was taken for it."""


@dataclass(frozen=True, slots=True)
class RecentPath:
    """The newest part of a turn's path, as far as its model reads it."""

    path: Sequence[Message]
    """In order; ends with what the turn has said so far."""
    beside: Sequence[Message]
    """Others of the turn, and of the one that it revises."""
    calls: Sequence[ToolCall]
    attachments: Sequence[Attachment]
    earlier: EarlierCalls
    """Of the turn that reads them."""
    older_id: UUID | None = None
    """The message above the part, for which there is no room; None: nothing is older."""
    before: UnreadPath | None = None
    """What that and all above it hold."""
    summary: Summary | None = None
    """Which stands for the message above the part and all above that."""
    may_summarise: bool = True
    """False: a person does not want the newest summary used."""

    @property
    def is_all(self) -> bool:
        """Whether the conversation holds nothing else, also on no other path."""
        return self.older_id is None and (
            not self.path or self.path[-1].order_key == len(self.path)
        )


@dataclass(frozen=True, slots=True)
class UnstoredAnswer:
    """What the model said in a step that asks for one server's tool: stored by the commit that lets that call through."""

    message: Message
    """As it was opened."""
    answer: AnsweredStep
    call: ToolCall
    """As it is stored where the call is not let through."""
    context: TurnContext
    """For whom it is made."""


@dataclass(slots=True)
class TurnCache:
    """What is known beside the rows, by whoever holds the lease. Everything may be missing."""

    begun: TurnContext | None = None
    """As the transaction read it that stored the message; for the first step, which follows at once."""
    has_attachments: bool = True
    """False: nothing is attached to any message of the conversation."""
    facts: ModelFacts | None = None
    """Of the model, until something is learned of it."""
    stand_in: StandIn | None = None
    """Who answers in this turn in place of its provider, which has failed."""
    past: RecentPath | None = None
    """As the step under way was given it."""
    unstored: UnstoredAnswer | None = None
    answer: Message | None = None
    """What the model said in that step, once that is stored with the calls that it asks for."""
    ended: dict[UUID, ToolCall] = field(default_factory=dict)
    """Those of these calls that have ended, and how."""

    def take_context(self) -> TurnContext | None:
        """What was read when the message was stored; given once."""
        context, self.begun = self.begun, None
        return context
