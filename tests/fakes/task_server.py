"""A server that turns calls into tasks: as revision 2025-11-25 has them, or as the extension of 2026-07-28."""

from __future__ import annotations

from typing import Any

from tests.fakes.mcp_server import INITIALIZED, RawServer, raw_tool, reply_error, reply_result

EXTENSION = "io.modelcontextprotocol/tasks"
META = "io.modelcontextprotocol/clientCapabilities"
FORM = {"type": "object", "properties": {"size": {"type": "string"}}}


class TaskServer(RawServer):
    """One task, which goes through the given states as it is looked at.

    Args:
        states: what tasks/get tells, one after the other; the last one stays.
        is_modern: which of the two kinds of tasks it has.
    """

    def __init__(self, states: list[dict[str, Any]], *, is_modern: bool) -> None:
        self.is_modern = is_modern
        self.states = states
        self.updates: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        self.result: dict[str, Any] = {"content": [{"type": "text", "text": "the result"}]}
        super().__init__(
            {
                "initialize": self._initialize,
                "server/discover": self._discover,
                "tools/call": self._call,
                "tasks/get": self._get,
                "tasks/result": self._result,
                "tasks/update": self._update,
                "tasks/cancel": self._cancel,
                **({"tools/list": self._list} if is_modern else {}),
            },
            [raw_tool("work", execution={"taskSupport": "optional"})],
        )

    async def _initialize(self, body: Any, scope: Any, send: Any) -> None:
        if self.is_modern:
            await reply_error(send, body, -32601, "Method not found")
            return
        capabilities: dict[str, Any] = {
            "tools": {},
            "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}},
        }
        await reply_result(send, body, {**INITIALIZED, "capabilities": capabilities})

    async def _discover(self, body: Any, scope: Any, send: Any) -> None:
        if not self.is_modern:
            await reply_error(send, body, -32601, "Method not found")
            return
        await reply_result(
            send,
            body,
            {
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "extensions": {EXTENSION: {}}},
                "ttlMs": 0,
                "cacheScope": "private",
            },
        )

    async def _list(self, body: Any, scope: Any, send: Any) -> None:
        listed = {"tools": self.tools, "ttlMs": 0, "cacheScope": "private"}
        await reply_result(send, body, {"resultType": "complete", **listed})

    async def _call(self, body: Any, scope: Any, send: Any) -> None:
        seed: dict[str, Any] = {
            "taskId": "task-1",
            "status": "working",
            "createdAt": "2026-11-21T10:00:00Z",
        }
        seed["lastUpdatedAt"] = seed["createdAt"]
        if self.is_modern:
            offered = body["params"]["_meta"][META].get("extensions") or {}
            if EXTENSION in offered:
                task = {**seed, "ttlMs": 60_000, "pollIntervalMs": 300}
                await reply_result(send, body, {"resultType": "task", **task})
                return
        elif "task" in body["params"]:
            task = {**seed, "ttl": body["params"]["task"]["ttl"], "pollInterval": 300}
            await reply_result(send, body, {"task": task})
            return
        await reply_result(send, body, self._whole({**self.result}))

    async def _get(self, body: Any, scope: Any, send: Any) -> None:
        if body["params"]["taskId"] != "task-1":
            await reply_error(send, body, -32602, "no such task")
            return
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        shape: dict[str, Any] = {"taskId": "task-1", "createdAt": "x", "lastUpdatedAt": "x"}
        if self.is_modern:
            shape |= {"ttlMs": None, "pollIntervalMs": 1, "resultType": "complete"}
        else:
            shape |= {"ttl": None, "pollInterval": 1}
        await reply_result(send, body, {**shape, **state})

    async def _result(self, body: Any, scope: Any, send: Any) -> None:
        await reply_result(send, body, self.result)

    async def _update(self, body: Any, scope: Any, send: Any) -> None:
        self.updates.append(body["params"]["inputResponses"])
        await reply_result(send, body, {"resultType": "complete"})

    async def _cancel(self, body: Any, scope: Any, send: Any) -> None:
        if body["params"]["taskId"] != "task-1":
            await reply_error(send, body, -32602, "no such task")
            return
        self.cancelled.append(body["params"]["taskId"])
        await reply_result(send, body, self._whole({}))

    def _whole(self, result: dict[str, Any]) -> dict[str, Any]:
        return {"resultType": "complete", **result} if self.is_modern else result
