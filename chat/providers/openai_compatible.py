"""Any OpenAI-compatible endpoint, by the openai client and our own reader of its stream.

The client brings keys, headers, retries before the first byte and typed errors. The stream is read
by us: the client's chunk objects cost more than all the rest of relaying a token, and its
accumulating helper breaks on streams of common servers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import openai
from openai import AsyncOpenAI
from openai._response import AsyncAPIResponse

from chat.providers.accumulator import Accumulator
from chat.providers.base import Completion, CompletionRequest, ProviderSpec, TextPiece
from chat.providers.errors import (
    ContextTooLong,
    ProviderBadAnswer,
    ProviderError,
    ProviderKeyRefused,
    ProviderModelUnknown,
    ProviderRateLimited,
    ProviderRefusedRequest,
    ProviderStalled,
    ProviderUnreachable,
)
from chat.providers.event_stream import EventStreamReader, EventTooLong

FIRST_PIECE_SECONDS = 120.0
"""A local model may have to be loaded first."""
BETWEEN_PIECES_SECONDS = 60.0
_CONNECT_SECONDS = 15.0


class OpenAICompatible:
    """One endpoint, on one shared HTTP client."""

    def __init__(self, spec: ProviderSpec, http: httpx2.AsyncClient) -> None:
        self._client = AsyncOpenAI(
            base_url=spec.base_url,
            # The client insists on a key; servers without keys ignore it.
            api_key=spec.api_key.reveal("model request") if spec.api_key else "none",
            http_client=http,
            max_retries=1,
            timeout=httpx2.Timeout(
                FIRST_PIECE_SECONDS, connect=_CONNECT_SECONDS, read=FIRST_PIECE_SECONDS
            ),
        )

    async def stream(self, request: CompletionRequest) -> AsyncIterator[TextPiece | Completion]:
        """Answer piece by piece, and at last with the whole.

        Raises:
            ProviderError: in all its kinds.
        """
        accumulator = Accumulator()
        try:
            async for text in self._pieces(request, accumulator):
                yield TextPiece(text)
        except ProviderError:
            raise
        except TimeoutError as error:
            raise ProviderStalled from error
        except openai.OpenAIError as error:
            raise _provider_error(error) from error
        except httpx2.TimeoutException as error:
            raise ProviderStalled from error
        except httpx2.HTTPError as error:
            raise ProviderUnreachable from error
        yield accumulator.completion()

    async def _pieces(
        self, request: CompletionRequest, accumulator: Accumulator
    ) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        async with (
            asyncio.timeout(FIRST_PIECE_SECONDS) as deadline,
            self._client.chat.completions.with_streaming_response.create(
                **_arguments(request)
            ) as response,
        ):
            if "text/event-stream" not in response.headers.get("content-type", ""):
                raise ProviderBadAnswer
            async for data in _events(response):
                had_content = accumulator.has_content
                text = _take(data, accumulator)
                if text or accumulator.has_content != had_content:
                    # Comments and empty chunks are no progress: only content moves this.
                    deadline.reschedule(loop.time() + BETWEEN_PIECES_SECONDS)
                if text:
                    yield text
        if not accumulator.finish_reason:
            # Cut off without an error: an answer ends with its reason.
            if accumulator.has_content:
                raise ProviderStalled("The model's answer broke off.")
            raise ProviderBadAnswer


async def _events(response: AsyncAPIResponse[Any]) -> AsyncIterator[str]:
    """The data of each event, up to the one that says that no more come."""
    reader = EventStreamReader()
    try:
        async for chunk in response.iter_bytes():
            for data in reader.feed(chunk):
                if data == "[DONE]":
                    return
                yield data
        for data in reader.close():
            if data != "[DONE]":
                yield data
    except EventTooLong as error:
        raise ProviderBadAnswer from error


def _arguments(request: CompletionRequest) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": request.model,
        "messages": list(request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        **request.parameters,
    }
    if request.tools:
        arguments["tools"] = list(request.tools)
        if request.tool_choice is not None:
            arguments["tool_choice"] = request.tool_choice
    return arguments


def _take(data: str, accumulator: Accumulator) -> str:
    try:
        chunk = json.loads(data)
    except ValueError as error:
        raise ProviderBadAnswer from error
    if not isinstance(chunk, Mapping):
        raise ProviderBadAnswer
    if chunk.get("error"):
        raise _error_in_stream(chunk["error"])
    return accumulator.take(chunk)


def _error_in_stream(error: object) -> ProviderError:
    code = str(error.get("code") or error.get("type") or "") if isinstance(error, Mapping) else ""
    if "rate" in code or code == "429":
        return ProviderRateLimited()
    if "context" in code:
        return ContextTooLong()
    return ProviderRefusedRequest(details={"code": code[:100]})


def _provider_error(error: openai.OpenAIError) -> ProviderError:
    """The kind of failure, in our words: what the other side wrote may hold its secrets."""
    if isinstance(error, openai.APITimeoutError):
        return ProviderStalled("The model provider did not answer in time.")
    if isinstance(error, openai.APIConnectionError):
        return ProviderUnreachable()
    if isinstance(error, openai.APIStatusError):
        return _status_error(error)
    return ProviderBadAnswer()


def _status_error(error: openai.APIStatusError) -> ProviderError:
    status = error.status_code
    details = {"status": status, "request_id": str(error.request_id or "")[:100]}
    if status in (401, 403):
        return ProviderKeyRefused(details=details)
    if status == 404:
        return ProviderModelUnknown(details=details)
    if status == 429:
        wait = error.response.headers.get("retry-after", "")
        when = f" Try again in {wait} seconds." if wait.isdigit() else " Try again in a moment."
        message = "The model provider is receiving too many requests." + when
        return ProviderRateLimited(message, details=details)
    code = str(getattr(error, "code", "") or "")
    if status in (400, 413, 422) and ("context" in code or "context length" in str(error).lower()):
        return ContextTooLong(details=details)
    if status >= 500:
        return ProviderUnreachable("The model provider has a problem of its own.", details=details)
    message = f"The model provider did not accept the request (status {status})."
    return ProviderRefusedRequest(message, details=details)
