"""Which of our errors a provider's failure is: from its status, and from what it says. Pure.

What the other side wrote may hold its secrets, and ours: it is read here, and never told. The wordings are those
that servers send (OpenAI, Azure, vLLM, Ollama, llama.cpp, LiteLLM, OpenRouter, Anthropic's and Gemini's endpoints).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from chat.providers.errors import (
    ContentFiltered,
    ContextTooLong,
    PicturesRefused,
    ProviderCreditSpent,
    ProviderError,
    ProviderKeyRefused,
    ProviderModelUnknown,
    ProviderRateLimited,
    ProviderRefusedRequest,
    ProviderStalled,
    ProviderUnreachable,
    ToolsRefused,
)
from workspaces.words.text_values import read_whole_number
from workspaces.words.texts import gettext_noop as _
from workspaces.words.waiting_times import wait_in_words

_MOST_READ = 4_000
_LONGEST_WAIT = 366 * 86_400.0
_CONTEXT = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|exceed_context|prompt is too long|input is too long"
    r"|too long to fit|too many (input )?tokens|exceeds? the (maximum|max)[\w ]*tokens|reduce the length"
    r"|input[\w ]* tokens? exceeds|max_model_len|n_ctx|token count[\w ]*exceeds|request too large for model",
    re.I,
)
_TOOLS = re.compile(
    r"(does|do) not support (the )?(tools|tool|function)|support (for )?tool use|tool[ _-]?choice\b.*\brequires"
    r"|enable-auto-tool-choice|tool-call-parser|tools? (is|are) not supported|not support[\w ']* tools"
    r"|function call(ing|s)? (is|are)? ?not (supported|enabled)|tools param requires|unsupported[\w ':]*\btools\b"
    r"|(extra|unknown|unrecognized)[\w ':]*\btools\b",
    re.I,
)
_FILTER = re.compile(
    r"content[ _-]?(filter|management policy|policy)|responsible_?ai|moderation|safety system|flagged",
    re.I,
)
_CREDIT = re.compile(
    r"insufficient[ _]?(quota|credit|balance|funds)|billing|exceeded your current quota|more credits",
    re.I,
)
_RATE = re.compile(
    r"rate[ _-]?limit|too many requests|overloaded|throttl|resource[ _]exhausted", re.I
)
_PICTURES = re.compile(
    r"\b(image|vision|multi-?modal|input modalit|mmproj)|content(\W+\w+){0,3} (must|should) be a string"
    r"|(expected|valid) (a )?string",
    re.I,
)
_MODEL = re.compile(r"model[\w .:/'\"`-]* (not found|does not exist)|model_not_found", re.I)
_KEY = re.compile(r"api[ _]?key|unauthori[sz]ed|authentication", re.I)
_BAD_KEY = re.compile(r"api[ _]?key[ _](not valid|invalid)", re.I)
"""As Gemini's endpoint tells it, with the status of a bad request."""
_NOTHING_FOUND = _(
    "The model provider found nothing under this address and model (status 404). A workspace admin can check both."
)
_TOKEN_LIMIT = re.compile(
    r"(?:context length(?: is(?: only)?| of)?|\"n_ctx\"|limit of|>)\D{0,3}(\d{3,8})",
    re.I,
)


@dataclass(frozen=True, slots=True)
class ProviderMessage:
    """What a provider says of its failure."""

    words: str
    status: int | None
    """Its own, where an error in the middle of a stream names one."""


def read_error(body: object) -> ProviderMessage:
    """The words of an error body, whatever its form."""
    if isinstance(body, list) and body:
        body = body[0]  # Gemini's form
    error = body.get("error") if isinstance(body, Mapping) else body
    if isinstance(error, str):
        return ProviderMessage(error[:_MOST_READ], None)
    if not isinstance(error, Mapping):
        # vLLM's older form: the error is the body itself.
        error = body if isinstance(body, Mapping) else {}
    status = next(
        (number for name in ("code", "status") if (number := _status(error.get(name)))), None
    )
    return ProviderMessage(json.dumps(error, ensure_ascii=False, default=str)[:_MOST_READ], status)


