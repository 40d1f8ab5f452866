"""One request to the provider: bounded in time and size, repeated where that is safe, failures typed."""

from __future__ import annotations

import asyncio
import email.utils
import json
import random
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import httpx2
from django.utils.translation import gettext_noop as _

from mcp_servers.client.canonical import parse_json
from mcp_servers.client.errors import InvalidJson
from mcp_servers.klavis.errors import (
    KeyRefused,
    KlavisAnswerUnreadable,
    KlavisError,
    KlavisUnavailable,
    NotAccepted,
    NotThere,
    TooManyRequests,
)
from workspaces import outbound
from workspaces.words.text_values import read_whole_number

MAX_ATTEMPTS: Final = 3
FIRST_PAUSE_SECONDS: Final = 0.5
TOTAL_SECONDS: Final = 30.0
"""For all attempts of one request together, with the pauses between them."""
ATTEMPT_SECONDS: Final = 15.0
MAX_ANSWER_BYTES: Final = 10 * 2**20

_FIELD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}")
_WORTH_REPEATING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class KlavisCredentials:
    """Where the provider is, and with which key."""

    base_url: str
    api_key: str = field(repr=False)


class KlavisHttp:
    """Speaks to one base URL with one key, for the length of a block.

    Args:
        pause: waits between two attempts.
    """

    def __init__(
        self,
        connection: KlavisCredentials,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        endpoint = outbound.parse_endpoint(connection.base_url)
        self._base = str(endpoint).rstrip("/")
        self._pause = pause
        self._client = outbound.client(
            headers={"Authorization": f"Bearer {connection.api_key}"},
            bounds=outbound.Bounds(
                idle_seconds=ATTEMPT_SECONDS,
                total_seconds=ATTEMPT_SECONDS,
                body_bytes=MAX_ANSWER_BYTES,
            ),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        is_repeatable: bool | None = None,
    ) -> Any:
        """Make a request; the JSON of its answer.

        Args:
            body: unset fields, that is None, are left out.
            is_repeatable: whether asking twice does no more than asking once; by default of GET and DELETE.

        Raises:
            KlavisError: one of its kinds.
        """
        if is_repeatable is None:
            is_repeatable = method in ("GET", "DELETE")
        ends_at = time.monotonic() + TOTAL_SECONDS
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._ask_once(method, path, body, query)
            except (TooManyRequests, KlavisUnavailable) as error:
                wait = _pause_after(error, attempt)
                is_last = attempt >= MAX_ATTEMPTS or time.monotonic() + wait >= ends_at
                if is_last or not (is_repeatable or _was_not_sent(error)):
                    raise
            await self._pause(wait)

    async def _ask_once(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
    ) -> Any:
        content = None
        if body is not None:
            content = json.dumps({k: v for k, v in body.items() if v is not None}).encode()
        try:
            response = await self._client.request(
                method,
                self._base + path,
                params=dict(query) if query else None,
                content=content,
                headers={"content-type": "application/json", "accept": "application/json"},
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol):
            raise KlavisUnavailable(was_sent=False) from None
        except httpx2.TimeoutException:
            raise KlavisUnavailable(kind="timeout") from None
        except httpx2.DecodingError:
            raise KlavisAnswerUnreadable from None
        except httpx2.TransportError:
            raise KlavisUnavailable(kind="broken") from None
        if response.status_code >= 300:
            raise _failure(response)
        if not response.content.strip():
            return {}
        try:
            return parse_json(response.content, max_bytes=MAX_ANSWER_BYTES)
        except InvalidJson:
            raise KlavisAnswerUnreadable from None


def _failure(response: httpx2.Response) -> KlavisError:
    status = response.status_code
    if status in (401, 403):
        return KeyRefused()
    if status in (404, 410):
        return NotThere()
    if status == 429:
        return TooManyRequests(retry_after_seconds=_retry_after(response))
    if status in _WORTH_REPEATING or status >= 500:
        return KlavisUnavailable(kind="http_status")
    if status in (400, 409, 422):
        names = _named_fields(response.content)
        return NotAccepted(
            _("Klavis does not accept: %(names)s.") % {"names": ", ".join(names)} if names else None
        )
    return KlavisAnswerUnreadable()


def _named_fields(body: bytes) -> list[str]:
    """Which fields a validation error is about. Its texts may repeat what was sent, and are not told."""
    try:
        value = parse_json(body, max_bytes=64 * 1024)
    except InvalidJson:
        return []
    detail = value.get("detail") if isinstance(value, dict) else None
    found = []
    for item in detail if isinstance(detail, list) else []:
        places = item.get("loc") if isinstance(item, dict) else None
        last = places[-1] if isinstance(places, list) and places else None
        if isinstance(last, str) and _FIELD.fullmatch(last) and last not in found:
            found.append(last)
    return found[:5]


def _retry_after(response: httpx2.Response) -> float | None:
    """Seconds, or a date (RFC 9110, 10.2.3)."""
    text = response.headers.get("retry-after", "").strip()
    if (seconds := read_whole_number(text, most=sys.maxsize)) is not None:
        return float(seconds)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _pause_after(error: KlavisError, attempt: int) -> float:
    wanted = error.retry_after_seconds if isinstance(error, TooManyRequests) else None
    usual: float = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)
    usual *= random.uniform(0.8, 1.2)  # noqa: S311  spreads load, keeps no secret
    return max(wanted or 0.0, usual)


def _was_not_sent(error: KlavisError) -> bool:
    return isinstance(error, KlavisUnavailable) and not error.was_sent
