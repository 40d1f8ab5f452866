"""Pictures that tools have returned, made fit for a model: the newest few, bounded and encoded anew like attached ones."""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from chat.documents.extracting import UnreadableFile
from chat.documents.pictures import MIME_TYPE, ModelPicture, for_model, tokens_of
from chat.engine.context_window import PastPicture
from chat.models import ToolCall
from mcp_servers.client.hidden_text import strip_hidden

MOST_PICTURES: Final = 4
"""The newest ones of a conversation."""
_SIGN: Final = "[image, "
"""In the text of a result that holds one; what only says so is found out when the result is read."""
_MOST_KEPT: Final = 16
_made: dict[str, ModelPicture | None] = {}
_lock = threading.Lock()


def pictures_of_calls(
    workspace_id: UUID, calls: Sequence[ToolCall]
) -> dict[UUID, tuple[PastPicture, ...]]:
    """The pictures of these calls, in their order, by call; the newest ones with what can be shown of them."""
    asked = [call.pk for call in calls if _SIGN in call.model_text]
    if not asked:
        return {}
    left = MOST_PICTURES
    found: dict[UUID, tuple[PastPicture, ...]] = {}
    rows = ToolCall.objects.for_workspace(workspace_id).filter(pk__in=asked[-MOST_PICTURES:])
    results = {row.pk: row for row in rows.only("result", "server_name", "tool_name")}
    for pk in reversed(asked):
        row = results.get(pk)
        parts = _pictures_in(row.result) if row is not None else []
        shown = []
        for at, data in enumerate(parts):
            name = strip_hidden(f"{row.server_name}.{row.tool_name}") if row else ""
            picture = _encoded(f"call/{pk}/{at}", data) if left > 0 else None
            left -= picture is not None
            shown.append(_past(name, f"call/{pk}/{at}", picture))
        if shown:
            found[pk] = tuple(shown)
    return found


def _past(name: str, path: str, picture: ModelPicture | None) -> PastPicture:
    if picture is None:
        return PastPicture(name=name)
    data = base64.b64encode(picture.content).decode()
    return PastPicture(
        name=name,
        path=path,
        tokens=tokens_of(picture.width, picture.height),
        url=f"data:{MIME_TYPE};base64,{data}",
    )


def _pictures_in(result: Any) -> list[str]:
    content = result.get("content") if isinstance(result, dict) else None
    return [
        part["data"]
        for part in content or ()
        if isinstance(part, dict) and part.get("type") == "image" and part.get("data")
    ]


def _encoded(path: str, data: str) -> ModelPicture | None:
    """The picture as a model gets it; None: it cannot be read. Results never change, so it is made once."""
    with _lock:
        if path in _made:
            return _made[path]
    try:
        picture = for_model(base64.b64decode(data, validate=True))
    except (UnreadableFile, binascii.Error, ValueError):
        picture = None
    with _lock:
        while len(_made) >= _MOST_KEPT:
            _made.pop(next(iter(_made)))
        _made[path] = picture
    return picture
