"""What people are told of while they are away: things that wait for them, and finished answers that they have not seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.models import DataCopy, Message, ToolCall, Turn
from chat.models.turns import ACTIVE
from chat.services.pending_decisions import PendingDecision, waiting_for
from chat.values import CopyStatus, MessageRole, ToolCallStatus, TurnStatus
from mcp_servers.models import InputRequest, InputStatus
from workspaces.database import database_now
from workspaces.models import AccessRequest, Membership, RequestStatus, User, Workspace
from workspaces.people.access_requests import DECIDERS

MOMENT: Final = timedelta(seconds=10)
"""Whoever asks waits that long for an answer; a longer one is worth a message."""
LONGEST: Final = timedelta(days=3)
"""The longest delay that people choose, with quiet hours and a weekend's outage; older news is none."""
LATEST: Final = timedelta(days=7)
"""What members ask for never runs out. After this time whoever wants a mail has had one, also after quiet hours."""
MOST_AT_ONCE: Final = 5_000
MOST_LISTED: Final = 100

Person = tuple[UUID, UUID]
"""A workspace, and one of its members."""
Times = dict[Person, list[datetime]]
Wanted = Callable[[str, str], Exists]
"""Whether the person that one column names is to be told of what another one dates."""


class NewsKind(StrEnum):
    """What a person is told of."""

    ANSWER = "answer"
    FAILURE = "failure"
    """An answer that could not be finished."""
    APPROVAL = "approval"
    UNKNOWN = "unknown"
    """A call of which nobody knows how it ended."""
    QUESTION = "question"
    REQUEST = "request"
    """What a member asks for."""
    COPY = "copy"
    """A copy of the person's data that is ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewsItem:
    """One thing that a person is told of, and where it stands."""

    kind: NewsKind
    conversation_id: UUID | None = None
    """None: it belongs to none."""
    title: str = ""
    """Of its conversation."""
    message_id: UUID | None = None

    def path(self, slug: str) -> str:
        """The address of its message, or of the page where it is decided; the chat goes to the message that an address names."""
        if self.kind is NewsKind.COPY:
            return reverse("chat:data_copies", args=[slug])
        if self.kind is NewsKind.APPROVAL and self.conversation_id is None:
            return reverse("chat:home", args=[slug])
        if self.conversation_id is None:
            return reverse("workspaces:requests", args=[slug])
        path = reverse("chat:conversation", args=[slug, self.conversation_id])
        return f"{path}#message-{self.message_id}" if self.message_id else path


def waiting_since(after: datetime | None, until: datetime, wanted: Wanted | None = None) -> Times:
    """Since when things wait, oldest first, for each person.

    Args:
        after: only what began to wait after that.
        until: only what waits at least since then.
        wanted: only for those who are to be told; of what members ask for, for all who decide.
    """
    now = database_now()
    in_chats = ToolCall.objects.across_workspaces().filter(
        turn__conversation__owner_id=F("turn__asked_by_id"),
        turn__conversation__deleted_at=None,
        turn__conversation__bud__is_draft=False,
    )
    calls = in_chats.filter(
        Q(approval_expires_at=None) | Q(approval_expires_at__gt=now),
        status=ToolCallStatus.WAITING_FOR_APPROVAL.value,
        needs_second_person=False,
        created_at__lte=until,
    )
    # Such a call has ended: since then it waits for a word.
    unknown = in_chats.filter(
        status=ToolCallStatus.OUTCOME_UNKNOWN.value,
        turn__status__in=ACTIVE,
        resolution_due_at__gt=now,
        finished_at__lte=until,
    )
    asked = InputRequest.objects.across_workspaces().filter(
        status=InputStatus.PENDING.value,
        created_at__lte=until,
        expires_at__gt=now,
        conversation_id__isnull=False,
    )
    if after is not None:
        calls, asked = calls.filter(created_at__gt=after), asked.filter(created_at__gt=after)
        unknown = unknown.filter(finished_at__gt=after)
    if wanted is not None:
        calls = calls.filter(wanted("turn__asked_by_id", "created_at"))
        unknown = unknown.filter(wanted("turn__asked_by_id", "finished_at"))
        asked = asked.filter(wanted("asked_of_id", "created_at"))
    of_calls = calls.order_by("created_at").values_list(
        "workspace_id", "turn__asked_by_id", "created_at"
    )
    of_unknown = unknown.order_by("finished_at").values_list(
        "workspace_id", "turn__asked_by_id", "finished_at"
    )
    of_questions = asked.order_by("created_at").values_list(
        "workspace_id", "asked_of_id", "created_at"
    )
    return _by_person(
        [
            *of_calls[:MOST_AT_ONCE],
            *of_unknown[:MOST_AT_ONCE],
            *of_questions[:MOST_AT_ONCE],
            *_requests(after or now - LATEST, until),
            *_calls_of_others(after or now - LATEST, until),
        ]
    )


def _requests(after: datetime, until: datetime) -> Iterator[tuple[UUID, UUID, datetime]]:
    """What members ask for, for each who decides about it."""
    rows = AccessRequest.objects.across_workspaces().filter(
        status=RequestStatus.OPEN, created_at__gt=after, created_at__lte=until
    )
    asked = rows.order_by("created_at").values_list("workspace_id", "requester_id", "created_at")
    yield from _for_deciders(list(asked[:MOST_AT_ONCE]))


def _calls_of_others(after: datetime, until: datetime) -> Iterator[tuple[UUID, UUID, datetime]]:
    """Calls that wait for a second person, for each who may decide about them."""
    rows = ToolCall.objects.across_workspaces().filter(
        Q(approval_expires_at=None) | Q(approval_expires_at__gt=database_now()),
        status=ToolCallStatus.WAITING_FOR_APPROVAL.value,
        needs_second_person=True,
        created_at__gt=after,
        created_at__lte=until,
    )
    asked = rows.order_by("created_at").values_list(
        "workspace_id", "turn__asked_by_id", "created_at"
    )
    yield from _for_deciders(list(asked[:MOST_AT_ONCE]))


def _for_deciders(
    asked: list[tuple[UUID, UUID, datetime]],
) -> Iterator[tuple[UUID, UUID, datetime]]:
    """Each of these for every admin and owner of its workspace but who asked."""
    if not asked:
        return
    members = Membership.objects.across_workspaces().filter(
        DECIDERS, workspace_id__in={workspace_id for workspace_id, _requester, _at in asked}
    )
    deciders: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for workspace_id, user_id in members.values_list("workspace_id", "user_id"):
        deciders[workspace_id].append(user_id)
    for workspace_id, requester_id, since in asked:
        for user_id in deciders[workspace_id]:
            if user_id != requester_id:
                yield workspace_id, user_id, since


def answered_since(after: datetime, until: datetime, wanted: Wanted) -> Times:
    """When answers ended between these moments, oldest first, for each person who has not seen them and is to be told."""
    turns = unseen_turns(Turn.objects.across_workspaces(), after, until)
    rows = turns.filter(wanted("conversation__owner_id", "finished_at")).order_by("finished_at")
    found = rows.values_list("workspace_id", "conversation__owner_id", "finished_at")
    return _by_person(found[:MOST_AT_ONCE])


def copied_since(after: datetime, until: datetime, wanted: Wanted) -> Times:
    """When copies of people's data became ready between these moments, for each person who is to be told."""
    rows = _ready(DataCopy.objects.across_workspaces(), after, until)
    rows = rows.filter(wanted("owner_id", "finished_at")).order_by("finished_at")
    return _by_person(rows.values_list("workspace_id", "owner_id", "finished_at")[:MOST_AT_ONCE])


