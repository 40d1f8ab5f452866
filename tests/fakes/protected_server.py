"""A real MCP server that lets nobody in without a token of its authorization server: the SDK's, with its bearer check.

Each account may be shown other tools, and it keeps who called what. Source: RFC 6750, 9728; MCP, "Authorization".
"""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any, cast

from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.auth.settings import AuthSettings
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.shared.auth import ProtectedResourceMetadata
from mcp_types import ListToolsResult, ToolAnnotations
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.fakes.authorization import Issuer
from tests.fakes.mcp_server import Listening, Receive, Scope, Send

_PRM = "/.well-known/oauth-protected-resource"


class ProtectedServer:
    """An MCP server that wants a signed-in account: tools whoami and send (destructive), and more if a test adds
    them; resources mail://{folder}, the prompt summary."""

    def __init__(self, issuer: Issuer, *required_scopes: str) -> None:
        self.issuer = issuer
        self.required_scopes = required_scopes or ("mail.read",)
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        """What was done: tool, account, arguments."""
        self.listed: list[str] = []
        """Accounts that the tools were listed for."""
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        """Method, path and headers of each HTTP request."""
        self.refused: list[tuple[int, str]] = []
        """Status and JSON-RPC method of each request that was not let in."""
        self.metadata_overrides: dict[str, Any] = {}
        """What the protected resource's metadata say otherwise; None leaves a field out."""
        self.metadata_at: set[str] = {"path", "root"}
        """Where these metadata stand: path, root, both or nowhere."""
        self.challenges = True
        """Whether a refusal carries WWW-Authenticate at all."""
        self.names_metadata = True
        """Whether that names the address of the metadata."""
        self.challenge_scope = ""
        """Scopes named in the refusal of somebody unknown."""
        self.scopes_of: dict[str, str] = {}
        """Tools that want more than the others: name → scope; without it 403 insufficient_scope."""
        self.forbids: set[str] = set()
        """Tools answered with a plain 403."""
        self.refuses = False
        """Whether every token is refused."""
        self.only_for: dict[str, set[str]] = {}
        """Tools that not all are shown: name → accounts."""
        self._listening = Listening(make=self._make)

    @property
    def url(self) -> str:
        """The endpoint, and the resource that tokens are for."""
        return f"{self._listening.origin}/mcp"

    @property
    def metadata_url(self) -> str:
        """Where the protected resource's metadata are."""
        return str(build_resource_metadata_url(AnyHttpUrl(self.url)))

    def stop(self) -> None:
        """End the server."""
        self._listening.stop()

    def called_by(self, tool: str) -> list[str]:
        """Accounts that called a tool, in the order in which they did."""
        return [account for name, account, _ in list(self.calls) if name == tool]

    def add_tool(
        self, name: str, *accounts: str, annotations: ToolAnnotations | None = None, scope: str = ""
    ) -> None:
        """Offer one more tool, which takes a text; to these accounts alone, if any are named."""

        def tool(ctx: Context, text: str = "") -> str:
            account = _account_of(ctx.request_context)
            self.calls.append((name, account, {"text": text}))
            return account if name == "whoami" else f"{name}: {text}"

        annotations = annotations or ToolAnnotations(read_only_hint=True)
        self.server.add_tool(
            tool, name=name, description=name, annotations=annotations, structured_output=False
        )
        if accounts:
            self.only_for[name] = set(accounts)
        if scope:
            self.scopes_of[name] = scope

    def _make(self, origin: str) -> Any:
        self.server = _PerAccount(self, origin)
        self.add_tool("whoami")
        self.add_tool("send", annotations=ToolAnnotations(destructive_hint=True))

        @self.server.resource("mail://{folder}")
        def letters(folder: str, ctx: Context) -> str:
            """Letters of the account."""
            return f"{folder} of {_account_of(ctx.request_context)}"

        @self.server.prompt()
        def summary() -> str:
            """Ask for a summary."""
            return "Sum up my letters."

        inner = self.server.streamable_http_app()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                await self._answer(inner, scope, receive, send)
            else:
                await inner(scope, receive, send)

        return app

    async def _answer(self, inner: Any, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = request.url.path
        self.requests.append((request.method, path, dict(request.headers)))
        if path.startswith(_PRM):
            await self._metadata(path)(scope, receive, send)
            return
        body = await request.body()
        message = _message(body)
        if refusal := self._refusal(request, message):
            self.refused.append((refusal.status_code, message.get("method", "")))
            await refusal(scope, receive, send)
            return
        is_read = False

        async def receive_again() -> MutableMapping[str, Any]:
            nonlocal is_read
            if is_read:
                return await receive()
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send_challenge(answer: MutableMapping[str, Any]) -> None:
            if answer["type"] == "http.response.start" and answer["status"] in (401, 403):
                self.refused.append((answer["status"], message.get("method", "")))
                answer["headers"] = self._challenge(answer["status"], answer["headers"])
            await send(answer)

        await inner(scope, receive_again, send_challenge)

    def _refusal(self, request: Request, message: dict[str, Any]) -> Response | None:
        if message.get("method") != "tools/call":
            return None
        name = message["params"]["name"]
        if name in self.forbids:
            return Response("Forbidden", status_code=403)
        wanted = self.scopes_of.get(name)
        token = self.issuer.accounts.live(_bearer(request))
        if wanted is None or token is None or wanted in token.scopes:
            return None
        parts = ['error="insufficient_scope"', f'scope="{wanted}"']
        if self.names_metadata:
            parts.append(f'resource_metadata="{self.metadata_url}"')
        headers = {"www-authenticate": "Bearer " + ", ".join(parts)} if self.challenges else {}
        return JSONResponse({"error": "insufficient_scope"}, status_code=403, headers=headers)

    def _challenge(
        self, status: int, headers: list[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        kept = [pair for pair in headers if pair[0].lower() != b"www-authenticate"]
        if not self.challenges:
            return kept
        error = "invalid_token" if status == 401 else "insufficient_scope"
        scope = self.challenge_scope if status == 401 else " ".join(self.required_scopes)
        parts = [f'error="{error}"']
        if scope:
            parts.append(f'scope="{scope}"')
        if self.names_metadata:
            parts.append(f'resource_metadata="{self.metadata_url}"')
        return [*kept, (b"www-authenticate", f"Bearer {', '.join(parts)}".encode())]

    def _metadata(self, path: str) -> Response:
        where = "root" if path == _PRM else "path"
        if where not in self.metadata_at:
            return Response(status_code=404)
        document = ProtectedResourceMetadata(
            resource=AnyHttpUrl(self.url),
            authorization_servers=[AnyHttpUrl(self.issuer.url)],
            scopes_supported=list(self.required_scopes),
        ).model_dump(mode="json", exclude_none=True)
        document |= {
            "resource": self.url,
            "authorization_servers": [self.issuer.url],
            **self.metadata_overrides,
        }
        return JSONResponse({name: value for name, value in document.items() if value is not None})

    async def verify_token(self, token: str) -> AccessToken | None:
        """Ask the issuer, in this process, what the token is worth."""
        return None if self.refuses else self.issuer.accounts.live(token)


class _PerAccount(MCPServer):
    """Shows each account the tools that are for it."""

    def __init__(self, behind: ProtectedServer, origin: str) -> None:
        self.behind = behind
        super().__init__(
            "protected",
            version="1.0",
            log_level="ERROR",
            token_verifier=behind,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(behind.issuer.url),
                resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
                required_scopes=list(behind.required_scopes),
                validate_token_resource=True,
            ),
        )

    async def _handle_list_tools(self, ctx: ServerRequestContext[Any], params: Any) -> Any:
        account = _account_of(ctx)
        self.behind.listed.append(account)
        only_for = self.behind.only_for
        shown = [
            tool
            for tool in await self.list_tools()
            if account in only_for.get(tool.name, {account})
        ]
        return ListToolsResult(tools=shown)


def _account_of(ctx: ServerRequestContext[Any]) -> str:
    request = cast("Request", ctx.request)
    return str(request.scope["user"].access_token.subject)


def _bearer(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _message(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
