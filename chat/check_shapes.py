"""What a check of a bud is made of: one shape for rows, REST, and files. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

MOST_CHECKS: Final = 50
"""Of one bud."""
LONGEST_RECORDING: Final = 20_000
"""Characters of a recorded result."""

_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
_ToolName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=460)]


def _check_storable(value: object) -> None:
    if isinstance(value, str) and any(
        one == "\x00" or "\ud800" <= one <= "\udfff" for one in value
    ):
        raise ValueError("This text has characters that can't be stored.")
    if isinstance(value, Mapping):
        for name, one in value.items():
            _check_storable(name)
            _check_storable(one)
    elif isinstance(value, list):
        for one in value:
            _check_storable(one)


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="after")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        _check_storable(value)
        return value


class ExpectedCall(_Shape):
    """A tool that the bud has to call, with those arguments at least."""

    tool: _ToolName
    """`server.tool`, or the tool's name alone."""
    arguments: Annotated[dict[str, Any], Field(max_length=50)] = {}


class Recording(_Shape):
    """What a tool that may change data gives in a check, in place of being called."""

    tool: _ToolName
    arguments: Annotated[dict[str, Any], Field(max_length=50)] = {}
    """It answers only calls with these; empty: any."""
    result: Annotated[str, Field(max_length=LONGEST_RECORDING)] = ""
    is_error: bool = False


class CheckShape(_Shape):
    """A question with what is expected of the bud's answer to it."""

    question: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000)
    ]
    calls: Annotated[list[ExpectedCall], Field(max_length=20)] = []
    contains: Annotated[list[_Words], Field(max_length=20)] = []
    excludes: Annotated[list[_Words], Field(max_length=20)] = []
    criterion: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] = ""
    """A sentence that a model judges the answer by."""
    recordings: Annotated[list[Recording], Field(max_length=20)] = []

    @property
    def expects_something(self) -> bool:
        return bool(self.calls or self.contains or self.excludes or self.criterion)


def is_tool(name: str, *, server: str, tool: str) -> bool:
    """Whether a name in a check means this tool."""
    return name in (tool, f"{server}.{tool}" if server else tool)


def differing_arguments(expected: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Give the names of the arguments that are not as expected; others may be there."""
    return [name for name, value in expected.items() if name not in given or given[name] != value]


def recording_for(
    recordings: list[Recording], *, server: str, tool: str, arguments: Mapping[str, Any]
) -> Recording | None:
    """Give the recording that answers a call: the one that names most of its arguments."""
    fitting = [
        one
        for one in recordings
        if is_tool(one.tool, server=server, tool=tool)
        and not differing_arguments(one.arguments, arguments)
    ]
    return max(fitting, key=lambda one: len(one.arguments), default=None)
