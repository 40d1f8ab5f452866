"""A process dies, stops or fails at each named place, and another one goes on."""

from __future__ import annotations

import pytest

from tests.chaos.conftest import Forks, Story
from tests.chaos.scenery import DESTROY, MERGE, READ
from workspaces.failpoints import Failpoint as At

pytestmark = pytest.mark.django_db

STEPS = ((MERGE,), (READ,), (DESTROY,))
COMING_BY = {MERGE: 1, READ: 2, DESTROY: 3}
"""At which coming-by a place of the gate belongs to the call of that kind."""

OF_A_CALL = [
    At.GATE_BEFORE_REQUESTED,
    At.GATE_AFTER_REQUESTED,
    At.GATE_BEFORE_SEND,
    At.GATE_AFTER_SEND,
    At.GATE_AFTER_ANSWER,
    At.GATE_BEFORE_FINISHED,
    At.GATE_AFTER_FINISHED,
]
SENT = [At.GATE_AFTER_SEND, At.GATE_AFTER_ANSWER, At.GATE_BEFORE_FINISHED, At.GATE_AFTER_FINISHED]
"""Places of a call at which its server has been told for sure."""
SLOWLY = {At.PARTIAL_SAVED, At.RENEWED, At.RELEASE_BEFORE_COMMIT, At.RELEASE_AFTER_COMMIT}
"""What comes by only while the model takes its time."""
LEAVING = {At.RELEASE_BEFORE_COMMIT, At.RELEASE_AFTER_COMMIT}
ELSEWHERE = {
    At.TAKE_AGAIN_BEFORE_COMMIT: "test_a_process_dies_while_it_takes_over",
    At.QUEUE_BEFORE_COMMIT: "test_a_process_dies_while_it_sends_what_waits",
}
"""What the plain story does not come by, and where it is come by instead."""


def armed(place: At, action: str, hit: int) -> str:
    """As the process is told; what has been handed to the transport is given a moment to leave."""
    return f"{place}={action}{'~0.02' if place is At.GATE_AFTER_SEND else ''}@{hit}"


def assert_all_is_well(story: Story) -> None:
    assert story.violations() == []
    assert story.done(DESTROY) <= 1


@pytest.mark.postgresql
@pytest.mark.parametrize("place", [place for place in At if place not in ELSEWHERE])
def test_a_process_dies_anywhere(forks: Forks, place: At) -> None:
    """REL-04, REL-06, REL-40, REL-41: killed at each named place, nothing is lost, doubled or stuck after another goes on."""
    # A process that leaves does so while the model speaks, and nobody is asked for anything.
    steps = STEPS[:2] if place in LEAVING else STEPS
    story = forks.story(steps=steps, pause=0.5 if place in SLOWLY else 0.0)
    died = story.live("leave" if place in LEAVING else "talk", failpoints=armed(place, "kill", 1))
    assert died["code"] == -9, f"nobody came by {place}: {died}"
    went_on = story.live()
    assert went_on["code"] == 0
    assert went_on["statuses"] == ["completed"]
    assert went_on["calls"] == ["succeeded"] * len(steps)
    assert story.done(DESTROY) == len(steps) - 2
    assert_all_is_well(story)


@pytest.mark.parametrize("place", OF_A_CALL)
def test_a_process_dies_during_a_destructive_call(forks: Forks, place: At) -> None:
    """REL-04, REL-05: what was sent is never sent again; its person is asked what becomes of it."""
    story = forks.story(steps=STEPS)
    assert story.live(failpoints=armed(place, "kill", 3))["code"] == -9
    went_on = story.live()
    assert went_on["statuses"] == ["completed"]
    assert went_on["calls"][:2] == ["succeeded"] * 2
    if place is At.GATE_BEFORE_REQUESTED:
        assert went_on["calls"][2] == "succeeded"  # with the approval that was given for it
        assert story.done(DESTROY) == 1
    else:
        assert went_on["calls"][2] == "given_up"
        assert story.done(DESTROY) == (1 if place in SENT else 0)
    assert_all_is_well(story)


