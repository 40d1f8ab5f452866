"""What OpenAI takes, as its own library describes it: the fake model refuses anything else, as OpenAI does.

Source: the types of requests in the package `openai`. Their unions and iterables are walked here, because pydantic
neither refuses unknown fields of a `TypedDict` nor looks into an `Iterable`.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Required, Union, get_args, get_origin

from openai.types.chat import completion_create_params
from openai.types.embedding_create_params import EmbeddingCreateParams
from openai.types.responses import response_create_params
from typing_extensions import get_type_hints, is_typeddict

_OTHERS = frozenset({"reasoning_content", "reasoning_details", "extra_content"})
"""Fields of messages and calls that other providers add: DeepSeek, OpenRouter and Google."""
_SIMPLE: dict[Any, tuple[type, ...]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (int, float),
    type(None): (type(None),),
}


def fault_of_chat(body: Mapping[str, Any]) -> str | None:
    """What is wrong with a request for a completion of a chat, or None."""
    if body.get("stream"):
        return _first(body, completion_create_params.CompletionCreateParamsStreaming)
    return _first(body, completion_create_params.CompletionCreateParamsNonStreaming)


def fault_of_responses(body: Mapping[str, Any]) -> str | None:
    """What is wrong with a request of the Responses API, or None."""
    if body.get("stream"):
        return _first(body, response_create_params.ResponseCreateParamsStreaming)
    return _first(body, response_create_params.ResponseCreateParamsNonStreaming)


def fault_of_embeddings(body: Mapping[str, Any]) -> str | None:
    """What is wrong with a request for embeddings, or None."""
    return _first(body, EmbeddingCreateParams)


def _first(value: Any, hint: Any, place: str = "body") -> str | None:
    return next(_faults(value, hint, place), None)


def _faults(value: Any, hint: Any, place: str) -> Iterator[str]:
    origin, inner = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return
    if origin in (Required, Annotated):
        yield from _faults(value, inner[0], place)
        return
    if origin in (Union, types.UnionType):
        found = [_first(value, one, place) for one in inner]
        if None not in found:
            yield max((fault for fault in found if fault), key=_fit)
    elif origin is Literal:
        if value not in inner:
            yield f"{place}: {value!r} is none of {inner}"
    elif is_typeddict(hint):
        yield from _faults_of_object(value, hint, place)
    elif origin in (list, Iterable, Sequence):
        if not isinstance(value, list):
            yield f"{place}: not a list"
            return
        for number, one in enumerate(value):
            yield from _faults(one, inner[0], f"{place}.{number}")
    elif origin in (dict, Mapping):
        if not isinstance(value, dict):
            yield f"{place}: not an object"
            return
        for name, one in value.items():
            yield from _faults(one, inner[1], f"{place}.{name}")
    elif type(value) not in _SIMPLE[hint]:
        yield f"{place}: not of type {hint.__name__}"


def _faults_of_object(value: Any, hint: Any, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place}: not an object"
        return
    known = _fields(hint)
    for name, field in known.items():
        if get_origin(field) is Required and name not in value:
            yield f"{place}: {name} is missing"
    for name, one in value.items():
        if name in known:
            yield from _faults(one, known[name], f"{place}.{name}")
        elif name not in _OTHERS:
            yield f"{place}.{name}: unknown"


@cache
def _fields(hint: Any) -> dict[str, Any]:
    # The library's own `__required_keys__` are empty, since its annotations are texts.
    return get_type_hints(hint, include_extras=True)


def _fit(fault: str) -> tuple[int, bool]:
    """How well a shape of several fits: it goes wrong at a deep place, and not in the field that tells its kind."""
    return fault.count("."), " is none of " not in fault
