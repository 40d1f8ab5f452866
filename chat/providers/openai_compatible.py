"""Any OpenAI-compatible endpoint: our request over the guarded HTTP client, and our own reader of its stream.

A client library would walk every message and every tool through its types, and make objects of every token: more work
than all the rest of a turn. Requests are repeated only before anything of an answer came, a few times, and as long as
the provider asks.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx2
from django.utils.translation import gettext_noop as _

from chat.providers.adapting import (
    NO_STREAM,
    NO_SUMMARY,
    PLAIN_SCHEMAS,
    RESPONSES,
    adapt,
    habits_in_refusal,
    habits_of,
)
from chat.providers.answer_reader import EVENT_TOO_LONG, AnswerReader
from chat.providers.base import (
    Completion,
    CompletionRequest,
    Embeddings,
    Piece,
    ProviderSpec,
)
from chat.providers.echoed_fields import NO_ENCRYPTED_THOUGHTS
from chat.providers.embeddings import embedding_body, read_embeddings
from chat.providers.errors import (
    ProviderBadAnswer,
    ProviderError,
    ProviderModelUnknown,
    ProviderNoAnswer,
    ProviderRateLimited,
    ProviderRefusedRequest,
    ProviderSilent,
    ProviderStalled,
    ProviderUnreachable,
)
from chat.providers.failures import (
    connection_failure,
    error_of,
    read_error,
    says_model_unknown,
    wait_of,
)
from chat.providers.responses_api import ResponseTranslator, to_responses
from chat.tools.offered import plain_function, to_json
from workspaces import outbound

logger = logging.getLogger(__name__)

_NO_ANSWER_IN_TIME = ProviderSilent.default_message
_WEB_PAGE = _(
    "A web page came instead of the model's answer: the address is not the model provider's, or a proxy or sign-in"
    " page stands before it. A workspace admin can check the address."
)
_ELSEWHERE = _(
    "The model provider's address sends Trellis elsewhere, which it does not follow. A workspace admin can check the"
    " address."
)
FIRST_PIECE_SECONDS = 120.0
"""A local model may have to be loaded first."""
BETWEEN_PIECES_SECONDS = 60.0
WHOLE_ANSWER_SECONDS = 600.0
"""Of a model that does not stream."""
AFTER_END_SECONDS = 5.0
"""For the token counts, which come behind the end of the answer, or never."""
LONGEST_WAIT_SECONDS = 20.0
"""A provider that wants to be left alone for longer is not waited for; the person is told when to come back."""
MOST_ATTEMPTS = 3
PAUSE_SECONDS = 1.0
"""Before another attempt where the provider does not say how long; then twice as long."""
_CONNECT_SECONDS = 15.0
_MOST_BODY = 4 * 1024 * 1024


class OpenAICompatible:
    """One endpoint, on one shared HTTP client."""

    def __init__(self, spec: ProviderSpec, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._address = spec.address
        self._unreached = partial(connection_failure, spec.base_url, is_platforms=spec.is_platforms)
        # Servers without keys ignore it; some insist on the header.
        key = spec.reveal_key("model request") or "none"
        self._headers = {
            "accept": "application/json",
            "authorization": f"Bearer {key}",
            "content-type": "application/json",
        }
        self._habits: dict[str, frozenset[str]] = {}
        """What this endpoint's models were found not to take; the endpoint's client is short-lived."""

    async def stream(self, request: CompletionRequest) -> AsyncIterator[Piece | Completion]:
        """Answer piece by piece, and at last with the whole.

        Raises:
            ProviderError: in all its kinds.
        """
        attempt = 0
        cause: Exception
        first: _Refused | None = None
        while True:
            is_responses = RESPONSES in self._habits.get(request.model, frozenset())
            reader = AnswerReader(
                has_tools=bool(request.tools),
                translator=ResponseTranslator() if is_responses else None,
                splits_thoughts=request.reasons is not False,
            )
            try:
                async for piece in self._pieces(request, reader):
                    yield piece
                break
            except _Refused as error:
                if self._learns(request, error):
                    first = error
                    continue
                # Where the other form is not there either, the first refusal says more.
                answered = first if first is not None and error.status in (404, 405) else error
                failure, cause = _status_error(answered, request), answered
            except Exception as error:  # noqa: BLE001 - what is not known goes on its way
                failure, cause = _failure_of(error, self._unreached()), error
            attempt += 1
            is_over = reader.has_content or not request.is_patient
            pause = None if is_over else _pause_before(failure, attempt)
            if pause is None:
                raise failure from cause
            logger.info("provider_asked_again", extra={"code": failure.code, "pause": pause})
            await asyncio.sleep(pause)
        whole = reader.completion()
        if whole.ignored_events:
            logger.info("provider_events_ignored", extra={"count": whole.ignored_events})
        yield whole

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """Ask once for vectors of texts. The caller says how long it waits.

        Raises:
            ProviderError: in all its kinds.
        """
        body = to_json(embedding_body(model, texts)).encode()
        try:
            async with self._answering(self._address("/embeddings"), body) as response:
                found = await _whole_body(response)
        except _Refused as error:
            raise _embedding_error(error, model) from error
        except Exception as error:
            raise _failure_of(error, self._unreached()) from error
        return await asyncio.to_thread(read_embeddings, found, len(texts))

    async def _pieces(
        self, request: CompletionRequest, reader: AnswerReader
    ) -> AsyncIterator[Piece]:
        try:
            async for piece in self._pieces_received(request, reader):
                yield piece
        except (TimeoutError, httpx2.HTTPError, ProviderError) as error:
            is_silent = isinstance(error, TimeoutError | httpx2.TimeoutException)
            if is_silent and not reader.progress:
                if isinstance(error, _Silent):
                    raise ProviderSilent from error
                raise ProviderStalled(_NO_ANSWER_IN_TIME) from error
            if not reader.has_ended:
                raise
            logger.info("provider_broke_off_after_the_end", extra={"error": type(error).__name__})
        for piece in reader.close():
            yield piece

    async def _pieces_received(
        self, request: CompletionRequest, reader: AnswerReader
    ) -> AsyncIterator[Piece]:
        loop = asyncio.get_running_loop()
        streams = NO_STREAM not in self._habits.get(request.model, frozenset())
        first_seconds = FIRST_PIECE_SECONDS if streams else WHOLE_ANSWER_SECONDS
        # What does not stream is silent until it is whole.
        silent_seconds = request.silent_seconds if streams else None
        async with (
            asyncio.timeout(first_seconds) as deadline,
            _given_up_after(silent_seconds) as sign_of_life,
            self._answering(*self._form_of(request), seconds=first_seconds) as response,
        ):
            kind = response.headers.get("content-type", "").lower()
            if "application/json" in kind:
                for piece in reader.feed_whole(await _whole_body(response)):
                    yield piece
            elif "text/event-stream" not in kind:
                raise ProviderNoAnswer(_WEB_PAGE if _is_page(response) else None)
            else:
                async for chunk in response.aiter_bytes():
                    sign_of_life()
                    progress, had_ended = reader.progress, reader.has_ended
                    for piece in reader.feed(chunk):
                        yield piece
                    if reader.is_done:
                        break
                    if reader.has_ended and not had_ended:
                        deadline.reschedule(loop.time() + AFTER_END_SECONDS)
                    elif reader.progress != progress:
                        # Comments and empty chunks are no progress: only content moves this.
                        between = AFTER_END_SECONDS if had_ended else BETWEEN_PIECES_SECONDS
                        deadline.reschedule(loop.time() + between)

    def _form_of(self, request: CompletionRequest) -> tuple[str, bytes]:
        """Where the request goes, and its body, as this model takes it."""
        habits = self._habits.get(request.model, frozenset())
        arguments = adapt(_arguments(request), habits | habits_of(request.reasons))
        tools = request.tools
        if PLAIN_SCHEMAS in habits:
            tools = [plain_function(tool) for tool in tools]
        if RESPONSES in habits:
            asked = to_responses(
                arguments,
                tools,
                wants_thoughts=NO_ENCRYPTED_THOUGHTS not in habits,
                wants_summary=NO_SUMMARY not in habits,
            )
            return self._address("/responses"), to_json(asked).encode()
        return self._address("/chat/completions"), _body(arguments, tools)

    @asynccontextmanager
    async def _answering(
        self, url: str, body: bytes, *, seconds: float = FIRST_PIECE_SECONDS
    ) -> AsyncIterator[httpx2.Response]:
        """The response, once its head has come.

        Args:
            seconds: for how long nothing may come.

        Raises:
            _Unreached: no head has come.
            _Refused: its status is no success.
        """
        timeout = httpx2.Timeout(seconds, connect=_CONNECT_SECONDS)
        request = self._http.build_request(
            "POST", url, content=body, headers=self._headers, timeout=timeout
        )
        try:
            response = await self._http.send(request, stream=True)
        except Exception as error:
            raise _Unreached from error
        try:
            if response.is_redirect:
                raise ProviderNoAnswer(_ELSEWHERE)
            if response.status_code == 403 and _is_page(response):
                # A wall before the provider: it has not even seen the key.
                raise ProviderNoAnswer(_WEB_PAGE)
            if not response.is_success:
                raise _Refused(response, _read_json(await _whole_body(response)))
            yield response
        finally:
            await response.aclose()

    def _learns(self, request: CompletionRequest, error: _Refused) -> bool:
        """Whether the request can be sent in a form that this model takes; then it is from now on."""
        known = self._habits.get(request.model, frozenset())
        if RESPONSES in known and error.status in (404, 405):
            # There is no other form after all: the next request begins with the usual one.
            self._habits[request.model] = known - {RESPONSES}
            return False
        refusal = read_error(error.body)
        now = known | habits_in_refusal(
            refusal.words,
            _arguments(request),
            error.status,
            has_tools=bool(request.tools),
            is_responses=RESPONSES in known,
            is_of_address=_is_of_address(error, request),
        )
        self._habits[request.model] = now
        return now != known


class _Silent(TimeoutError):
    """Nothing at all has come."""


@asynccontextmanager
async def _given_up_after(seconds: float | None) -> AsyncIterator[Callable[[], None]]:
    """End what is within unless what it gives is called in time.

    Raises:
        _Silent: the time is over.
    """
    try:
        async with asyncio.timeout(seconds) as limit:

            def sign_of_life() -> None:
                if limit.when() is not None:
                    limit.reschedule(None)

            yield sign_of_life
    except TimeoutError as error:
        if limit.expired():
            raise _Silent from error
        raise


class _Unreached(Exception):
    """Nothing of a response has come; the cause says why."""


class _Refused(Exception):
    """The response's status is no success."""

    def __init__(self, response: httpx2.Response, body: object) -> None:
        super().__init__(f"status {response.status_code}")
        self.status = response.status_code
        self.headers = response.headers
        self.body = body


