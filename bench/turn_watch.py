"""When a turn begins to answer, and when it ends."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from uuid import UUID

from chat.live.hub import hub
from chat.models import Conversation


class Watch:
    """Notes when the first delta and the end of a turn come."""

    def __init__(self, conversation: Conversation) -> None:
        self.first: float | None = None
        self.deltas = 0
        self.text = ""
        self.ended = asyncio.Event()
        self.began = asyncio.Event()
        self.conversation = conversation
        hub.watch(conversation.pk, self, asyncio.get_running_loop())

    def offer(self, conversation_id: UUID, frame: str, seq: int | None) -> None:
        if seq is None:
            self.deltas += 1
            if self.first is None:
                self.first = time.perf_counter()
                self.began.set()
            return
        if '"status":"completed"' in frame or '"status":"failed"' in frame:
            event: dict[str, Any] = json.loads(frame)
            if event["type"] == "turn.changed":
                self.ended.set()

    def close(self) -> None:
        hub.unwatch(self.conversation.pk, self)