def ready_copies(
    *, workspace: Workspace, person: User, since: datetime, until: datetime
) -> list[NewsItem]:
    """A person's copies that became ready between these moments."""
    rows = _ready(DataCopy.objects.for_workspace(workspace), since, until).filter(owner=person)
    title = _("Your data")
    return [
        NewsItem(kind=NewsKind.COPY, title=title) for _row in rows.values_list("pk")[:MOST_LISTED]
    ]


def _ready(rows: Any, since: datetime, until: datetime) -> Any:
    return rows.filter(
        status=CopyStatus.READY.value, finished_at__gte=since, finished_at__lte=until
    )


def _by_person(rows: Iterable[tuple[UUID, UUID | None, datetime | None]]) -> Times:
    found: defaultdict[Person, list[datetime]] = defaultdict(list)
    for workspace_id, user_id, since in rows:
        if user_id is not None and since is not None:
            found[workspace_id, user_id].append(since)
    return found


def waiting_things(
    *, workspace: Workspace, person: User, since: datetime, until: datetime
) -> list[NewsItem]:
    """What began to wait for a person between these moments and still does, the oldest first."""
    return [
        _thing(one)
        for one in waiting_for(workspace=workspace, person=person)
        if since <= one.since <= until
    ]


def _thing(one: PendingDecision) -> NewsItem:
    if one.asked_by is not None:
        return NewsItem(kind=NewsKind.APPROVAL, title=_("A call of a member"))
    if one.conversation is None:
        return NewsItem(kind=NewsKind.REQUEST, title=_("A request"))
    kind = NewsKind.UNKNOWN if one.is_unknown else NewsKind.QUESTION
    return NewsItem(
        kind=NewsKind.APPROVAL if one.is_approval else kind,
        conversation_id=one.conversation.pk,
        # Mails and devices keep what they were told.
        title=_("Temporary chat")
        if one.conversation.is_temporary
        else one.conversation.title or _("New chat"),
        message_id=one.message_id,
    )


def unseen_answers(
    *, workspace: Workspace, person: User, since: datetime, until: datetime
) -> list[NewsItem]:
    """A person's unseen answers that ended between these moments, the oldest first."""
    turns = unseen_turns(Turn.objects.for_workspace(workspace), since, until)
    answers = Message.objects.for_workspace(workspace).filter(
        turn_id=OuterRef("pk"), role=MessageRole.ASSISTANT.value
    )
    rows = (
        turns.filter(conversation__owner=person)
        .annotate(said=Subquery(answers.order_by("-step").values("pk")[:1]))
        .order_by("finished_at", "pk")
        .values_list("conversation_id", "conversation__title", "said", "user_message_id", "status")
    )
    return [
        NewsItem(
            kind=NewsKind.ANSWER if status == TurnStatus.COMPLETED else NewsKind.FAILURE,
            conversation_id=conversation_id,
            title=title or _("New chat"),
            # The question, where the model said nothing.
            message_id=said_id or asked_id,
        )
        for conversation_id, title, said_id, asked_id, status in rows[:MOST_LISTED]
    ]


def unseen_turns(turns: Any, since: datetime, until: datetime) -> Any:
    """Those among these turns that gave the unseen answer of their conversation, and took longer than a moment.

    Not those of temporary ones: they would stand in what a mail or device lists.
    """
    return turns.filter(
        conversation__unseen_answer_at__gte=since,
        conversation__unseen_answer_at__lte=until,
        conversation__deleted_at=None,
        conversation__is_temporary=False,
        finished_at=F("conversation__unseen_answer_at"),
        finished_at__gte=F("created_at") + MOMENT,
    )
