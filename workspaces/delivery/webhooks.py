"""Webhooks: posting a signed body, so that a program knows who speaks and that nothing was changed.

Source: Standard Webhooks, "Webhook metadata" and "Signature scheme": HMAC-SHA256 over `id.timestamp.body`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import secrets
import sys
import time
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import httpx2

from workspaces import outbound
from workspaces.words.text_values import read_whole_number

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 10.0
MOST_ANSWER_BYTES: Final = 64 * 1024
_REST_SECONDS: Final = 1.0
"""For the rest of an answer whose status is known."""
Client = httpx2.AsyncClient
"""What posts them."""
_PREFIX: Final = "whsec_"
_MOST_PAUSE_SECONDS: Final = 3600.0


class DeliveryRefused(Exception):
    """The other side did not take what it was sent; the words are for people, and tell nothing of a network.

    Args:
        status: of its answer, if there was one.
        retry_after: seconds, where it asked for a pause.
    """

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        self.message = message
        self.status = status
        self.retry_after = retry_after
        super().__init__(message)


def new_secret() -> str:
    """A signing secret of 192 random bits, as it is shown once."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(24)).decode()


def signed_headers(*, secret: str, event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that go with a body.

    Args:
        secret: as `new_secret` gave it.
        timestamp: seconds since 1970, of this attempt.
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signed = f"{event_id}.{timestamp}.".encode() + body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{digest}",
    }


def client() -> Client:
    """A client for `post_message`."""
    bounds = outbound.Bounds(
        connect_seconds=CONNECT_SECONDS,
        total_seconds=ANSWER_SECONDS,
        body_bytes=MOST_ANSWER_BYTES,
    )
    return outbound.client(bounds=bounds)


async def post_message(
    client: Client,
    url: str,
    *,
    message_id: UUID,
    payload: Mapping[str, Any],
    secret: str,
) -> None:
    """Post one signed message, with its id.

    Raises:
        DeliveryRefused: the program did not say yes in time.
    """
    body = json.dumps({"id": str(message_id), **payload}, separators=(",", ":")).encode()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await post_signed(client, url, body, event_id=str(message_id), secret=secret)
    except TimeoutError as error:
        raise DeliveryRefused("There was no answer in time.") from error


async def post_signed(client: Client, url: str, body: bytes, *, event_id: str, secret: str) -> None:
    """Post JSON with its signature.

    Raises:
        DeliveryRefused: the program did not say yes.
    """
    signed = signed_headers(secret=secret, event_id=event_id, timestamp=int(time.time()), body=body)
    await post(client, url, body, {**signed, "content-type": "application/json"})


async def post(
    client: Client, url: str, body: bytes, headers: Mapping[str, str], *, reads_answer: bool = False
) -> httpx2.Response:
    """Post a body; the answer, if it is a yes. Its status says so, whatever else it holds.

    Args:
        reads_answer: the body of a yes is needed, too.

    Raises:
        DeliveryRefused: it is none, or there was none.
    """
    try:
        async with client.stream(
            "POST",
            url,
            content=body,
            headers=dict(headers),
            extensions={outbound.STATUS_FIRST: True},
        ) as answer:
            if reads_answer and answer.is_success:
                await answer.aread()
            else:
                await _use_up(answer)
    except httpx2.TimeoutException as error:
        raise DeliveryRefused("There was no answer in time.") from error
    except outbound.NetworkRefused as error:
        raise DeliveryRefused(outbound.NETWORK_REFUSED) from error
    except (httpx2.RemoteProtocolError, httpx2.ReadError) as error:
        raise DeliveryRefused(
            "It closed the connection without an answer, or did not answer in HTTP."
        ) from error
    except httpx2.DecodingError as error:
        raise DeliveryRefused(
            "Its answer was compressed or too large, so it was not read."
        ) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise DeliveryRefused("It could not be reached.") from error
    if not 200 <= answer.status_code < 300:
        fault = f"It answered with status {answer.status_code}."
        if answer.has_redirect_location:
            fault += " Trellis follows no redirects. Enter the address that it leads to."
        raise DeliveryRefused(
            fault,
            status=answer.status_code,
            retry_after=_pause(answer.headers.get("retry-after", "")),
        )
    return answer


async def _use_up(answer: httpx2.Response) -> None:
    """Read what nobody needs, so that the connection serves again. One that goes on for long is closed instead."""
    with contextlib.suppress(httpx2.HTTPError, TimeoutError):
        async with asyncio.timeout(_REST_SECONDS):
            await answer.aread()


def _pause(text: str) -> float | None:
    seconds = read_whole_number(text, most=sys.maxsize)
    return None if seconds is None else min(float(seconds), _MOST_PAUSE_SECONDS)
