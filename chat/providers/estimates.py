"""About how many tokens texts are, where no provider has counted them. Pure."""

from __future__ import annotations

import math
from typing import Final

from chat.providers.base import TokenCount

BYTES_A_TOKEN: Final = 3.3


def estimate(text: str) -> int:
    """About how many tokens a text is: languages of one byte a letter, others, and code lie close together in bytes."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return math.ceil(size / BYTES_A_TOKEN)


def believed_usage(prompt_tokens: int, answer: str) -> TokenCount:
    """What a request has probably cost whose provider did not tell; nothing where nothing came of it."""
    if not answer:
        return TokenCount()
    return TokenCount(prompt=prompt_tokens, completion=estimate(answer), is_estimate=True)
