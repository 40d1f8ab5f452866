"""A hosted MCP provider on a real port, written from the documented shapes of its API, in both forms.

Its instances are served as real MCP servers at the URLs it gives out, and its sign-in is a page of its own.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from tests.fakes.mcp_server import Listening, Receive, Scope, Send, reply

KEY = "klavis-test-key-7f3a"


@dataclass
class Hosted:
    """One instance."""

    id: str
    server: str
    user: str
    secret: str
    needs_sign_in: bool
    is_signed_in: bool = False
    is_read_only: bool = False
    credential: dict[str, Any] | None = None


@dataclass
class Bundle:
    """Several services behind one server."""

    id: str
    user: str
    secret: str
    servers: list[str]
    signed_in: set[str] = field(default_factory=set)


@dataclass(kw_only=True)
class Fault:
    """What to answer instead, to how many requests."""

    method: str
    path: str
    status: int = 500
    body: bytes = b'{"detail": "broken"}'
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    hold: threading.Event | None = None
    """Answered only when this is set."""


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class FakeKlavis:
    """The provider. `dialect` is the form it speaks: "current" or "older"."""

    def __init__(self, dialect: str = "current") -> None:
        self.dialect = dialect
        self.key = KEY
        self.requests: list[Asked] = []
        self.faults: list[Fault] = []
        self.instances: dict[str, Hosted] = {}
        self.bundles: dict[str, Bundle] = {}
        self.deleted_users: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """Tools that were called, by whichever way."""
        self.by_rest: list[str] = []
        self.extra: dict[str, Any] = {"addedLater": {"x": 1}}
        """Fields in every answer that nobody documented."""
        self.offered: list[Any] = [
            _offer("Gmail", "Read and send mail.", needs_sign_in=True),
            _offer("Slack", "Messages of a team.", needs_sign_in=True),
            _offer("Weather", "What the sky does.", needs_sign_in=False),
        ]
        self._count = 0
        self.mcp = MCPServer("hosted", version="1.0", log_level="ERROR")
        self._add_tools()
        self._listening = Listening(self._app())

    @property
    def origin(self) -> str:
        """The base URL."""
        return self._listening.origin

    def stop(self) -> None:
        """End the server."""
        self._listening.stop()

    def url_of(self, hosted: Hosted | Bundle) -> str:
        """Where an instance is served: all it takes to use it."""
        return f"{self.origin}/hosted/{hosted.secret}/mcp?instance_id={hosted.id}"

    def paths(self, method: str = "") -> list[str]:
        """Paths asked for so far."""
        return [one.path for one in self.requests if method in ("", one.method)]

    def only(self) -> Hosted:
        """The one instance that there is."""
        (hosted,) = self.instances.values()
        return hosted

    def fail(self, method: str, path: str, **how: Any) -> Fault:
        """Answer the next requests whose path begins like this otherwise."""
        fault = Fault(method=method, path=path, **how)
        self.faults.append(fault)
        return fault

    # The API

    def _app(self) -> Any:
        inner = self.mcp.streamable_http_app()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                await inner(scope, receive, send)
            elif scope["path"].startswith("/hosted/"):
                await self._hosted(inner, scope, receive, send)
            else:
                await self._api(scope, receive, send)

        return app

    async def _hosted(self, inner: Any, scope: Scope, receive: Receive, send: Send) -> None:
        secret = scope["path"].split("/")[2]
        served: list[Hosted | Bundle] = [*self.instances.values(), *self.bundles.values()]
        found = next((one for one in served if one.secret == secret), None)
        if found is None:
            await reply(send, 404)
        elif isinstance(found, Hosted) and found.needs_sign_in and not found.is_signed_in:
            await reply(send, 401)
        else:
            inside = {**scope, "path": "/mcp", "raw_path": b"/mcp", "query_string": b""}
            await inner(inside, receive, send)

    async def _api(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = bytearray()
        while True:
            message: MutableMapping[str, Any] = await receive()
            raw.extend(message.get("body", b""))
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        query = {k: v[0] for k, v in parse_qs(scope["query_string"].decode()).items()}
        asked = Asked(
            scope["method"], scope["path"], query, headers, json.loads(raw) if raw else None
        )
        self.requests.append(asked)
        if asked.path.startswith("/oauth/"):
            await self._sign_in(asked, send)
            return
        for fault in self.faults:
            if fault.method == asked.method and asked.path.startswith(fault.path) and fault.times:
                fault.times -= 1
                if fault.hold is not None:
                    await asyncio.to_thread(fault.hold.wait, 30)
                    break
                await reply(send, fault.status, fault.body, headers=fault.headers)
                return
        if headers.get("authorization") != f"Bearer {self.key}":
            await reply(send, 401, b'{"detail": "Invalid API key"}')
            return
        status, answer = self._answer(asked)
        await reply(send, status, json.dumps({**answer, **self.extra}).encode())

    async def _sign_in(self, asked: Asked, send: Send) -> None:
        hosted = self.instances.get(asked.query.get("instance_id", ""))
        if hosted is None:
            await reply(send, 404, b"gone", "text/plain")
            return
        if asked.query.get("consent") == "yes":
            hosted.is_signed_in = True
            page = "<p>Signed in. You can close this window.</p>"
        else:
            page = f'<a href="{asked.path}?instance_id={hosted.id}&amp;consent=yes">Allow</a>'
        title = f"<title>Sign in to {hosted.server}</title>"
        await reply(send, 200, f"<!doctype html>{title}{page}".encode(), "text/html")

    def _answer(self, asked: Asked) -> tuple[int, dict[str, Any]]:
        parts = [unquote(part) for part in asked.path.strip("/").split("/")]
        match asked.method, parts:
            case "GET", ["mcp-server", "servers"]:
                return 200, {"servers": self.offered}
            case "POST", ["mcp-server", "instance", "create"]:
                return self._create(asked.body)
            case "POST", ["mcp-server", "instance", "set-auth"]:
                return self._set_auth(asked.body)
            case "POST", ["mcp-server", "list-tools"]:
                return self._list_tools(asked.body)
            case "POST", ["mcp-server", "call-tool"]:
                return self._call_tool(asked.body)
        return self._older(asked, parts) if self.dialect == "older" else self._current(asked, parts)

    def _current(self, asked: Asked, parts: list[str]) -> tuple[int, dict[str, Any]]:
        match asked.method, parts:
            case "GET", ["mcp-server", "instance", known]:
                return self._get(known)
            case "PATCH", ["mcp-server", "instance", known]:
                return self._patch(known, asked.body)
            case "DELETE", ["mcp-server", "instance", known]:
                return self._delete(known)
            case "DELETE", ["mcp-server", "instance", known, "auth"]:
                return self._delete_auth(known)
            case "GET", ["user", user, "integrations"]:
                return 200, {
                    "integrations": [
                        {"name": one.server.upper(), "is_authenticated": one.is_signed_in}
                        for one in self.instances.values()
                        if one.user == user
                    ]
                }
            case "DELETE", ["user", user]:
                return self._delete_user(user)
            case "POST", ["mcp-server", "strata", "create"]:
                return self._create_bundle(asked.body)
            case "GET", ["mcp-server", "strata", known]:
                return self._get_bundle(known)
            case "POST", ["mcp-server", "strata", "add"]:
                self.bundles[asked.body["strataId"]].servers += asked.body["servers"]
                return self._get_bundle(asked.body["strataId"])
            case "DELETE", ["mcp-server", "strata", known, "servers"]:
                return self._delete_from_bundle(known, asked.query["servers"].split(","))
        return 404, {"detail": "Not Found"}

    def _older(self, asked: Asked, parts: list[str]) -> tuple[int, dict[str, Any]]:
        match asked.method, parts:
            case "GET", ["user", "instances"]:
                return 200, {
                    "instances": [
                        {
                            "id": one.id,
                            "name": one.server,
                            "authNeeded": one.needs_sign_in,
                            "isAuthenticated": one.is_signed_in,
                            "tools": [{"name": "search", "description": None}],
                        }
                        for one in self.instances.values()
                        if one.user == asked.query["user_id"]
                    ]
                }
            case "GET", ["mcp-server", "instance", "get", known]:
                return self._get(known)
            case "DELETE", ["mcp-server", "instance", "delete", known]:
                return self._delete(known)
            case "DELETE", ["mcp-server", "instance", "delete-auth", known]:
                return self._delete_auth(known)
            case "DELETE", ["user", "delete", user]:
                return self._delete_user(user)
        return 404, {"detail": "Not Found"}

    def _create(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        names = {one["name"].casefold(): one for one in self.offered if isinstance(one, dict)}
        offer = names.get(str(body.get("serverName")).casefold())
        if offer is None:
            item = {"loc": ["body", "serverName"], "msg": "unknown", "type": "value_error"}
            return 422, {"detail": [item]}
        known = (one for one in self.instances.values() if one.user == body["userId"])
        hosted = next((one for one in known if one.server == offer["name"]), None)
        if hosted is None:
            self._count += 1
            hosted = Hosted(
                id=f"instance-{self._count}-c0ffee",
                server=offer["name"],
                user=body["userId"],
                secret=f"hosted-url-{self._count}-5ec4e7",
                needs_sign_in=bool(offer["authNeeded"]),
            )
            self.instances[hosted.id] = hosted
        hosted.is_read_only = bool(body.get("isReadOnly"))
        answer = {"serverUrl": self.url_of(hosted), "instanceId": hosted.id}
        return 200, {**answer, **self._window(hosted)}

    def _window(self, hosted: Hosted) -> dict[str, Any]:
        if not hosted.needs_sign_in or hosted.is_signed_in:
            return {"oauthUrl": None}
        path = f"/oauth/{hosted.server.lower()}/authorize"
        return {"oauthUrl": f"{self.origin}{path}?instance_id={hosted.id}"}

    def _get(self, known: str) -> tuple[int, dict[str, Any]]:
        hosted = self.instances.get(known)
        if hosted is None:
            return 404, {"detail": "Instance not found"}
        return 200, {
            "instanceId": hosted.id,
            "serverName": hosted.server,
            "authNeeded": hosted.needs_sign_in,
            "isAuthenticated": hosted.is_signed_in,
            "externalUserId": hosted.user,
            **self._window(hosted),
        }

    def _patch(self, known: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        hosted = self.instances.get(known)
        if hosted is None:
            return 404, {"detail": "Instance not found"}
        hosted.is_read_only = body["isReadOnly"]
        return 200, {"instanceId": known, "isReadOnly": hosted.is_read_only, "message": "done"}

    def _delete(self, known: str) -> tuple[int, dict[str, Any]]:
        if self.instances.pop(known, None) is None:
            return 404, {"detail": "Instance not found"}
        return 200, {"success": True, "message": "deleted"}

    def _delete_auth(self, known: str) -> tuple[int, dict[str, Any]]:
        hosted = self.instances.get(known)
        if hosted is None:
            return 404, {"detail": "Instance not found"}
        hosted.is_signed_in, hosted.credential = False, None
        return 200, {"success": True}

    def _set_auth(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        hosted = self.instances.get(body["instanceId"])
        if hosted is None:
            return 404, {"detail": "Instance not found"}
        hosted.credential, hosted.is_signed_in = body["authData"], True
        return 200, {"success": True}

    def _delete_user(self, user: str) -> tuple[int, dict[str, Any]]:
        self.deleted_users.append(user)
        self.instances = {k: one for k, one in self.instances.items() if one.user != user}
        return 200, {"success": True, "message": "deleted"}

    def _create_bundle(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self._count += 1
        bundle = Bundle(
            id=f"strata-{self._count}-c0ffee",
            user=body["userId"],
            secret=f"strata-url-{self._count}-5ec4e7",
            servers=list(body["servers"]),
        )
        self.bundles[bundle.id] = bundle
        return 200, {
            "strataServerUrl": self.url_of(bundle),
            "strataId": bundle.id,
            "addedServers": bundle.servers,
            "oauthUrls": self._bundle_windows(bundle),
        }

    def _bundle_windows(self, bundle: Bundle) -> dict[str, str]:
        return {
            name: f"{self.origin}/oauth/{name.lower()}/authorize?strata_id={bundle.id}"
            for name in bundle.servers
            if name not in bundle.signed_in
        }

    def _get_bundle(self, known: str) -> tuple[int, dict[str, Any]]:
        bundle = self.bundles.get(known)
        if bundle is None:
            return 404, {"detail": "Strata not found"}
        return 200, {
            "strataServerUrl": self.url_of(bundle),
            "strataId": bundle.id,
            "connectedServers": bundle.servers,
            "oauthUrls": self._bundle_windows(bundle),
        }

    def _delete_from_bundle(self, known: str, names: list[str]) -> tuple[int, dict[str, Any]]:
        bundle = self.bundles.get(known)
        if bundle is None:
            return 404, {"detail": "Strata not found"}
        bundle.servers = [name for name in bundle.servers if name not in names]
        return 200, {"deletedServers": names, "deletedExternalServers": []}

    # Tools, over MCP and over REST

    def _add_tools(self) -> None:
        @self.mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
        def search(query: str) -> str:
            """Look for mail."""
            self.calls.append(("search", {"query": query}))
            return f"found {query}"

        @self.mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
        def fail(text: str) -> str:
            """Report an error."""
            raise ToolError(text)

        @self.mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
        def get_category_actions(category_names: list[str]) -> str:
            """What can be done."""
            return ", ".join(category_names)

        @self.mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
        def execute_action(
            server_name: str, category_name: str, action_name: str, body_schema: str = "{}"
        ) -> str:
            """Do it."""
            arguments = {"server": server_name, "category": category_name, "action": action_name}
            self.calls.append(("execute_action", {**arguments, "body": body_schema}))
            return f"did {action_name}"

    def _find(self, url: str) -> bool:
        served: list[Hosted | Bundle] = [*self.instances.values(), *self.bundles.values()]
        return any(self.url_of(one) == url for one in served)

    def _list_tools(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if not self._find(body["serverUrl"]):
            return 404, {"detail": "Server not found"}
        listed = [
            {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.parameters,
                "annotations": {"readOnlyHint": True},
            }
            for tool in self.mcp._tool_manager.list_tools()
        ]
        return 200, {"success": True, "tools": listed, "format": "mcp_native", "error": None}

    def _call_tool(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if not self._find(body["serverUrl"]):
            return 404, {"detail": "Server not found"}
        name, arguments = body["toolName"], body.get("toolArgs") or {}
        self.by_rest.append(name)
        if name == "fail":
            content = [{"type": "text", "text": arguments.get("text", "")}]
            return 200, {"success": True, "result": {"content": content, "isError": True}}
        if name == "search":
            self.calls.append(("search", dict(arguments)))
            content = [{"type": "text", "text": f"found {arguments.get('query')}"}]
            return 200, {"success": True, "result": {"content": content, "isError": False}}
        return 200, {"success": False, "error": "no such tool", "result": None}


def _offer(name: str, description: str, *, needs_sign_in: bool) -> dict[str, Any]:
    return {
        "id": f"id-{name.lower()}",
        "name": name,
        "description": description,
        "authNeeded": needs_sign_in,
        "tools": [{"name": "search", "description": "Look."}],
    }
