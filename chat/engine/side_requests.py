"""Questions to a model that are no answer of the conversation: without tools, and listened to for so long."""

from __future__ import annotations

import asyncio

from chat.providers import limits
from chat.providers.base import (
    Completion,
    CompletionRequest,
    ProviderSpec,
    TextPiece,
    TokenCount,
)
from mcp_servers.client.connections import runtime


def ask_aside(
    spec: ProviderSpec, *, prompt: str, question: str, seconds: float, most: int
) -> tuple[str, TokenCount]:
    """What the model says, and what it cost as far as it told; a stream that goes on and on is left.

    Args:
        most: characters that are listened to.

    Raises:
        ProviderError: in all its kinds.
        TimeoutError: it took longer.
    """
    request = CompletionRequest(
        model=spec.model,
        messages=[{"role": "system", "content": prompt}, {"role": "user", "content": question}],
    )
    return runtime.run_sync(_listen(spec, request, seconds, most), timeout_seconds=seconds + 5)


async def _listen(
    spec: ProviderSpec, request: CompletionRequest, seconds: float, most: int
) -> tuple[str, TokenCount]:
    said = ""
    usage = TokenCount()
    async with asyncio.timeout(seconds):
        async for piece in limits.stream(spec, request):
            if isinstance(piece, Completion):
                return piece.text, piece.usage
            if isinstance(piece, TokenCount):
                usage = piece
            elif isinstance(piece, TextPiece):
                said += piece.text
            if len(said) > most:
                break
    return said, usage
