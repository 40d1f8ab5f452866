"""A sink that posts signed webhooks (Standard Webhooks)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from audit.streams.events import StreamedEntry
from audit.streams.sinks import HTTP_BOUNDS, SinkReceipt
from workspaces import outbound
from workspaces.delivery.webhooks import post_signed


class WebhookSink:
    """Posts batches of JSON, each signed."""

    def __init__(self, *, url: str, secret: str, headers: Mapping[str, str], stream: str) -> None:
        self._url = url
        self._secret = secret
        self._stream = stream
        self._client = outbound.client(bounds=HTTP_BOUNDS, headers=headers)

    async def send(self, events: Sequence[StreamedEntry]) -> SinkReceipt:
        first, last = events[0], events[-1]
        batch = f"{self._stream}.{first.chain_id}.{first.seq}-{last.seq}"
        body = json.dumps(
            {
                "type": "audit.entries",
                "timestamp": last.at.isoformat(),
                "stream": self._stream,
                "entries": [event.as_json() for event in events],
            },
            separators=(",", ":"),
        ).encode()
        await post_signed(self._client, self._url, body, event_id=batch, secret=self._secret)
        return SinkReceipt()

    async def aclose(self) -> None:
        await self._client.aclose()