@pytest.mark.postgresql  # a process that stands still may hold SQLite's one lock
@pytest.mark.parametrize(
    ("kind", "place"),
    [(DESTROY, place) for place in OF_A_CALL]
    + [(MERGE, At.GATE_BEFORE_SEND), (MERGE, At.GATE_BEFORE_FINISHED)],
)
def test_a_process_stops_for_longer_than_its_lease(forks: Forks, place: At, kind: str) -> None:
    """REL-03, REL-11: taken over while it stands still, it writes nothing and sends nothing when it wakes up."""
    story = forks.story(steps=STEPS)
    held_up = story.begin(failpoints=armed(place, "stop", COMING_BY[kind]))
    assert story.end(held_up)["code"] == "stopped"
    went_on = story.live()
    assert went_on["statuses"] == ["completed"]
    before = (story.done(MERGE), story.done(DESTROY))
    story.go_on(held_up)
    woken = story.end(held_up)
    assert woken["code"] == 0
    assert woken["calls"] == went_on["calls"]
    assert (story.done(MERGE), story.done(DESTROY)) == before
    assert_all_is_well(story)


@pytest.mark.parametrize(
    "place",
    [
        At.GATE_APPROVAL_USED,
        At.GATE_AFTER_REQUESTED,
        At.GATE_AFTER_SEND,
        At.GATE_AFTER_ANSWER,
        At.GATE_BEFORE_FINISHED,
        At.CALL_BEFORE_COMMIT,
    ],
)
def test_something_unforeseen_fails_during_a_destructive_call(forks: Forks, place: At) -> None:
    """REL-04: whatever is raised wherever, the call is made at most once, and the turn ends."""
    hit = 1 if place is At.GATE_APPROVAL_USED else 3
    story = forks.story(steps=STEPS)
    lived = story.live(failpoints=f"{place}=raise@{hit}")
    assert lived["code"] == 0
    assert lived["statuses"][0] in ("completed", "failed")
    assert_all_is_well(story)


def test_a_process_dies_while_it_takes_over(forks: Forks) -> None:
    """REL-04, REL-11: a third process settles what two have left."""
    story = forks.story(steps=STEPS)
    assert story.live(failpoints=armed(At.GATE_AFTER_SEND, "kill", 3))["code"] == -9
    assert story.live(failpoints=armed(At.TAKE_AGAIN_BEFORE_COMMIT, "kill", 1))["code"] == -9
    went_on = story.live()
    assert went_on["calls"] == ["succeeded", "succeeded", "given_up"]
    assert story.done(DESTROY) == 1
    assert_all_is_well(story)


@pytest.mark.postgresql
@pytest.mark.parametrize("minutes", [10, -10])
def test_clocks_that_are_wrong_take_nobodys_turn(forks: Forks, minutes: int) -> None:
    """REL-42: on a machine whose clock is minutes off the turn goes its way, and is taken over when it dies, not before."""
    story = forks.story(steps=STEPS, pause=0.6)
    died = story.begin(failpoints=armed(At.CALL_AFTER_COMMIT, "kill", 3), clock=minutes * 60)
    assert story.end(died)["code"] == -9
    went_on = story.live(clock=-minutes * 60)
    assert went_on["statuses"] == ["completed"]
    assert went_on["calls"] == ["succeeded"] * 3
    assert story.done(DESTROY) == 1
    assert_all_is_well(story)


def test_a_process_dies_while_it_sends_what_waits(forks: Forks) -> None:
    """REL-01, REL-12: a message in the queue is neither lost nor sent twice."""
    story = forks.story(steps=(), pause=0.3)
    died = story.live(failpoints=armed(At.QUEUE_BEFORE_COMMIT, "kill", 1), queues=True)
    assert died["code"] == -9
    went_on = story.live()
    assert went_on["statuses"] == ["completed", "completed"]
    assert_all_is_well(story)
