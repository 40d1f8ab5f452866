"""Several models answer one question side by side, and the person goes on from one of the answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from chat.engine import runner
from chat.engine.attaching import FileRef
from chat.models import (
    Attachment,
    Message,
    ModelProvider,
    ProviderModel,
    QueuedMessage,
    Turn,
)
from chat.services.approvals import decide
from chat.services.branches import edit_message, fork_conversation, regenerate, show_branch
from chat.services.comparing import choose_answer, compare_answer
from chat.services.conversations import update_conversation
from chat.services.queue import send_queued_now
from chat.services.turns import (
    QueuedSend,
    SentTurn,
    active_turns,
    retry_turn,
    send_or_queue,
    stop_turn,
)
from chat.services.usage import usage_of
from chat.snapshots import MOST_MESSAGES
from chat.values import Decision, WhenBusy
from tests.chat.artifacts.uploads import upload
from tests.chat.conftest import Chat
from tests.chat.engine.queueing import busy, queued, until_answered
from tests.chat.engine.statements import add_messages, statements
from tests.chat.services.branching import ask, message_of, texts_of
from tests.factories import TwoTenants
from tests.fakes.scripted_model import ScriptedModel
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.process import shutdown


@dataclass
class Pair:
    """A chat in which two providers' models answer; the chat's own is the first."""

    chat: Chat
    second: ScriptedModel
    provider: ModelProvider

    @property
    def models(self) -> list[tuple[Any, str]]:
        """Both, as a question names them."""
        own = self.chat.bud.provider
        assert own is not None
        return [(own.pk, "m"), (self.provider.pk, "other")]

    def compare(
        self,
        text: str = "one",
        *,
        models: Sequence[tuple[Any, str]] | None = None,
        when_busy: WhenBusy = WhenBusy.QUEUE,
        **more: Any,
    ) -> SentTurn | QueuedSend:
        """Ask both."""
        return send_or_queue(
            conversation=self.chat.conversation,
            client_id=more.pop("client_id", "") or str(uuid7()),
            text=text,
            actor=self.chat.actor,
            when_busy=when_busy,
            compare=self.models if models is None else models,
            **more,
        )

    def turns(self) -> list[Turn]:
        """Those that are or were compared, in the order of their columns."""
        rows = Turn.objects.for_workspace(self.chat.tenant.workspace)
        mine = rows.filter(conversation=self.chat.conversation, comparison__isnull=False)
        return list(mine.order_by("place"))

    def until(self, turn: Turn, *statuses: str) -> Turn:
        """Wait until this one of them has one of these states."""
        self.chat.watching.until(
            lambda event: (
                event["type"] == "turn.changed"
                and event["turn"]["id"] == str(turn.pk)
                and event["turn"]["status"] in statuses
            )
        )
        return self.chat.reload(turn)

    def until_streaming(self, piece: str) -> None:
        """Wait until both have said this."""
        messages = set()

        def have_both(event: dict[str, Any]) -> bool:
            if event["type"] == "text.delta" and event["text"] == piece:
                messages.add(event["message_id"])
            return len(messages) == 2

        self.chat.watching.until(have_both)

    def until_said(self, piece: str) -> None:
        """Wait until one of them has said this."""
        self.chat.watching.until(
            lambda event: event["type"] == "text.delta" and event["text"] == piece
        )

    def answered(self, *texts: str) -> list[Turn]:
        """Both have answered with these words."""
        for model, text in zip((self.chat.model, self.second), texts, strict=True):
            model.say(text)
        self.compare()
        return [self.until(turn, "completed") for turn in self.turns()]


@pytest.fixture
def pair(chat: Chat) -> Iterator[Pair]:
    """A chat with a second provider."""
    second = ScriptedModel()
    provider = ModelProvider.objects.create(
        workspace=chat.tenant.workspace,
        name="Second",
        base_url=second.base_url,
        default_model="other",
    )
    yield Pair(chat, second, provider)
    second.stop()


def words(model: ScriptedModel) -> list[str]:
    """What the model was sent last, without instructions."""
    return [one["content"] for one in model.requests[-1]["messages"]]


@pytest.mark.both_engines
def test_two_models_answer_one_question_at_the_same_time(pair: Pair) -> None:
    """REL-570: each is sent the question with what was said before, and neither reads the other; each counts as its own turn."""
    chat = pair.chat
    ask(chat, "zero", "nought")
    chat.watching.forget()
    hold = threading.Event()
    chat.model.say("from first", hold=hold)
    pair.second.say("from second", hold=hold)
    sent = pair.compare(client_id="same")
    assert isinstance(sent, SentTurn)
    pair.until_streaming("from")  # both, before either may end
    assert chat.snapshot()["conversation"]["status"] == "running"
    first, second = pair.turns()
    values = {one["id"]: one for one in chat.snapshot()["turns"]}
    assert values[str(second.pk)]["asked_model"] == {
        "provider_id": str(pair.provider.pk),
        "name": "other",
    }
    hold.set()
    for turn in (first, second):
        pair.until(turn, "completed")
    assert words(chat.model) == words(pair.second) == ["zero", "nought", "one"]
    assert (chat.model.requests[-1]["model"], pair.second.requests[-1]["model"]) == ("m", "other")
    assert {tool["function"]["name"] for tool in pair.second.requests[-1]["tools"]} == {
        tool["function"]["name"] for tool in chat.model.requests[-1]["tools"]
    }
    used = usage_of(workspace=chat.tenant.workspace, person=chat.tenant.member, days=7)
    assert {(row.model, row.questions, row.prompt_tokens) for row in used.rows} == {
        ("m", 2, 14),
        ("other", 1, 7),
    }
    again = pair.compare(client_id="same")
    assert isinstance(again, SentTurn)
    assert (again.is_new, again.turn.pk) == (False, first.pk)
    assert chat.snapshot()["conversation"]["status"] == "idle"


def test_the_question_is_stored_with_few_statements(pair: Pair, by_hand: None) -> None:
    """REL-570: three models cost a question no more than a few statements of their own."""
    with statements(17):
        pair.compare()


def test_if_one_fails_the_other_goes_on_and_is_gone_on_from(pair: Pair) -> None:
    """REL-570, REL-571: the failed one says why and can be tried again beside the other."""
    chat = pair.chat
    chat.model.fail(400, b'{"error": {"message": "no"}}')
    hold = threading.Event()
    pair.second.say("all right", hold=hold)
    pair.compare()
    first, second = pair.turns()
    failed = pair.until(first, "failed")
    assert failed.error_message
    assert failed.can_retry
    assert [turn.pk for turn in active_turns(chat.conversation)] == [second.pk]
    assert chat.snapshot()["conversation"]["status"] == "running"
    hold.set()
    pair.until(second, "completed")
    assert texts_of(chat) == ["one", "all right"]
    chat.model.say("at last")
    chat.watching.forget()
    retry_turn(turn=failed, actor=chat.actor)
    pair.until(first, "completed")
    # The other was first; both still stand side by side.
    assert texts_of(chat) == ["one", "all right"]
    assert chat.reload_conversation().comparison == first.comparison


def test_one_is_stopped_and_the_other_goes_on(pair: Pair) -> None:
    """REL-570: what it has said is kept."""
    chat = pair.chat
    hold = threading.Event()
    chat.model.say("never more", hold=threading.Event())
    pair.second.say("from second", hold=hold)
    pair.compare()
    pair.until_said("never")
    first, second = pair.turns()
    stop_turn(turn=first, actor=chat.actor)
    pair.until(first, "cancelled")
    hold.set()
    pair.until(second, "completed")
    assert texts_of(chat) == ["one", "from second"]
    assert message_of(chat, "never").status == "stopped"


def test_the_chosen_answer_is_gone_on_from_and_the_other_stays_a_branch(pair: Pair) -> None:
    """REL-571, REL-2421: the conversation's own model goes on, and reads the chosen answer alone.

    An answer that no other stands beside cannot be chosen.
    """
    chat = pair.chat
    _, second = pair.answered("from first", "from second")
    for _ in range(2):
        choose_answer(turn=second, actor=chat.actor)
    assert chat.snapshot()["conversation"]["comparison_id"] is None
    ask(chat, "two", "next")
    assert words(chat.model) == ["one", "from second", "two"]
    alone = Turn.objects.for_workspace(chat.tenant.workspace).get(comparison=None)
    with pytest.raises(Conflict, match="stands alone"):
        choose_answer(turn=alone, actor=chat.actor)
    show_branch(message=message_of(chat, "from first"), actor=chat.actor)
    assert texts_of(chat) == ["one", "from first"]
    with pytest.raises(Conflict):
        choose_answer(turn=second, actor=chat.actor)


def test_choosing_stops_what_is_still_written(pair: Pair) -> None:
    """REL-571: also an answer that is under way can be chosen; it goes on, and is at the end of the path."""
    chat = pair.chat
    hold = threading.Event()
    chat.model.say("never more", hold=threading.Event())
    pair.second.say("and so on", hold=hold)
    pair.compare()
    for text in ("never", "and"):
        pair.until_said(text)
    first, second = pair.turns()
    choose_answer(turn=second, actor=chat.actor)
    pair.until(first, "cancelled")
    hold.set()
    pair.until(second, "completed")
    assert texts_of(chat) == ["one", "and so on"]


def test_writing_on_goes_on_from_the_first_that_is_complete(pair: Pair) -> None:
    """REL-571, REL-572: a message that was written meanwhile waits for all of them."""
    chat = pair.chat
    hold = threading.Event()
    chat.model.say("slow one", hold=hold)
    pair.second.say("quick")
    pair.compare()
    first, second = pair.turns()
    pair.until(second, "completed")
    assert isinstance(pair.compare("two", models=()), QueuedSend)
    assert queued(chat) == ["two"]
    chat.model.say("to two")
    hold.set()
    until_answered(chat, "to two")
    assert words(chat.model) == ["one", "quick", "two"]
    assert pair.until(first, "completed").place == 0
    assert chat.reload_conversation().comparison is None


def test_a_waiting_comparison_keeps_its_models_and_may_interrupt_another(pair: Pair) -> None:
    """REL-572: it is told with the queue; one that interrupts stops all answers that are written."""
    chat = pair.chat
    hold = busy(chat)
    assert isinstance(pair.compare("later"), QueuedSend)
    event = chat.watching.until(lambda event: event["type"] == "queue.changed")
    assert [one["name"] for one in event["queue"][0]["compare"]] == ["m", "other"]
    chat.model.say("never more", hold=threading.Event())
    pair.second.say("never less", hold=threading.Event())
    hold.set()
    pair.until_streaming("never")
    older = pair.turns()
    chat.model.say("to now")
    pair.compare("now", models=(), when_busy=WhenBusy.INTERRUPT)
    until_answered(chat, "to now")
    assert [chat.reload(turn).status for turn in older] == ["cancelled", "cancelled"]
    assert chat.reload_conversation().comparison is None


def test_a_waiting_comparison_of_models_that_are_gone_is_answered_by_the_chats_own(
    pair: Pair,
) -> None:
    """REL-572, REL-656: nothing that was written is lost, and the answer says why it stands alone, through all its steps."""
    chat = pair.chat
    busy(chat)
    pair.compare("later")
    pair.provider.delete()
    chat.model.call(("counting__echo", {"text": "x"}))
    chat.model.say("by myself")
    send_waiting(chat)
    until_answered(chat, "by myself")
    assert pair.turns() == []
    name = chat.conversation.bud.name
    listed = [one["notice"] for one in chat.snapshot()["turns"]]
    why = f"Nothing was compared: other is no longer there. The model of {name} answers alone."
    assert listed == [None, why]
    # It is not said of an answer that somebody asks for later.
    chat.model.say("again")
    turn = Turn.objects.for_workspace(chat.tenant.workspace).latest("pk")
    regenerate(turn=turn, client_id="again", actor=chat.actor)
    until_answered(chat, "again")
    assert [one["notice"] for one in chat.snapshot()["turns"]][2:] == [None]


def test_a_waiting_comparison_tells_which_of_its_models_has_gone(pair: Pair) -> None:
    """REL-656: the others are compared; the first of them says it."""
    chat = pair.chat
    third = ProviderModel.objects.create(
        workspace=chat.tenant.workspace, provider=pair.provider, model="third"
    )
    busy(chat)
    pair.compare("later", models=[*pair.models, (pair.provider.pk, "third")])
    third.delete()
    chat.model.say("by one")
    pair.second.say("by another")
    send_waiting(chat)
    chat.watching.until(lambda event: event["type"] == "turn.changed" and bool(pair.turns()))
    first, second = [pair.until(turn, "completed") for turn in pair.turns()]
    assert first.notice == "Not all models were compared: third is no longer there."
    assert second.notice == ""


def send_waiting(chat: Chat) -> None:
    """Send the message that waits, whatever runs."""
    queued = QueuedMessage.objects.for_workspace(chat.tenant.workspace).get()
    send_queued_now(queued=queued, actor=chat.actor)


def test_tools_and_approvals_of_each_answer_work(pair: Pair) -> None:
    """REL-570: one waits for its person while the other is complete, and the list shows that it waits."""
    chat = pair.chat
    chat.model.call(("counting__destroy", {"what": "the world"}))
    chat.model.say("gone")
    pair.second.say("I would not")
    pair.compare()
    first, second = pair.turns()
    pair.until(first, "waiting_for_approval")
    pair.until(second, "completed")
    client = chat.tenant.client("member")
    header = {"X-Workspace": chat.tenant.workspace.slug}
    [listed] = client.get("/api/conversations/", headers=header).json()["results"]
    assert (listed["status"], chat.snapshot()["conversation"]["status"]) == ("waiting", "waiting")
    decide(call=chat.calls()[0], decision=Decision.APPROVED, actor=chat.actor)
    pair.until(first, "completed")
    assert chat.server.calls == [("destroy", {"what": "the world"})]
    # Its further step did not take the path from the answer that was complete first.
    assert texts_of(chat) == ["one", "I would not"]
    choose_answer(turn=first, actor=chat.actor)
    assert texts_of(chat)[-1] == "gone"


def test_what_is_attached_is_read_once_for_all(pair: Pair) -> None:
    """REL-570: and each model is sent it."""
    chat = pair.chat
    file = upload(chat, "plan.txt", b"We begin on Monday.")
    chat.model.say("Monday")
    pair.second.say("On Monday")
    pair.compare(attachments=[FileRef(artifact_id=file.pk)])
    for turn in pair.turns():
        pair.until(turn, "completed")
    for model in (chat.model, pair.second):
        assert "> We begin on Monday." in words(model)[-1]
    rows = Attachment.objects.for_workspace(chat.tenant.workspace)
    assert [row.status for row in rows] == ["ready"]


def test_another_model_answers_beside_an_answer(pair: Pair) -> None:
    """REL-571: the earlier answer stays what is gone on from until the new one is chosen; a fourth one is refused."""
    chat = pair.chat
    turn = ask(chat, "one", "first")
    pair.second.say("beside")
    begun = {
        compare_answer(turn=turn, client_id="b", model=pair.models[1], actor=chat.actor).pk
        for _ in range(2)
    }
    assert len(begun) == 1
    earlier, beside = pair.turns()
    assert earlier.pk == turn.pk
    pair.until(beside, "completed")
    assert words(pair.second) == ["one"]
    assert texts_of(chat) == ["one", "first"]
    pair.second.say("a third")
    third = compare_answer(turn=beside, client_id="c", model=pair.models[1], actor=chat.actor)
    assert pair.until(third, "completed").comparison == chat.reload(turn).comparison
    with pytest.raises(Conflict, match="up to 3"):
        compare_answer(turn=turn, client_id="d", model=pair.models[1], actor=chat.actor)
    choose_answer(turn=beside, actor=chat.actor)
    assert texts_of(chat) == ["one", "beside"]


@pytest.mark.both_engines
def test_answers_whose_process_has_died_are_gone_on_with(pair: Pair) -> None:
    """REL-573: each of them, by whichever process; nothing is asked twice that was answered."""
    chat = pair.chat
    chat.model.say("from first")
    pair.second.say("from second")
    shutdown.begin()
    try:
        pair.compare()
    finally:
        shutdown.cancel()
    turns = pair.turns()
    # As a process leaves them that has taken both and was killed.
    Turn.objects.for_workspace(chat.tenant.workspace).update(
        status="running", attempt=1, lease_token=1, lease_until=None
    )
    assert runner.recover() == 2
    for turn in turns:
        pair.until(turn, "completed")
    assert (len(chat.model.requests), len(pair.second.requests)) == (1, 1)
    texts = {one["text"] for one in chat.snapshot()["messages"]}
    assert texts == {"one", "from first", "from second"}


def test_a_new_tab_is_given_all_answers_whole_also_in_a_long_conversation(pair: Pair) -> None:
    """REL-573: as long as none is chosen; with few statements."""
    chat = pair.chat
    add_messages(chat.conversation, MOST_MESSAGES + 10)
    pair.answered("from first", "from second")
    with statements(10):
        snapshot = chat.snapshot()
    texts = {one["text"] for one in snapshot["messages"] if not one["is_outline"]}
    assert {"from first", "from second"} <= texts
    assert len(snapshot["messages"]) < MOST_MESSAGES
    ids = [one["id"] for one in snapshot["messages"]]
    assert len(ids) == len(set(ids))


def test_another_wording_and_another_answer_end_the_comparison(pair: Pair) -> None:
    """REL-571: so does showing one of its answers; a copy of the chat is of the shown path."""
    chat = pair.chat
    first, second = pair.answered("from first", "from second")
    show_branch(message=message_of(chat, "from second"), actor=chat.actor)
    assert chat.reload_conversation().comparison is None
    copy = fork_conversation(
        message=message_of(chat, "from second"),
        client_id="f",
        owner=chat.tenant.member,
        actor=chat.actor,
    )
    turns = Turn.objects.for_workspace(chat.tenant.workspace).filter(conversation=copy)
    assert [(turn.comparison, turn.place) for turn in turns] == [(None, 0)]
    chat.model.say("again")
    chat.watching.forget()
    regenerate(turn=second, client_id="r", actor=chat.actor)
    chat.watching.turn("completed")
    assert texts_of(chat) == ["one", "again"]
    chat.model.say("to uno")
    chat.watching.forget()
    edit_message(message=message_of(chat, "one"), client_id="e", text="uno", actor=chat.actor)
    chat.watching.turn("completed")
    assert texts_of(chat) == ["uno", "to uno"]
    assert first.comparison == second.comparison


def test_only_models_that_may_answer_are_compared(pair: Pair, two_workspaces: TwoTenants) -> None:
    """SEC-399: none of other workspaces, none twice, not one or four, none of a bud whose model is fixed."""
    chat = pair.chat
    foreign = ModelProvider.objects.create(
        workspace=two_workspaces.b.workspace,
        name="x",
        base_url="https://x.example/v1",
        default_model="theirs",
    )
    own, other = pair.models
    for models in (
        [own, (foreign.pk, "theirs")],
        [own, (pair.provider.pk, "unknown")],
        [own, own],
        [own],
        [own, other, own, other],
    ):
        with pytest.raises(InvalidInput) as refused:
            pair.compare(models=models)
        assert "compare" in refused.value.fields
    chat.bud.is_model_fixed = True
    chat.bud.save()
    with pytest.raises(InvalidInput, match="own model only"):
        pair.compare()
    assert not Message.objects.for_workspace(chat.tenant.workspace).exists()
    assert chat.model.requests == []


def test_nobody_compares_or_chooses_in_anothers_chat(pair: Pair) -> None:
    """SEC-399: over REST neither; whoever may compare is told of each turn, and refused in words."""
    chat = pair.chat
    chat.model.say("from first")
    pair.second.say("from second")
    header = {"X-Workspace": chat.tenant.workspace.slug}
    body = {
        "client_id": "c",
        "text": "one",
        "compare": [{"provider_id": str(pk), "name": name} for pk, name in pair.models],
    }
    path = f"/api/conversations/{chat.conversation.pk}/messages/"

    def post(who: str, path: str, **values: Any) -> Any:
        client = chat.tenant.client(who)
        return client.post(path, values, content_type="application/json", headers=header)

    assert post("admin", path, **body).status_code == 404
    sent = post("member", path, **body)
    assert sent.status_code == 202
    beside = sent.json()["compared"]
    assert [one["asked_model"]["name"] for one in beside] == ["other"]
    for turn in pair.turns():
        pair.until(turn, "completed")
    choose = f"/api/turns/{beside[0]['id']}/choose/"
    assert post("admin", choose).status_code == 404
    assert post("member", choose).status_code == 200
    assert texts_of(chat) == ["one", "from second"]
    refused = post("member", path, **{**body, "client_id": "d", "compare": body["compare"][:1]})
    assert refused.status_code == 422
    assert "two or three" in str(refused.json())
    other = chat.tenant.actor("admin")
    with pytest.raises(PermissionDenied):
        choose_answer(turn=pair.turns()[0], actor=other)


def test_a_comparison_of_a_running_chat_changes_no_model(pair: Pair) -> None:
    """REL-570: it is for one message; the chat's own model stays what it was, and cannot be changed meanwhile."""
    chat = pair.chat
    hold = threading.Event()
    chat.model.say("from first", hold=hold)
    pair.second.say("from second", hold=hold)
    pair.compare()
    provider_id, name = pair.models[1]
    with pytest.raises(Conflict):
        update_conversation(
            conversation=chat.conversation,
            actor=chat.actor,
            model={"provider_id": provider_id, "name": name},
        )
    hold.set()
    for turn in pair.turns():
        pair.until(turn, "completed")
    assert chat.reload_conversation().chosen_model is None


def test_the_page_of_a_turn_names_what_it_was_compared_with(pair: Pair) -> None:
    """REL-570: with a link to each; so does the log over REST."""
    chat = pair.chat
    first, second = pair.answered("from first", "from second")
    client = chat.tenant.client("auditor")
    page = client.get(f"/w/{chat.tenant.workspace.slug}/audit/turns/{first.pk}/")
    assert f"audit/turns/{second.pk}/" in page.content.decode()
    header = {"X-Workspace": chat.tenant.workspace.slug}
    record = client.get(f"/api/audit-turns/{second.pk}/", headers=header)
    assert record.json()["compared_with"] == [str(first.pk)]
