"""Embeddings in OpenAI's wire format: what is asked, and what comes back. Pure.

Vectors are asked for in base64, which is a quarter of the size and read at once; servers that only know lists send those.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

from chat.providers.base import Embeddings
from chat.providers.errors import ProviderBadAnswer
from chat.vectors import LEAST_NUMBERS, MOST_NUMBERS
from workspaces.words.texts import gettext_noop as _

NO_VECTORS: Final = _("The model provider answered, but not with embeddings.")
_FLOAT_BYTES: Final = 4


def is_embedding_model(name: str) -> bool:
    """Whether a model is one for embeddings, as far as its name tells: no list of models says so."""
    return "embed" in name.lower()


def embedding_body(model: str, texts: Sequence[str]) -> dict[str, Any]:
    """The body of a request."""
    return {"model": model, "input": list(texts), "encoding_format": "base64"}


def read_embeddings(body: bytes, count: int) -> Embeddings:
    """Read an answer.

    Args:
        count: how many texts were sent.

    Raises:
        ProviderBadAnswer: it is not that many vectors of one length.
    """
    try:
        answer = json.loads(body)
        # Some servers leave the index out, and keep the order.
        rows = {int(row.get("index", at)): row for at, row in enumerate(answer["data"])}
        vectors = [_vector(rows[at]["embedding"]) for at in range(count)]
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ProviderBadAnswer(NO_VECTORS) from error
    lengths = {len(vector) for vector in vectors}
    if len(rows) != count or len(lengths) != 1:
        raise ProviderBadAnswer(NO_VECTORS)
    if not LEAST_NUMBERS <= lengths.pop() <= MOST_NUMBERS:
        raise ProviderBadAnswer(NO_VECTORS)
    return Embeddings(vectors=vectors, tokens=_tokens(answer.get("usage")))


def _vector(stated: object) -> array[float]:
    if isinstance(stated, str):
        content = base64.b64decode(stated, validate=True)
        if len(content) % _FLOAT_BYTES:
            raise ValueError("not whole numbers")
        found = array("f", content)
        if sys.byteorder == "big":
            found.byteswap()
    elif isinstance(stated, list):
        found = array("f", stated)
    else:
        raise TypeError("neither a text nor a list")
    if not all(map(math.isfinite, found)) or not any(found):
        raise ValueError("not a vector")
    return found


def _tokens(usage: object) -> int:
    if not isinstance(usage, Mapping):
        return 0
    count = usage.get("prompt_tokens") or usage.get("total_tokens")
    is_count = isinstance(count, int) and not isinstance(count, bool) and 0 < count < 10**9
    return count if is_count and isinstance(count, int) else 0
