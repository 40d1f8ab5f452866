"""From the bytes of a response to the pieces of an answer, or to what went wrong. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from chat.providers import finish_reasons
from chat.providers.accumulator import Accumulator, AnswerTooLong, CallsUnclear
from chat.providers.base import Completion, Piece
from chat.providers.errors import (
    ContentFiltered,
    ProviderBadAnswer,
    ProviderError,
    ProviderNoAnswer,
    ProviderStalled,
    ProviderUnreachable,
)
from chat.providers.event_stream import EventStreamReader, EventTooLong
from chat.providers.failures import error_of, read_error
from chat.providers.responses_api import ResponseTranslator
from workspaces.words.texts import gettext_noop as _

_DONE = "[DONE]"
EVENT_TOO_LONG = _(
    "The model provider sent a single event that is larger than Trellis reads, so the answer was cut off."
    " Ask for a shorter answer, or try again."
)
_CALLS_UNCLEAR = _(
    "The model's tool calls contradict each other, so none of them was made. Try again, or use another model."
)


class AnswerReader:
    """Feed it a response's bytes until `is_done`, or until they end; then close it."""

    def __init__(
        self,
        *,
        has_tools: bool = False,
        translator: ResponseTranslator | None = None,
        splits_thoughts: bool = True,
    ) -> None:
        """Args:
        splits_thoughts: False: the model thinks nothing, so marks of thinking in its text are text.
        """
        self._translator = translator
        self._events = EventStreamReader()
        self._accumulator = Accumulator(splits_thoughts=splits_thoughts)
        self._usage = self._accumulator.usage
        self._has_tools = has_tools
        self.is_done = False
        """The server has said that nothing more comes."""

    @property
    def has_content(self) -> bool:
        """Whether anything of an answer has come."""
        return self._accumulator.has_content

    @property
    def has_ended(self) -> bool:
        """The model has said why it ends: the answer is whole, whatever becomes of the connection."""
        return self._accumulator.finish_reason in finish_reasons.WHOLE

    @property
    def progress(self) -> int:
        """Grows with the answer, and with nothing else."""
        return self._accumulator.progress

    def feed(self, chunk: bytes) -> Iterator[Piece]:
        """What these bytes of an event stream add.

        Raises:
            ProviderError: they hold an error, or are no answer.
        """
        try:
            for data in self._events.feed(chunk):
                yield from self._take(data)
                if self.is_done:
                    return
        except EventTooLong as error:
            raise ProviderBadAnswer(EVENT_TOO_LONG) from error

    def feed_whole(self, body: bytes) -> Iterator[Piece]:
        """The answer of a server that does not stream, or that found out too late that it cannot answer."""
        yield from self._take(body.decode("utf-8", "replace"))
        self.is_done = True

    def close(self) -> Iterator[Piece]:
        """The rest, once the bytes have ended.

        Raises:
            ProviderError: this was not the end of an answer.
        """
        if not self.is_done:
            try:
                for data in self._events.close():
                    yield from self._take(data)
            except EventTooLong as error:
                raise ProviderBadAnswer(EVENT_TOO_LONG) from error
            except ProviderError:
                if not self.has_ended:
                    raise
        try:
            yield from self._accumulator.close()
        except CallsUnclear as error:
            raise ProviderBadAnswer(_CALLS_UNCLEAR) from error
        self._check_end()

    def completion(self) -> Completion:
        """The whole answer."""
        return self._accumulator.completion(self._events.ignored)

    def _take(self, data: str) -> tuple[Piece, ...]:
        if len(data) < 20:
            word = data.strip()
            if word == _DONE:
                self.is_done = True
            if word in (_DONE, "null", ""):
                return ()  # the latter two are signs of life
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise (ProviderBadAnswer if self.has_content else ProviderNoAnswer) from error
        if isinstance(chunk, list) and chunk:
            chunk = chunk[0]  # an error in Gemini's form
        if not isinstance(chunk, Mapping):
            raise ProviderBadAnswer
        if self._translator is None:
            return self._take_chunk(chunk)
        pieces = tuple(
            piece
            for translated in self._translator.take(chunk)
            for piece in self._take_chunk(translated)
        )
        self.is_done = self.is_done or self._translator.is_done
        return pieces

    def _take_chunk(self, chunk: Mapping[str, Any]) -> tuple[Piece, ...]:
        if chunk.get("object") == "error" or (chunk.get("error") and "jsonrpc" not in chunk):
            raise error_of(read_error(chunk), has_tools=self._has_tools)
        try:
            pieces: tuple[Piece, ...] = self._accumulator.take(chunk)
        except AnswerTooLong as error:
            raise ProviderBadAnswer(
                _("The model's answer did not end, so it was cut off.")
            ) from error
        except CallsUnclear as error:
            raise ProviderBadAnswer(_CALLS_UNCLEAR) from error
        except RecursionError as error:
            raise ProviderBadAnswer from error
        if self._accumulator.usage is not self._usage:
            self._usage = self._accumulator.usage
            return (*pieces, self._usage)
        return pieces

    def _check_end(self) -> None:
        """An answer ends with its reason, or at least with the word that nothing more comes."""
        answer = self._accumulator
        if not answer.finish_reason and self.is_done and answer.has_content:
            answer.finish_reason = finish_reasons.STOP
        if answer.finish_reason == finish_reasons.FILTERED:
            raise ContentFiltered
        if answer.finish_reason == finish_reasons.FAILED:
            raise ProviderUnreachable(
                _(
                    "The model provider reported an error in the middle of its answer."
                    " Try again in a moment."
                )
            )
        if not answer.finish_reason:
            if answer.has_content:
                raise ProviderStalled(_("The model's answer broke off."))
            raise ProviderNoAnswer
