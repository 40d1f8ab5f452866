"""Between what a server asks for on the wire and our own values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pydantic
from django.utils.translation import gettext_noop as _

from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.inputs import (
    AskedInput,
    InputAction,
    InputAnswer,
    InputAnswers,
    InputKind,
    InputRequired,
)
from mcp_servers.client.sdk import mcp_types

if TYPE_CHECKING:
    from mcp_servers.client.values import JsonValue

MAX_ASKED: Final = 20
"""Things that a server may ask for at a time."""
MAX_STATE: Final = 64 * 1024
"""Characters of the opaque state that we carry for a server."""


def asked_by_elicitation(key: str, params: mcp_types.ElicitRequestParams) -> AskedInput:
    """A form, or a visit to a URL."""
    if isinstance(params, mcp_types.ElicitRequestURLParams):
        return AskedInput(
            key=key,
            kind=InputKind.URL,
            message=params.message,
            url=params.url,
            elicitation_id=params.elicitation_id or "",
        )
    return AskedInput(
        key=key, kind=InputKind.FORM, message=params.message, schema=params.requested_schema
    )


def asked_by_sampling(key: str, params: mcp_types.CreateMessageRequestParams) -> AskedInput:
    """A request to the model."""
    return AskedInput(
        key=key,
        kind=InputKind.SAMPLING,
        message=params.system_prompt or "",
        params=_as_json(params),
    )


def input_required(result: mcp_types.InputRequiredResult) -> InputRequired:
    """A request that ended early.

    Raises:
        CallFailed: it asks for too much.
    """
    requests = result.input_requests or {}
    if len(requests) > MAX_ASKED or len(result.request_state or "") > MAX_STATE:
        raise CallFailed("unreadable", _("The tool asks for too many things at once."))
    return InputRequired(
        asked=tuple(_asked(key, request) for key, request in requests.items()),
        state=result.request_state,
    )


def input_responses(answers: InputAnswers) -> dict[str, Any]:
    """The answers as the newest revision carries them.

    Raises:
        CallFailed: something was refused that the protocol has no word to refuse with.
    """
    return {
        key: _response(asked, answer).model_dump(by_alias=True, mode="json", exclude_none=True)
        for key, (asked, answer) in answers.by_key.items()
    }


def elicit_result(answer: InputAnswer, *, kind: InputKind) -> mcp_types.ElicitResult:
    """What became of an elicitation."""
    is_filled = answer.action is InputAction.ACCEPT and kind is InputKind.FORM
    return mcp_types.ElicitResult.model_validate(
        {"action": answer.action.value, "content": dict(answer.content) if is_filled else None}
    )


def sampling_result(
    answer: InputAnswer,
) -> mcp_types.CreateMessageResult | mcp_types.CreateMessageResultWithTools | None:
    """What the model said; None if it was not asked."""
    if answer.action is not InputAction.ACCEPT:
        return None
    content = answer.content.get("content")
    if isinstance(content, list):
        return mcp_types.CreateMessageResultWithTools.model_validate(answer.content, by_name=False)
    return mcp_types.CreateMessageResult.model_validate(answer.content, by_name=False)


def roots_result(roots: object) -> mcp_types.ListRootsResult:
    """The folders that a server may work in: pairs of URI and name, or objects as on the wire."""
    listed = roots if isinstance(roots, list | tuple) else ()
    items = [
        dict(root) if isinstance(root, Mapping) else {"uri": root[0], "name": root[1] or None}
        for root in listed
    ]
    return mcp_types.ListRootsResult.model_validate({"roots": items})


def _asked(key: str, request: mcp_types.InputRequest) -> AskedInput:
    if isinstance(request, mcp_types.ElicitRequest):
        return asked_by_elicitation(key, request.params)
    if isinstance(request, mcp_types.CreateMessageRequest):
        return asked_by_sampling(key, request.params)
    return AskedInput(key=key, kind=InputKind.ROOTS)


def _response(asked: AskedInput, answer: InputAnswer) -> pydantic.BaseModel:
    if asked.kind in (InputKind.FORM, InputKind.URL):
        return elicit_result(answer, kind=asked.kind)
    if asked.kind is InputKind.ROOTS:
        return roots_result(answer.content.get("roots", []))
    result = sampling_result(answer)
    if result is None:
        # There is no way to say no to the server, so the request is not made again.
        raise CallFailed("input_declined")
    return result


def _as_json(value: pydantic.BaseModel) -> dict[str, JsonValue]:
    dumped: dict[str, JsonValue] = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    dumped.pop("_meta", None)
    return dumped
