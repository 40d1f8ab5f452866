"""Questions to a model that are no answer of the conversation: without tools, and listened to for so long."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from chat.providers import model_requests
from chat.providers.base import (
    Completion,
    CompletionRequest,
    ProviderSpec,
    TextPiece,
    TokenCount,
)
from chat.providers.spending import Bill
from mcp_servers.client.connections import runtime


def ask_aside(
    spec: ProviderSpec,
    *,
    prompt: str,
    question: str,
    seconds: float,
    most: int,
    bill: Bill | None,
) -> tuple[str, TokenCount]:
    """What the model says, and what it cost as far as it told; a stream that goes on and on is left.

    Args:
        most: characters that are listened to.
        bill: who pays; the request is added to their month. None: only for a word that tries a provider.

    Raises:
        ProviderError: in all its kinds.
        SpendingLimitReached: nothing was sent.
        TimeoutError: it took longer.
    """
    request = CompletionRequest(
        model=spec.model,
        messages=[{"role": "system", "content": prompt}, {"role": "user", "content": question}],
    )
    return runtime.run_sync(
        _listen(spec, request, seconds, most, bill), timeout_seconds=seconds + 5
    )


async def _listen(
    spec: ProviderSpec,
    request: CompletionRequest,
    seconds: float,
    most: int,
    bill: Bill | None,
) -> tuple[str, TokenCount]:
    text = ""
    usage = TokenCount()
    async with (
        asyncio.timeout(seconds),
        aclosing(model_requests.stream_and_count(spec, request, bill)) as answer,
    ):
        async for piece in answer:
            if isinstance(piece, Completion):
                return piece.text, piece.usage
            if isinstance(piece, TokenCount):
                usage = piece
            elif isinstance(piece, TextPiece):
                text += piece.text
            if len(text) > most:
                break
    return text, usage