def error_of(
    answer: ProviderMessage,
    *,
    status: int | None = None,
    wait: float | None = None,
    has_tools: bool = False,
    has_pictures: bool = False,
    details: Mapping[str, Any] | None = None,
) -> ProviderError:
    """The kind of failure, in our words.

    Args:
        status: that of the response; None in the middle of a stream.
        wait: for how many seconds the provider wants to be left alone.
        has_tools: the request offered tools.
        has_pictures: the request showed pictures.
    """
    words = answer.words
    status = answer.status if status is None else status
    more = {**(details or {}), **({"status": status} if status else {})}
    is_refusal = (
        status is None or status in (400, 402, 403, 404, 405, 413, 422, 429) or status >= 500
    )
    if is_refusal and has_tools and status != 429 and _TOOLS.search(words):
        return ToolsRefused(details=more)
    if is_refusal and has_pictures and status != 429 and _PICTURES.search(words):
        return PicturesRefused(details=more)
    if is_refusal and _CONTEXT.search(words) and not _RATE.search(words):
        return ContextTooLong(details={**more, **_limit_in(words)})
    if is_refusal and status != 429 and _FILTER.search(words):
        return ContentFiltered(details=more)
    if status == 402 or (is_refusal and _CREDIT.search(words)):
        return ProviderCreditSpent(details=more)
    if status in (429, 529) or (status in (None, 503) and _RATE.search(words)):
        return _rate_limited(wait, more)
    if status in (401, 403) or (status == 400 and _BAD_KEY.search(words)):
        return ProviderKeyRefused(details=more)
    if status == 404 or _MODEL.search(words):
        is_told = _MODEL.search(words) is not None
        return ProviderModelUnknown(None if is_told else _NOTHING_FOUND, details=more)
    if status == 413:
        return ContextTooLong(details=more)
    if status in (408, 504):
        return ProviderStalled(_("The model provider did not answer in time."), details=more)
    if status is None and _KEY.search(words):
        return ProviderKeyRefused(details=more)
    if status is None or status >= 500:
        return ProviderUnreachable(
            _("The model provider returned an error. Try again in a moment."), details=more
        )
    message = _("The model provider did not accept the request (status %(status)s).") % {
        "status": status
    }
    return ProviderRefusedRequest(message, details=more)


def connection_failure(base_url: str, *, is_platforms: bool) -> ProviderUnreachable:
    """Say where no connection came about. Of an address, only host and port: its path or query may hold secrets.

    Args:
        is_platforms: it is the platform's address, which workspaces never read.
    """
    parts = urlsplit(base_url)
    if is_platforms or not parts.hostname:
        return ProviderUnreachable()
    host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    message = _(
        "Trellis can't connect to the model provider at %(host)s. Try again in a moment. If it stays so, a workspace"
        " admin can check whether it is up, and its address."
    )
    return ProviderUnreachable(message % {"host": host})


def says_model_unknown(answer: ProviderMessage) -> bool:
    """Whether it says that there is no such model."""
    return _MODEL.search(answer.words) is not None


def wait_of(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """For how many seconds a response asks to be left alone: milliseconds, seconds or a date. None: it does not say."""
    try:
        if headers.get("retry-after-ms"):
            return _seconds(float(headers["retry-after-ms"]) / 1000)
    except ValueError:
        pass
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        return _seconds(float(value))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return _seconds((until - (now or datetime.now(UTC))).total_seconds())


def _seconds(value: float) -> float | None:
    return min(_LONGEST_WAIT, max(0.0, value)) if math.isfinite(value) else None


def _rate_limited(wait: float | None, details: Mapping[str, Any]) -> ProviderError:
    with_wait = dict(details)
    if wait is not None:
        with_wait["wait"] = wait
    message = _("The model provider is receiving too many requests. Try again %(wait)s.") % {
        "wait": wait_in_words(wait or 0.0)
    }
    return ProviderRateLimited(message, details=with_wait)


def _limit_in(words: str) -> dict[str, int]:
    """How many tokens the model reads, where the refusal names the number."""
    found = _TOKEN_LIMIT.search(words)
    return {"limit": int(found.group(1))} if found else {}


def _status(value: object) -> int | None:
    if isinstance(value, str):
        value = read_whole_number(value, most=599)
    is_status = isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600
    return value if is_status and isinstance(value, int) else None
