"""Frames of the socket, as text: what comes in is bounded and JSON; what piles up on its way out is joined. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from chat.wire.events import CommandFailed, encode, utf16_length
from mcp_servers.client.canonical import check_json
from mcp_servers.client.errors import InvalidJson
from workspaces.errors import InvalidInput
from workspaces.words.text_values import DoubledKey, object_of

LARGEST_FRAME_BYTES = 512 * 1024
"""The longest message fits in it, in whatever script."""
_DELTAS = ('{"type":"text.delta"', '{"type":"reasoning.delta"')


class MalformedFrame(Exception):
    """Not a message of ours at all."""


def flood_frame() -> str:
    """What a page is told that sends more than it may, before its socket closes."""
    failed = CommandFailed(ref=None, code="rate_limited", message=_("Too many messages."))
    return encode(failed.as_json())


def parse_frame(text: str | None) -> object:
    """The JSON of a frame that has come in.

    Raises:
        MalformedFrame: binary, too long, or no JSON.
        InvalidInput: an object has the same key twice.
    """
    if text is None:
        raise MalformedFrame(_("Send text messages. Other messages are not supported."))
    if len(text) > LARGEST_FRAME_BYTES or len(text.encode()) > LARGEST_FRAME_BYTES:
        raise MalformedFrame(_("This message is too long."))
    try:
        return json.loads(text, object_pairs_hook=object_of)
    except DoubledKey as error:
        raise InvalidInput(
            _("This message cannot be used: %(error)s") % {"error": error}
        ) from error
    except (ValueError, RecursionError) as error:
        raise MalformedFrame(_("This message is not JSON.")) from error


def check_frame(content: object) -> None:
    """Make sure that what came in can be stored.

    Raises:
        InvalidInput: a NUL or half a character in a text, nested too deeply, or a number that is too large.
    """
    try:
        check_json(content)
    except InvalidJson as error:
        raise InvalidInput(
            _("This message cannot be stored: %(message)s.") % {"message": error.message}
        ) from error


def join_deltas(frames: Iterable[str]) -> list[str]:
    """The same frames with pieces of one text that follow each other made one.

    Only neighbours are joined, so the order in which things are told stays as it was.
    """
    joined: list[str] = []
    last: dict[str, Any] | None = None
    for frame in frames:
        if not frame.startswith(_DELTAS):
            joined.append(frame)
            last = None
            continue
        piece: dict[str, Any] = json.loads(frame)
        if last is not None and _follows(last, piece):
            last["text"] += piece["text"]
            joined[-1] = encode(last)
        else:
            joined.append(frame)
            last = piece
    return joined


def _follows(before: dict[str, Any], piece: dict[str, Any]) -> bool:
    is_same_text = (before["type"], before["message_id"]) == (piece["type"], piece["message_id"])
    return is_same_text and before["offset"] + utf16_length(before["text"]) == piece["offset"]
