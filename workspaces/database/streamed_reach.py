"""An answer that is made while it is sent reaches as far as its view did, which is over by then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

from django.http import FileResponse

from workspaces.database.row_security import current_reach, reaching


def keep_reach(response: Any) -> None:
    """Have what is read while the answer is sent reach as far as its view did."""
    if isinstance(response, FileResponse):
        return  # read from a file, which the server may do by itself
    reach, content = current_reach(), response.streaming_content

    def pieces() -> Iterator[bytes]:
        rest = iter(content)
        while True:
            with reaching(reach):
                piece = next(rest, None)
            if piece is None:
                return
            yield piece

    async def pieces_by_and_by() -> AsyncIterator[bytes]:
        # Only what is between two pieces; whoever sends them goes on with a reach of their own.
        async with aclosing(content) as rest:
            while True:
                with reaching(reach):
                    piece = await anext(rest, None)
                if piece is None:
                    return
                yield piece

    response.streaming_content = pieces_by_and_by() if response.is_async else pieces()
