"""A process dies, stops or fails at each named place, and another one goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.chaos.conftest import Forks, Story
from tests.chaos.scenery import DESTROY, MERGE, READ
from workspaces.process.failpoints import Failpoint as At

pytestmark = pytest.mark.django_db

STEPS = ((MERGE,), (READ,), (DESTROY,))
OF_A_CALL = [
    At.GATE_BEFORE_REQUESTED,
    At.GATE_AFTER_REQUESTED,
    At.GATE_BEFORE_SEND,
    At.GATE_AFTER_SEND,
    At.GATE_AFTER_ANSWER,
    At.GATE_BEFORE_FINISHED,
    At.GATE_AFTER_FINISHED,
]
SENT = {At.GATE_AFTER_SEND, At.GATE_AFTER_ANSWER, At.GATE_BEFORE_FINISHED, At.GATE_AFTER_FINISHED}
"""Places of a call at which its server has been told for sure."""
FIRST, LAST = 1, 3
"""At which coming-by a place of a call belongs to the one that may be repeated, and to the one that must not."""
SLOWLY = {At.PARTIAL_SAVED, At.RENEWED}
"""What comes by only while the model takes its time."""
LEAVING = {At.RELEASE_BEFORE_COMMIT, At.RELEASE_AFTER_COMMIT}


def armed(place: At, action: str, hit: int = 1) -> str:
    """As the process is told; what has been handed to the transport is given time to leave."""
    return f"{place}={action}{'~2' if place is At.GATE_AFTER_SEND else ''}@{hit}"


@contextmanager
def unanswered(story: Story, place: At, hit: int = 1) -> Iterator[None]:
    """Until the process has come to its end, what was sent there is not answered: it would go on."""
    silent = story.forks.tools.silent_at
    if place is At.GATE_AFTER_SEND:
        silent[story.plan.token] = hit
    try:
        yield
    finally:
        silent.pop(story.plan.token, None)


def die(forks: Forks, place: At) -> Story:
    """A story whose first process, or first two, have died at this place."""
    job = "talk"
    if place in LEAVING:
        # It leaves while the model speaks, and nobody is asked for anything.
        job, story = "leave", forks.story(steps=STEPS[:2], pause=0.5)
    elif place is At.QUEUE_BEFORE_COMMIT:
        story = forks.story(steps=(), pause=0.3, queues=True)
    else:
        story = forks.story(steps=STEPS, pause=0.5 if place in SLOWLY else 0.0)
    takes_over = place is At.TAKE_AGAIN_BEFORE_COMMIT
    if takes_over:
        assert story.live(failpoints=armed(At.CALL_BEGUN, "kill"))["code"] == -9
    with unanswered(story, place):
        died = story.live(job, failpoints=armed(place, "kill"), watches=takes_over)
    assert died["code"] == -9, f"nobody came by {place}: {died}"
    return story


@pytest.mark.postgresql
def test_a_process_dies_anywhere(forks: Forks) -> None:
    """REL-04, REL-06, REL-40, REL-41, REL-50: killed at each named place, one after another, nothing is lost, doubled or stuck once another process goes on."""
    died = {place: die(forks, place) for place in At}
    went_on = forks.go_on(list(died.values()))
    for place, story in died.items():
        end = went_on[story.conversation]
        assert set(end["statuses"]) == {"completed"}, place
        assert end["calls"] == ["succeeded"] * len(story.plan.steps), (place, end["refusals"])
        assert story.done(DESTROY) == sum(step == (DESTROY,) for step in story.plan.steps), place
    assert forks.violations(list(died.values())) == {}


def test_a_process_dies_during_a_destructive_call(forks: Forks) -> None:
    """REL-04, REL-05, REL-201: what was sent is never sent again, its person says what becomes of it unless the log knows; what was not sent is."""
    died = {place: forks.story(steps=STEPS) for place in OF_A_CALL}
    for place, story in died.items():
        with unanswered(story, place, LAST):
            assert story.live(failpoints=armed(place, "kill", LAST))["code"] == -9, place
    went_on = forks.go_on(list(died.values()))
    for place, story in died.items():
        end = went_on[story.conversation]
        assert end["statuses"] == ["completed"], place
        # Before *requested* nothing can have been sent, and the approval that was given is still good.
        # After *finished* the log knows how it ended, and nobody is asked.
        was_asked = place not in (At.GATE_BEFORE_REQUESTED, At.GATE_AFTER_FINISHED)
        last = "given_up" if was_asked else "succeeded"
        assert end["calls"] == ["succeeded", "succeeded", last], place
        assert story.done(DESTROY) == (1 if place in SENT or not was_asked else 0), place
    assert forks.violations(list(died.values())) == {}


@pytest.mark.postgresql  # a process that stands still may hold SQLite's one lock
def test_a_process_stops_for_longer_than_its_lease(forks: Forks) -> None:
    """REL-03, REL-11: taken over while it stands still, it writes nothing and sends nothing when it wakes up."""
    places = [(place, LAST) for place in OF_A_CALL]
    places += [(At.GATE_BEFORE_SEND, FIRST), (At.GATE_BEFORE_FINISHED, FIRST)]
    stories = [forks.story(steps=STEPS) for _ in places]
    held_up = []
    for story, (place, hit) in zip(stories, places, strict=True):
        with unanswered(story, place, hit):
            held_up.append(forks.begin("talk", [story], failpoints=armed(place, "stop", hit)))
            assert forks.end(held_up[-1])["code"] == "stopped", place
    went_on = forks.go_on(stories)
    before = [(story.done(MERGE), story.done(DESTROY)) for story in stories]
    for child in held_up:
        forks.wake(child)
    woken = [forks.end(child) for child in held_up]
    for story, end in zip(stories, woken, strict=True):
        assert end["code"] == 0
        assert end["stories"][story.conversation] == went_on[story.conversation]
        assert went_on[story.conversation]["statuses"] == ["completed"]
    assert [(story.done(MERGE), story.done(DESTROY)) for story in stories] == before
    assert all(destroyed <= 1 for _, destroyed in before)
    assert forks.violations(stories) == {}


def test_something_unforeseen_fails_during_a_destructive_call(forks: Forks) -> None:
    """REL-04: whatever is raised wherever, the call is made at most once, and the turn ends."""
    places = {At.GATE_APPROVAL_USED: 1, At.GATE_AFTER_SEND: LAST, At.GATE_BEFORE_FINISHED: LAST}
    stories = []
    for place, hit in places.items():
        stories.append(forks.story(steps=STEPS))
        outcome = stories[-1].live(failpoints=f"{place}=raise@{hit}")
        assert outcome["code"] == 0
        assert outcome["statuses"][0] in ("completed", "failed"), place
        assert stories[-1].done(DESTROY) <= 1
    assert forks.violations(stories) == {}


@pytest.mark.postgresql
def test_clocks_that_are_wrong_take_nobodys_turn(forks: Forks) -> None:
    """REL-42: on a machine whose clock is minutes off a turn goes its way; it is taken over when it dies, and not before."""
    stories = []
    for seconds in (600, -600):
        stories.append(forks.story(steps=STEPS, pause=0.6))
        failpoints = armed(At.CALL_AFTER_COMMIT, "kill", LAST)
        assert stories[-1].live(failpoints=failpoints, clock=seconds)["code"] == -9
        outcome = stories[-1].live(clock=-seconds)
        assert outcome["statuses"] == ["completed"]
        assert outcome["calls"] == ["succeeded"] * 3
        assert stories[-1].done(DESTROY) == 1
    assert forks.violations(stories) == {}
