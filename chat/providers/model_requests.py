"""The one road to models: what a month allows, the key that is stored now, and a place at the provider."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Final

from django.utils.translation import gettext_noop as _

from chat.providers.base import (
    Completion,
    CompletionRequest,
    Embeddings,
    Piece,
    ProviderLimits,
    ProviderSpec,
    TokenCount,
)
from chat.providers.choosing import model_client
from chat.providers.errors import ProviderKeyRefused, ProviderStalled
from chat.providers.estimates import believed_usage, estimate
from chat.providers.key_changes import refused_key, tell_admins, with_changed_key
from chat.providers.limits import TellWait, place_at
from chat.providers.spending import Allowance, Bill
from chat.providers.spending_holds import expected_usage, held_beside
from chat.providers.spending_notices import charge_alone
from chat.providers.spending_refusals import refuse
from workspaces.database import in_database

logger = logging.getLogger(__name__)

LONGEST_WAIT_SECONDS: Final = 60.0
"""For a place at the provider."""
SHORT_WAIT_SECONDS: Final = 3.0
"""The same where another provider can answer instead."""


async def stream(
    spec: ProviderSpec,
    request: CompletionRequest,
    allowance: Allowance | None,
    tell_wait: TellWait | None = None,
) -> AsyncIterator[Piece | Completion]:
    """The model's answer, asked for as soon as its provider's limits allow it. The caller counts what it used.

    Args:
        allowance: what whoever pays may spend at this provider. None: only for a word that tries a provider.

    Raises:
        ProviderError: in all its kinds; `ProviderBusy` if it would have to wait for too long.
        SpendingLimitReached: nothing was sent.
    """
    await _check(spec, allowance)
    # Its own iterator, for each further one costs every token.
    asked = _stream if spec.is_demo else _stream_with_stored_key
    return asked(spec, request, tell_wait)


async def stream_and_count(
    spec: ProviderSpec, request: CompletionRequest, bill: Bill | None
) -> AsyncGenerator[Piece | Completion, None]:
    """The same, with what it used added to the month by itself, also of an answer that breaks off.

    Raises:
        ProviderError, SpendingLimitReached: as above.
    """
    asked = estimate(json.dumps(request.messages, ensure_ascii=False))
    expected = expected_usage(asked, request.parameters.get("max_tokens"))
    usage, text_so_far = TokenCount(), ""
    async with held_beside(bill, spec, expected) as paid:
        answer = await stream(spec, request, paid.allowance if paid is not None else None)
        try:
            async with aclosing(answer):  # type: ignore[type-var]  # as below
                async for piece in answer:
                    if isinstance(piece, TokenCount):
                        usage = piece
                    elif isinstance(piece, Completion):
                        usage, text_so_far = (
                            piece.usage if piece.usage.total else usage,
                            piece.text or text_so_far,
                        )
                    else:
                        text_so_far += piece.text
                    yield piece
        finally:
            if paid is not None:
                usage = usage if usage.total else believed_usage(asked, text_so_far)
                # Also where the caller was cancelled: the provider is paid all the same.
                await asyncio.shield(in_database(charge_alone, paid, usage))


async def _check(spec: ProviderSpec, allowance: Allowance | None) -> None:
    """Refuse where a month's limit is reached.

    Raises:
        SpendingLimitReached: nothing was sent.
    """
    if allowance is None:
        return
    if allowance.shared_id != spec.shared_id:
        raise ValueError("This allowance is for another provider.")
    if allowance.reached is not None:
        await in_database(refuse, allowance, spec)


def _stream(
    spec: ProviderSpec, request: CompletionRequest, tell_wait: TellWait | None
) -> AsyncIterator[Piece | Completion]:
    answer = model_client(spec).stream(request)
    return answer if spec.limits is None else _within(spec.limits, request, answer, tell_wait)


async def _stream_with_stored_key(
    spec: ProviderSpec, request: CompletionRequest, tell_wait: TellWait | None
) -> AsyncIterator[Piece | Completion]:
    """The answer; where the key is refused and was changed meanwhile, asked for again with the new one."""
    while True:
        has_begun = False
        try:
            async with aclosing(_stream(spec, request, tell_wait)) as answer:  # type: ignore[type-var]  # as below
                async for piece in answer:
                    has_begun = True
                    yield piece
            return
        except ProviderKeyRefused as error:
            changed = None if has_begun else await in_database(with_changed_key, spec)
            if changed is None:
                await in_database(tell_admins, spec, error)
                raise refused_key(spec, error) from error
            logger.info(
                "provider_asked_with_changed_key", extra={"provider": str(spec.provider_id)}
            )
            spec = changed


async def embed(
    spec: ProviderSpec, texts: Sequence[str], *, seconds: float, bill: Bill | None
) -> Embeddings:
    """Vectors of texts, asked for as soon as the provider's limits allow it. What they used is added to the month.

    Args:
        seconds: for how long to wait in all.
        bill: who pays. None: only for a text that tries a provider.

    Raises:
        ProviderError: in all its kinds; `ProviderStalled` if it takes longer.
        SpendingLimitReached: nothing was sent.
    """
    expected = TokenCount(prompt=sum(map(estimate, texts)), is_estimate=True)
    async with held_beside(bill, spec, expected) as paid:
        await _check(spec, paid.allowance if paid is not None else None)
        found = await _embed_within(spec, texts, seconds)
        if paid is not None:
            used = TokenCount(prompt=found.tokens) if found.tokens else expected
            await in_database(charge_alone, paid, used)
    return found


async def _embed_within(spec: ProviderSpec, texts: Sequence[str], seconds: float) -> Embeddings:
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await _embed(spec, texts, seconds)
                except ProviderKeyRefused as error:
                    changed = await in_database(with_changed_key, spec)
                    if changed is None:
                        await in_database(tell_admins, spec, error)
                        raise refused_key(spec, error) from error
                    spec = changed
    except TimeoutError as error:
        raise ProviderStalled(_("The model provider did not answer in time.")) from error


async def _embed(spec: ProviderSpec, texts: Sequence[str], seconds: float) -> Embeddings:
    if spec.limits is None:
        return await model_client(spec).embed(spec.model, texts)
    async with place_at(spec.limits, seconds, None):
        return await model_client(spec).embed(spec.model, texts)


async def _within(
    limits: ProviderLimits,
    request: CompletionRequest,
    answer: AsyncIterator[Piece | Completion],
    tell_wait: TellWait | None,
) -> AsyncIterator[Piece | Completion]:
    longest = LONGEST_WAIT_SECONDS if request.is_patient else SHORT_WAIT_SECONDS
    async with place_at(limits, longest, tell_wait), aclosing(answer):  # type: ignore[type-var]  # a generator, as all clients give
        async for piece in answer:
            yield piece
