"""The answer of a model that knows nothing but text, as if it could call functions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from uuid_utils.compat import uuid7

from chat.providers.base import AskedCall, Completion, Piece, TextPiece
from chat.providers.fenced_json import FencedReader


async def unfenced(stream: AsyncIterator[Piece | Completion]) -> AsyncIterator[Piece | Completion]:
    """The same stream, with the commands in its text taken out and made into calls."""
    reader = FencedReader()
    shown: list[str] = []
    async for piece in stream:
        if isinstance(piece, TextPiece):
            text = reader.feed(piece.text)
            if text:
                shown.append(text)
                yield TextPiece(text)
        elif isinstance(piece, Completion):
            rest = reader.close()
            if rest:
                shown.append(rest)
                yield TextPiece(rest)
            calls = [
                AskedCall(f"call_{uuid7().hex}", command.name, command.arguments)
                for command in reader.commands
            ]
            yield replace(
                piece,
                text="".join(shown),
                calls=(*piece.calls, *calls),
                blocks=() if piece.calls else tuple(reader.blocks),
            )
        else:
            yield piece
