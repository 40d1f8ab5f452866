"""What waits to be sent to a page: bounded, joined, and given up where nobody reads."""

from __future__ import annotations

import json
import random
from uuid import uuid4

import pytest

from chat.sockets.following import Following
from chat.sockets.frames import join_deltas
from chat.sockets.send_queue import (
    CHECK_SECONDS,
    MOST_UNHEARD,
    MOST_WAITING,
    STALLED_SECONDS,
    SendQueue,
)
from chat.wire.events import TextDelta, encode, utf16_length


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def deltas(text_pieces: list[str], message: object = "m") -> list[str]:
    frames, offset = [], 0
    for piece in text_pieces:
        frame = {
            "type": "text.delta",
            "conversation_id": "c",
            "message_id": str(message),
            "offset": offset,
            "text": piece,
        }
        frames.append(encode(frame))
        offset += utf16_length(piece)
    return frames


def text_of(frames: list[str]) -> str:
    return "".join(json.loads(frame)["text"] for frame in frames if "text" in json.loads(frame))


def test_neighbouring_pieces_of_a_text_are_joined_and_nothing_else() -> None:
    """REL-17, REL-21: for random mixtures the text and the order of everything else stay."""
    for seed in range(200):
        dice = random.Random(seed)
        pieces = [dice.choice(["a", "bc", "🌱", " "]) for _ in range(dice.randint(0, 30))]
        frames = deltas(pieces)
        for _ in range(dice.randint(0, 5)):
            frames.insert(
                dice.randint(0, len(frames)), encode({"type": "pong", "n": dice.random()})
            )
        joined = join_deltas(frames)
        assert text_of(joined) == "".join(pieces)
        others = [frame for frame in frames if "pong" in frame]
        assert [frame for frame in joined if "pong" in frame] == others
        assert len(joined) <= 2 * len(others) + 1
    lost = deltas(["a", "b", "c"])
    del lost[1]
    assert join_deltas(lost) == lost


def test_no_more_is_under_way_than_a_page_has_read() -> None:
    """REL-17: the rest waits until it says so. REL-2371: which nobody can who has not read."""
    queue = SendQueue(Clock())
    frame = encode({"type": "x", "fill": "y" * 10_000})
    sent: list[str] = []

    def send() -> None:
        while (next_one := queue.take()) is not None:
            sent.append(next_one)

    for _ in range(200):
        queue.push(frame)
        send()
    size = sum(len(one) for one in sent)
    assert MOST_UNHEARD < size < MOST_UNHEARD + 2 * 64 * 1024
    checks = [json.loads(one)["number"] for one in sent if '"check"' in one]
    before = len(sent)
    for guessed in range(1_000):
        queue.heard(guessed)
    send()
    assert len(sent) == before
    queue.heard(checks[-1])
    send()
    assert len(sent) > before


def test_what_waits_is_bounded_and_a_snapshot_of_any_size_goes_through() -> None:
    """REL-16, REL-17: what does not fit is refused, once; the largest frame alone is always taken."""
    queue = SendQueue(Clock())
    assert queue.push("s" * (4 * MOST_WAITING))
    assert not queue.push("x")
    queue.clear()
    taken = 0
    while queue.push("x" * 1_000):
        taken += 1
    assert taken == MOST_WAITING // 1_000


def test_a_large_snapshot_is_let_in_with_what_follows_it() -> None:
    """REL-17: a conversation larger than the limit does not go round in snapshots while text streams."""
    queue = SendQueue(Clock())
    snapshot = encode({"type": "snapshot", "fill": "s" * (2 * MOST_WAITING)})
    queue.push(encode({"type": "accepted", "ref": "r1"}))
    queue.let_in([snapshot, *deltas(["missed "])])
    assert all(queue.push(frame) for frame in deltas(["more "] * 100))
    sent: list[str] = []
    while not queue.is_clear:
        while (taken := queue.take()) is not None:
            sent.append(taken)
        queue.heard(json.loads([one for one in sent if '"check"' in one][-1])["number"])
    assert snapshot in sent
    assert queue.push("x" * MOST_WAITING)
    assert not queue.push("x")
    queue.push(encode({"type": "accepted", "ref": "r2"}))
    queue.clear()
    assert queue.push("x")


def test_many_small_pieces_become_few() -> None:
    """REL-17: a page that is behind gets its text in large pieces."""
    queue = SendQueue(Clock())
    pieces = [f"word{number} " for number in range(5_000)]
    for frame in deltas(pieces):
        assert queue.push(frame)
    frames: list[str] = []
    while (taken := queue.take()) is not None:
        frames.append(taken)
    assert text_of([one for one in frames if "check" not in one]) == "".join(pieces)
    assert len(frames) < 250


def test_a_silent_page_is_found_out() -> None:
    """REL-19: asked after a while, given up after another, and left alone while it answers."""
    clock = Clock()
    queue = SendQueue(clock)

    def after(seconds: float) -> bool:
        clock.now += seconds
        return queue.is_stalled

    assert queue.check_now() is None
    assert not after(CHECK_SECONDS)
    asked = queue.check_now()
    assert asked is not None
    assert queue.check_now() is None
    assert not after(STALLED_SECONDS - 1)
    assert after(2)
    queue.heard(json.loads(asked)["number"])
    assert not after(0)


async def test_ten_thousand_events_to_a_page_that_does_not_read_cost_one_snapshot(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """REL-16: bounded memory, one fresh snapshot wished for, one warning."""
    queue = SendQueue()
    following = Following(queue)
    conversation = uuid4()
    following.begin(conversation)
    try:
        for number in range(10_000):
            row = encode({"type": "turn.changed", "seq": number, "fill": "z" * 200})
            following.offer(conversation, row, number)
            delta = TextDelta(conversation, uuid4(), 0, "text")
            following.offer(conversation, encode(delta.as_json()), None)
        assert following.stale == {conversation}
        assert sum(len(frame) for frame in queue._frames) <= MOST_WAITING
        assert [record.message for record in caplog.records].count("socket_reads_slowly") == 1
    finally:
        following.end_all()
