"""What we make of the SDK's types: requests that it lacks, and readers of answers. Loaded through `sdk`, on use."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

import mcp_types
import pydantic

from workspaces.product import NAME, VERSION

CLIENT_INFO: Final = mcp_types.Implementation(name=NAME, version=VERSION)

ANY: Final[pydantic.TypeAdapter[Any]] = pydantic.TypeAdapter(dict[str, Any])
INPUTS: Final[pydantic.TypeAdapter[Any]] = pydantic.TypeAdapter(mcp_types.InputRequests)
TOOL_RESULT: Final[pydantic.TypeAdapter[Any]] = pydantic.TypeAdapter(
    mcp_types.CallToolResult | mcp_types.InputRequiredResult
)
RESOURCE_RESULT: Final[pydantic.TypeAdapter[Any]] = pydantic.TypeAdapter(
    mcp_types.ReadResourceResult | mcp_types.InputRequiredResult
)
PROMPT_RESULT: Final[pydantic.TypeAdapter[Any]] = pydantic.TypeAdapter(
    mcp_types.GetPromptResult | mcp_types.InputRequiredResult
)


class TaskParams(mcp_types.RequestParams):
    task_id: str


class TaskUpdateParams(TaskParams):
    input_responses: dict[str, Any]


class TaskGet(mcp_types.Request[TaskParams, Literal["tasks/get"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams


class TaskResult(mcp_types.Request[TaskParams, Literal["tasks/result"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/result"] = "tasks/result"
    params: TaskParams


class TaskCancel(mcp_types.Request[TaskParams, Literal["tasks/cancel"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams


class TaskUpdate(mcp_types.Request[TaskUpdateParams, Literal["tasks/update"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/update"] = "tasks/update"
    params: TaskUpdateParams
