"""The client that the conformance suite starts for each scenario: this app's connections, with nobody to ask.

python -m tests.conformance.client URL
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import django

CONTEXT: Final = "MCP_CONFORMANCE_CONTEXT"
SECONDS: Final = 20.0
SCHEMA_ECHO: Final = "json_schema_echo"

_ARGUMENTS: Final[Mapping[str, dict[str, Any]]] = {"add_numbers": {"a": 5, "b": 3}}


def main() -> int:
    """Connect to the URL, list everything, call each sound tool once; 0 if nothing failed."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from mcp_servers.connections import runtime

    try:
        runtime.run_sync(_play(sys.argv[-1]), SECONDS + 5)
    finally:
        runtime.shutdown(2.0)
    return 0


async def _play(url: str) -> None:
    from mcp_servers.connections.pool import pool
    from mcp_servers.definitions import read_definition

    spec = _spec(url)
    async with asyncio.timeout(SECONDS):
        listing = await pool.list_offers(spec)
        sound = [
            definition
            for raw in listing.tools
            if (definition := read_definition(raw)) is not None and not definition.problem
        ]
        for name, arguments in _calls_for([(tool.name, tool.input_schema) for tool in sound]):
            await _call(spec, name, arguments)


def _calls_for(tools: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """What the scenario wants called, or each tool once."""
    context = json.loads(os.environ.get(CONTEXT) or "{}")
    wanted = context.get("toolCalls")
    if isinstance(wanted, list):
        return [(str(call["name"]), dict(call.get("arguments") or {})) for call in wanted]
    schemas = dict(tools)
    if SCHEMA_ECHO in schemas:
        # The suite looks whether the client kept a definition whole, by having it told back.
        others = [schema for name, schema in tools if name != SCHEMA_ECHO]
        return [(SCHEMA_ECHO, {"schema": schema}) for schema in others]
    return [(name, _ARGUMENTS.get(name) or _fill(schema)) for name, schema in tools]


async def _call(spec: Any, name: str, arguments: dict[str, Any]) -> None:
    """Call a tool for as many rounds as it asks for."""
    from uuid_utils.compat import uuid7

    from mcp_servers.canonical import canonical_json
    from mcp_servers.connections import calls
    from mcp_servers.connections.failures import CallFailed, RpcError
    from mcp_servers.inputs import Answers, CallLimits, InputRequired

    listener = Defaults()
    answers: Answers | None = None
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
            sys.stderr.write(f"{name}: {error.message}\n")
            return
        if not isinstance(got, InputRequired):
            return
        by_key = {asked.key: (asked, await listener.answer(asked)) for asked in got.asked}
        answers = Answers(by_key=by_key, state=got.state)


class Defaults:
    """A person who leaves every form as it is."""

    def progressed(self, progress: Any) -> None:
        """Nobody looks."""

    async def answer(self, asked: Any) -> Any:
        """Accept forms with their defaults, turn the rest away."""
        from mcp_servers.inputs import InputAction, InputAnswer, InputKind

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


def _spec(url: str) -> Any:
    from mcp_servers.connections.spec import ConnectionSpec, HttpSpec
    from workspaces import outbound

    return ConnectionSpec(
        workspace_id=UUID(int=1),
        server_id=UUID(int=2),
        principal="workspace",
        server_name="conformance",
        target=HttpSpec(endpoint=outbound.parse_endpoint(url), transport="streamable_http"),
        fingerprint="1",
    )


if __name__ == "__main__":
    sys.exit(main())