def _is_page(response: httpx2.Response) -> bool:
    return "html" in response.headers.get("content-type", "").lower()


def _read_json(body: bytes) -> object:
    """An error body: as it is where it is no JSON."""
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


async def _whole_body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MOST_BODY:
            raise ProviderBadAnswer(EVENT_TOO_LONG)
    return bytes(body)


def _arguments(request: CompletionRequest) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": request.model,
        "messages": list(request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        **request.parameters,
    }
    if request.tools and request.tool_choice is not None:
        arguments["tool_choice"] = request.tool_choice
    return arguments


def _body(arguments: dict[str, Any], tools: Sequence[str]) -> bytes:
    """The request as it is sent, with tools that are JSON already."""
    text = to_json(arguments)
    if tools:
        text = f'{text[:-1]},"tools":[{",".join(tools)}]}}'
    return text.encode()


def _pause_before(failure: ProviderError, attempt: int) -> float | None:
    """For how long to wait before the next attempt; None: there is none."""
    if isinstance(failure, ProviderRateLimited):
        wait = failure.details.get("wait")
        pause = (
            float(wait) if isinstance(wait, (int, float)) else PAUSE_SECONDS * 2 ** (attempt - 1)
        )
        return pause if attempt < MOST_ATTEMPTS and pause <= LONGEST_WAIT_SECONDS else None
    return PAUSE_SECONDS / 2 if isinstance(failure, ProviderUnreachable) and attempt < 2 else None


