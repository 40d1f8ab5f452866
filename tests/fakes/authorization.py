"""A real OAuth authorization server on a real port: the SDK's handlers, over accounts and tokens in memory.

It keeps every request it was sent, and a test may change what it says of itself, how it answers and who is at its
page. Source: RFC 6749, 7009, 7591, 7636, 8414, 8707, 9207; OpenID Connect Core 1.0.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

import anyio.to_thread
import httpx2
from mcp.server.auth.routes import build_metadata, create_auth_routes
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from tests.fakes.accounts import SCOPES, Accounts, at_page
from tests.fakes.mcp_server import Listening, Receive, Scope, Send

_ENDPOINTS = ("authorize", "token", "register", "revoke", "userinfo", "consent")
_HELD_SECONDS = 60.0


@dataclass
class Recorded:
    """One request, as it came in."""

    endpoint: str
    """authorize, token, register, revoke, userinfo, consent, or metadata."""
    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        """The body of a registration."""
        return json.loads(self.body)


@dataclass
class Failure:
    """An answer in place of the real one."""

    status: int
    body: bytes
    content_type: str
    times: int | None


@dataclass
class Held:
    """Requests to one endpoint, waiting to be let go."""

    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let them go on."""
        self.released.set()


class Issuer:
    """An authorization server.

    Args:
        path: of the issuer's URL, for example "/tenant1"; its metadata then stand where RFC 8414 puts them.
    """

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.accounts = Accounts()
        self.requests: list[Recorded] = []
        self.metadata_overrides: dict[str, Any] = {}
        """What the metadata say otherwise; None leaves a field out."""
        self.serves: set[str] = {"oauth"}
        """Which documents there are: oauth (RFC 8414), openid (OpenID Connect discovery)."""
        self.iss: str | None = "right"
        """In the redirect: right, any other text as it stands, or None for nothing."""
        self.asks = False
        """Whether a person must press a button at its page; otherwise it redirects at once."""
        self.id_tokens = False
        """Whether an ID token with the account comes with the access token."""
        self._failures: dict[str, Failure] = {}
        self._held: dict[str, Held] = {}
        self._listening = Listening(make=self._make)

    # Where it is

    @property
    def url(self) -> str:
        """The issuer, as its metadata spell it."""
        return self._listening.origin + self.path

    def endpoint(self, name: str) -> str:
        """The address of authorize, token, register, revoke or userinfo."""
        return f"{self.url}/{name}"

    def stop(self) -> None:
        """End the server."""
        for held in self._held.values():
            held.release()
        self._listening.stop()

    # The person at its page

    def consent(self, url: str, account: str = "") -> dict[str, str]:
        """Follow the sign-in's address as a browser does, and answer what the redirect back carries.

        The account that is signed in here is `accounts.name`, unless one is named; with `accounts.denies` the person
        says no. Raises AssertionError when the page is an error and nothing is redirected.
        """
        return dict(parse_qsl(urlsplit(self.redirect_back(url, account)).query))

    def redirect_back(self, url: str, account: str = "") -> str:
        """As `consent`, with the whole address of the redirect."""
        headers = {"x-account": account} if account else {}
        answer = httpx2.get(url, headers=headers, follow_redirects=False, timeout=30)
        assert answer.status_code == 302, f"{answer.status_code}: {answer.text[:500]}"
        return str(answer.headers["location"])

    # What it was asked

    def at(self, endpoint: str) -> list[Recorded]:
        """Requests to one endpoint so far."""
        return [request for request in list(self.requests) if request.endpoint == endpoint]

    def token_requests(self, grant_type: str = "") -> list[dict[str, str]]:
        """Forms sent to the token endpoint, of one grant type or of all."""
        forms = [request.form for request in self.at("token")]
        return [form for form in forms if not grant_type or form.get("grant_type") == grant_type]

    # How it answers

    def fail(
        self, endpoint: str, *, status: int = 400, error: str = "", times: int | None = None
    ) -> None:
        """Answer that endpoint with a failure: an OAuth error, or a status with a page that is no JSON."""
        if error:
            body = json.dumps({"error": error, "error_description": f"{error}, says the issuer"})
            self._failures[endpoint] = Failure(status, body.encode(), "application/json", times)
        else:
            self._failures[endpoint] = Failure(status, b"<h1>Broken</h1>", "text/html", times)

    def answer(self, endpoint: str, document: Any, *, status: int = 200) -> None:
        """Answer that endpoint with a document instead of what is true."""
        body = json.dumps(document).encode()
        self._failures[endpoint] = Failure(status, body, "application/json", None)

    def recover(self, endpoint: str) -> None:
        """Answer that endpoint properly again."""
        self._failures.pop(endpoint, None)

    @contextlib.contextmanager
    def held(self, endpoint: str) -> Iterator[Held]:
        """Keep requests to that endpoint waiting until they are released, at the latest at the end of the block."""
        held = self._held[endpoint] = Held()
        try:
            yield held
        finally:
            held.release()
            self._held.pop(endpoint, None)

    def add_client(
        self, client_id: str, secret: str = "", *redirect_uris: str, **fields: Any
    ) -> OAuthClientInformationFull:
        """A client that was registered by hand; without redirect URIs it is one for client credentials."""
        client = OAuthClientInformationFull.model_validate(
            {
                "client_id": client_id,
                "client_secret": secret or None,
                "redirect_uris": list(redirect_uris) or None,
                "token_endpoint_auth_method": "client_secret_basic" if secret else "none",
                "grant_types": ["authorization_code", "refresh_token", "client_credentials"],
                "issuer": self.url,
                **fields,
            }
        )
        self.accounts.clients[client_id] = client
        return client

    def metadata(self) -> dict[str, Any]:
        """What it says of itself."""
        document = build_metadata(
            AnyHttpUrl(self.url),
            None,
            ClientRegistrationOptions(enabled=True, valid_scopes=list(SCOPES)),
            RevocationOptions(enabled=True),
        ).model_dump(mode="json", exclude_none=True)
        methods = ["client_secret_post", "client_secret_basic", "none"]
        document |= {
            "issuer": self.url,
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": methods,
            "authorization_response_iss_parameter_supported": True,
            "userinfo_endpoint": self.endpoint("userinfo"),
            "jwks_uri": self.endpoint("jwks"),
            **self.metadata_overrides,
        }
        return {name: value for name, value in document.items() if value is not None}

    # The application

    def _make(self, origin: str) -> Any:
        self.accounts.consent_url = f"{origin}{self.path}/consent"
        issuer = AnyHttpUrl(origin + self.path)
        routes = create_auth_routes(
            self.accounts,
            issuer,
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=list(SCOPES), default_scopes=list(SCOPES)
            ),
            revocation_options=RevocationOptions(enabled=True),
        )
        own = [
            Route("/consent", self._consent_page, methods=["GET", "POST"]),
            Route("/userinfo", self._userinfo),
        ]
        inner = Starlette(
            routes=[*self._documents(), Mount(self.path or "/", routes=[*own, *routes[1:]])]
        )

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                await self._answer(inner, scope, receive, send)
            else:
                await inner(scope, receive, send)

        return app

    def _documents(self) -> list[Route]:
        async def document(request: Request) -> Response:
            kind = "openid" if "openid" in request.url.path else "oauth"
            if kind not in self.serves:
                return Response(status_code=404)
            return JSONResponse(self.metadata())

        paths = [
            f"/.well-known/oauth-authorization-server{self.path}",
            f"/.well-known/openid-configuration{self.path}",
            f"{self.path}/.well-known/openid-configuration",
        ]
        return [Route(path, document) for path in dict.fromkeys(paths)]

    async def _answer(self, inner: Any, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        recorded = _recorded(request, await request.body())
        self.requests.append(recorded)
        if held := self._held.get(recorded.endpoint):
            held.arrived.set()
            await anyio.to_thread.run_sync(held.released.wait, _HELD_SECONDS)
        if failure := self._failure(recorded.endpoint):
            answer = Response(failure.body, failure.status, media_type=failure.content_type)
            await answer(scope, receive, send)
            return
        self.accounts.asks = self.asks
        self.accounts.id_token_issuer = self.url if self.id_tokens else ""
        at_page.set(recorded.headers.get("x-account", ""))
        if recorded.form.get("grant_type") == "client_credentials":
            answer = await self.accounts.client_credentials(recorded.form, recorded.headers)
            await answer(scope, receive, send)
            return
        body = _with_client_id(recorded)

        async def receive_again() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        headers = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))

        async def send_with_iss(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [self._with_iss(*pair) for pair in message["headers"]]
            await send(message)

        await inner({**scope, "headers": headers}, receive_again, send_with_iss)

    def _failure(self, endpoint: str) -> Failure | None:
        failure = self._failures.get(endpoint)
        if failure is not None and failure.times is not None:
            failure.times -= 1
            if failure.times < 0:
                return None
        return failure

    def _with_iss(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        location = value.decode("latin-1")
        if name.lower() != b"location" or location.startswith(self.accounts.consent_url):
            return name, value
        if self.iss is None:
            return name, value
        parts = urlsplit(location)
        given = [*parse_qsl(parts.query), ("iss", self.url if self.iss == "right" else self.iss)]
        return name, urlunsplit(parts._replace(query=urlencode(given))).encode("latin-1")

    async def _consent_page(self, request: Request) -> Response:
        if request.method == "POST":
            form = await request.form()
            back = self.accounts.decided(str(form.get("ticket")), form.get("answer") == "allow")
            return RedirectResponse(back, status_code=302)
        ticket = request.query_params.get("ticket", "")
        return HTMLResponse(
            "<!doctype html><title>Sign in at the issuer</title><form method=post>"
            f'<input type=hidden name=ticket value="{ticket}">'
            "<button name=answer value=allow>Allow</button>"
            "<button name=answer value=deny>Deny</button></form>"
        )

    async def _userinfo(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        found = self.accounts.live(token)
        if found is None:
            return Response(status_code=401)
        return JSONResponse({"sub": found.subject, "email": found.subject})


def _recorded(request: Request, body: bytes) -> Recorded:
    path = request.url.path
    name = path.rsplit("/", 1)[-1]
    is_form = "form-urlencoded" in request.headers.get("content-type", "")
    form = parse_qs(body.decode("latin-1"), keep_blank_values=True) if is_form else {}
    return Recorded(
        endpoint="metadata" if "/.well-known/" in path else name if name in _ENDPOINTS else path,
        method=request.method,
        path=path,
        query=dict(request.query_params),
        form={key: values[-1] for key, values in form.items()},
        body=body,
        headers=dict(request.headers),
    )


def _with_client_id(recorded: Recorded) -> bytes:
    """The body with the client's id in it: who proves itself by HTTP Basic need not repeat it there, RFC 6749 §2.3.1."""
    scheme, _, encoded = recorded.headers.get("authorization", "").partition(" ")
    if scheme != "Basic" or not recorded.form or "client_id" in recorded.form:
        return recorded.body
    client_id = base64.b64decode(encoded).decode().split(":", 1)[0]
    return recorded.body + b"&" + urlencode({"client_id": client_id}).encode()
