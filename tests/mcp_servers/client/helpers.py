"""Specs, calls and listeners for tests of connections."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import mcp_types

from mcp_servers.client.connections import calls
from mcp_servers.client.inputs import (
    AskedInput,
    CallLimits,
    InputAction,
    InputAnswer,
    InputAnswers,
    InputRequired,
    TaskStarted,
)
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.transports.targets import HttpSpec, StdioSpec
from mcp_servers.client.values import Progress
from tests.patience import PATIENCE
from workspaces import outbound

ANY_SCHEME = (*outbound.HTTP_SCHEMES, *outbound.WEBSOCKET_SCHEMES)


def spec_for(target: str | StdioSpec, **fields: Any) -> ConnectionSpec:
    """A connection to a URL or a program."""
    http = {
        name: fields.pop(name) for name in ("transport", "remembered", "headers") if name in fields
    }
    values: dict[str, Any] = {
        "workspace_id": uuid4(),
        "server_id": uuid4(),
        "principal": "workspace",
        "server_name": "test",
        "target": target
        if isinstance(target, StdioSpec)
        else HttpSpec(endpoint=outbound.parse_endpoint(target, schemes=ANY_SCHEME), **http),
        "fingerprint": "1",
        **fields,
    }
    return ConnectionSpec(**values)


def program(path: Path, home: Path, *arguments: str) -> StdioSpec:
    """A Python program as a server."""
    return StdioSpec(argv=(sys.executable, str(path), *arguments), home=home)


def within(seconds: float, hard: float | None = None) -> CallLimits:
    """Limits of a call."""
    return CallLimits(seconds=seconds, hard_seconds=hard or seconds)


async def send(
    spec: ConnectionSpec,
    tool: str,
    arguments: dict[str, Any] | None = None,
    *,
    limits: CallLimits | None = None,
    listener: Person | None = None,
    answers: InputAnswers | None = None,
    as_task: bool = False,
) -> mcp_types.CallToolResult | InputRequired | TaskStarted:
    """One call, as the gate makes it."""
    permit = calls.mint_permit(
        call_id=uuid4(),
        server_id=spec.server_id,
        tool_name=tool,
        arguments=json.dumps(arguments or {}).encode(),
    )
    return await calls.send_call(
        spec,
        permit,
        limits=limits or within(PATIENCE),
        listener=listener,
        answers=answers,
        as_task=as_task,
    )


async def text_of(awaited: Awaitable[object]) -> str:
    """The text of a result that is still to come."""
    return text_in(await awaited)


def text_in(result: object) -> str:
    """The text of a result."""
    assert isinstance(result, mcp_types.CallToolResult), result
    (block,) = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


class Person:
    """Whoever made a call: remembers what it saw, and answers."""

    def __init__(
        self,
        action: InputAction = InputAction.ACCEPT,
        content: dict[str, Any] | None = None,
        *,
        think: Callable[[AskedInput], Awaitable[None]] | None = None,
    ) -> None:
        self.progress: list[Progress] = []
        self.asked: list[AskedInput] = []
        self.given_up: list[AskedInput] = []
        self._answer = InputAnswer(action=action, content=content or {})
        self._think = think

    def progressed(self, progress: Progress) -> None:
        self.progress.append(progress)

    async def answer(self, asked: AskedInput) -> InputAnswer:
        self.asked.append(asked)
        if self._think is not None:
            try:
                await self._think(asked)
            except BaseException:
                self.given_up.append(asked)
                raise
        return self._answer
