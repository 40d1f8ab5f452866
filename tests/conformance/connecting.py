"""Plays the scenarios of the protocol itself: this app's connections, with nobody to ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from uuid_utils.compat import uuid7

from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.connections import calls
from mcp_servers.client.connections.failures import CallFailed, RpcError
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.definitions import read_definition
from mcp_servers.client.inputs import (
    AskedInput,
    CallLimits,
    InputAction,
    InputAnswer,
    InputAnswers,
    InputKind,
    InputRequired,
)
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.transports.targets import HttpSpec
from mcp_servers.client.values import Progress
from workspaces import outbound

SECONDS: Final = 20.0
SCHEMA_ECHO: Final = "json_schema_echo"

_ARGUMENTS: Final[Mapping[str, dict[str, Any]]] = {"add_numbers": {"a": 5, "b": 3}}


async def play(url: str, context: Mapping[str, Any], say: Callable[[str], object]) -> None:
    """Connect to the URL, list everything, call each sound tool once."""
    spec = _spec(url)
    try:
        async with asyncio.timeout(SECONDS):
            listing = await pool.list_offers(spec)
            sound = [
                definition
                for raw in listing.tools
                if (definition := read_definition(raw)) is not None and not definition.problem
            ]
            tools = [(tool.name, tool.input_schema) for tool in sound]
            for name, arguments in calls_for(tools, context):
                await _call(spec, name, arguments, say)
    finally:
        await pool.drop(spec.server_id)


def calls_for(
    tools: list[tuple[str, dict[str, Any]]], context: Mapping[str, Any]
) -> list[tuple[str, dict[str, Any]]]:
    """What the scenario wants called, or each tool once."""
    wanted = context.get("toolCalls")
    if isinstance(wanted, list):
        return [(str(call["name"]), dict(call.get("arguments") or {})) for call in wanted]
    schemas = dict(tools)
    if SCHEMA_ECHO in schemas:
        # The suite looks whether the client kept a definition whole, by having it told back.
        others = [schema for name, schema in tools if name != SCHEMA_ECHO]
        return [(SCHEMA_ECHO, {"schema": schema}) for schema in others]
    return [(name, _ARGUMENTS.get(name) or _fill(schema)) for name, schema in tools]


async def _call(
    spec: ConnectionSpec, name: str, arguments: dict[str, Any], say: Callable[[str], object]
) -> None:
    """Call a tool for as many rounds as it asks for."""
    listener = Defaults()
    answers: InputAnswers | None = None
    for _ in range(10):
        permit = calls.mint_permit(
            call_id=uuid7(),
            server_id=spec.server_id,
            tool_name=name,
            arguments=canonical_json(arguments),
        )
        try:
            got = await calls.send_call(
                spec,
                permit,
                limits=CallLimits(seconds=SECONDS, hard_seconds=SECONDS),
                listener=listener,
                answers=answers,
            )
        except (CallFailed, RpcError) as error:
            say(f"{name}: {error.message}\n")
            return
        if not isinstance(got, InputRequired):
            return
        by_key = {asked.key: (asked, await listener.answer(asked)) for asked in got.asked}
        answers = InputAnswers(by_key=by_key, state=got.state)


class Defaults:
    """A person who leaves every form as it is."""

    def progressed(self, progress: Progress) -> None:
        """Nobody looks."""

    async def answer(self, asked: AskedInput) -> InputAnswer:
        """Accept forms with their defaults, turn the rest away."""
        if asked.kind is InputKind.FORM:
            return InputAnswer(action=InputAction.ACCEPT, content=_fill(asked.schema))
        if asked.kind is InputKind.ROOTS:
            return InputAnswer(action=InputAction.ACCEPT, content={"roots": []})
        return InputAnswer(action=InputAction.DECLINE, reason="Nobody is here.")


def _fill(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The least that fits a simple schema: its defaults, and something for what is required."""
    something = {
        "string": "x",
        "integer": 1,
        "number": 1,
        "boolean": True,
        "array": [],
        "object": {},
    }
    required = schema.get("required") or []
    filled = {}
    for name, field in (schema.get("properties") or {}).items():
        if "default" in field:
            filled[name] = field["default"]
        elif name in required:
            options = field.get("enum") or [something.get(str(field.get("type")), "x")]
            filled[name] = options[0]
    return filled


def _spec(url: str) -> ConnectionSpec:
    return ConnectionSpec(
        workspace_id=uuid7(),
        server_id=uuid7(),
        principal="workspace",
        server_name="conformance",
        target=HttpSpec(endpoint=outbound.parse_endpoint(url), transport="streamable_http"),
        fingerprint="1",
    )