def _failure_of(error: Exception, where: ProviderUnreachable) -> ProviderError:
    """The kind of failure, in our words: what the other side wrote may hold its secrets.

    Args:
        where: what is said if no connection came about.

    Raises:
        Exception: what is no failure of the provider's is let through.
    """
    match error:
        case ProviderError():
            return error
        case _Unreached(__cause__=httpx2.TimeoutException()):
            return ProviderStalled(_NO_ANSWER_IN_TIME)
        case _Unreached(__cause__=outbound.NetworkRefused()):
            logger.warning("The model provider's address: %s", outbound.NETWORK_REFUSED)
            return ProviderUnreachable(
                _(
                    "Trellis is not allowed to connect to the model provider's network. Ask an administrator to allow it."
                )
            )
        case _Unreached():
            return where
        case outbound.ResponseTooLarge():
            return ProviderBadAnswer(EVENT_TOO_LONG)
        case TimeoutError() | httpx2.TimeoutException():
            return ProviderStalled()
        case httpx2.HTTPError():
            return ProviderUnreachable(_("The connection to the model provider broke."))
        case _:
            raise error


def _is_of_address(error: _Refused, request: CompletionRequest) -> bool:
    """Whether a refusal says nothing else than that there is nothing at this address."""
    is_plain = isinstance(
        _status_error(error, request), (ProviderModelUnknown, ProviderRefusedRequest)
    )
    return is_plain and not says_model_unknown(read_error(error.body))


def _embedding_error(error: _Refused, model: str) -> ProviderError:
    found = error_of(
        read_error(error.body), status=error.status, wait=wait_of(error.headers), details={}
    )
    if isinstance(found, ProviderModelUnknown):
        message = _("The model provider does not offer the embedding model “%(model)s”.") % {
            "model": model
        }
        return ProviderModelUnknown(message, details=found.details)
    return found


def _status_error(error: _Refused, request: CompletionRequest) -> ProviderError:
    return error_of(
        read_error(error.body),
        status=error.status,
        wait=wait_of(error.headers),
        has_tools=bool(request.tools),
        has_pictures=request.has_pictures,
        details={"request_id": error.headers.get("x-request-id", "")[:100]},
    )
