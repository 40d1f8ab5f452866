"""Servers' own icons: fetched by Trellis, drawn anew, and shown from its own origin to those who see the server."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse
from mcp.types import Icon
from PIL import Image

from mcp_servers.client.icon_sources import LONGEST_DATA, icon_sources
from mcp_servers.models import McpServer, ServerIcon
from mcp_servers.registry.icons import SIDE, keep_icon
from mcp_servers.registry.services import inspection
from tests import documents
from tests.factories import Tenant
from tests.fakes.mcp_server import CountingServer, Listening
from tests.mcp_servers.factories import http_server, looked_at

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
BODIES = {
    "/good.png": documents.png(300, 150),
    "/drawing.png": SVG,
    "/bomb.png": documents.png_that_claims(50_000),
    "/long.png": documents.png() + b"\0" * 1_000_000,
}


class Pictures:
    """A host of icons that counts who asks."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.listening = Listening(self._app)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        self.asked.append(scope["path"])
        moved = scope["path"] == "/moved.png"
        head = [(b"content-type", b"image/png"), *([(b"location", b"/good.png")] if moved else [])]
        status = 302 if moved else 200
        await send({"type": "http.response.start", "status": status, "headers": head})
        body = BODIES.get(scope["path"], b"")
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def pictures() -> Iterator[Pictures]:
    host = Pictures()
    yield host
    host.listening.stop()


def icon_of(server: McpServer) -> ServerIcon | None:
    return ServerIcon.objects.for_workspace(server.workspace_id).filter(server=server).first()


@pytest.mark.django_db(transaction=True)
def test_a_servers_icon_is_drawn_anew_and_served_from_our_origin(
    tenant: Tenant, counting: CountingServer, pictures: Pictures
) -> None:
    """SEC-420: asked for once by Trellis, never by browsers; a letter stands in where there is none."""
    source = f"{pictures.listening.origin}/good.png"
    counting.server._lowlevel_server.icons = [
        Icon(src="https://icons.example/x.svg", mime_type="image/svg+xml"),
        Icon(src=source, mime_type="image/png", sizes=["300x150"]),
    ]
    server = looked_at(tenant, http_server(tenant, counting.url))
    looked_at(tenant, server)
    assert pictures.asked == ["/good.png"]
    kept = icon_of(server)
    assert kept is not None
    assert source not in str(kept.__dict__)

    client = tenant.client("member")
    home = client.get(reverse("chat:home", args=[tenant.workspace.slug]))
    address = reverse("mcp_servers:icon", args=[tenant.workspace.slug, server.pk])
    assert home.context["boot"]["server_icons"] == {str(server.pk): f"{address}?v={kept.digest}"}
    icons = reverse("mcp_servers:icons", args=[tenant.workspace.slug])
    assert client.get(icons).json() == home.context["boot"]["server_icons"]
    answer = client.get(address)
    assert answer["Content-Type"] == "image/png"
    with Image.open(io.BytesIO(answer.content)) as image:
        assert (image.format, image.size) == ("PNG", (SIDE, SIDE // 2))

    keep_icon(server, (), retries=False)
    assert icon_of(server) is None
    assert client.get(address).status_code == 404
    assert client.get(icons).json() == {}


@pytest.mark.django_db(transaction=True)
def test_open_pages_hear_of_a_picture_that_is_new_or_gone(
    tenant: Tenant, counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-751: after it is kept, and not each time that a server is looked at."""
    data = base64.b64encode(BODIES["/good.png"]).decode()
    icon = Icon(src=f"data:image/png;base64,{data}", mime_type="image/png")
    server = http_server(tenant, counting.url)
    kept: list[bool] = []

    def note(server: McpServer, *, kind: str = "server.changed") -> None:
        if kind == "server.changed":
            row = icon_of(server)
            kept.append(row is not None and bool(row.digest))

    monkeypatch.setattr(inspection, "tell", note)
    counting.server._lowlevel_server.icons = [icon]
    for _ in range(2):
        looked_at(tenant, server)
    assert kept == [True]
    assert [keep_icon(server, (), retries=False) for _ in range(2)] == [True, False]


@pytest.mark.django_db(transaction=True)
def test_what_is_no_small_picture_is_not_shown(
    tenant: Tenant, pictures: Pictures, settings: Any
) -> None:
    """SEC-421: drawings, bombs, long and moved ones, closed networks; asked for again only when somebody wants it."""
    server = http_server(tenant, "https://mcp.example/mcp")
    origin = pictures.listening.origin
    drawing = base64.b64encode(SVG).decode()
    bad = (
        *(f"{origin}{path}" for path in ("/drawing.png", "/bomb.png", "/long.png", "/moved.png")),
        *(f"data:image/png;base64,{drawing}", "data:text/html,x", "ftp://icons.example/x.png"),
    )
    for source in bad:
        keep_icon(server, [source], retries=False)
        kept = icon_of(server)
        assert kept is not None
        assert (bytes(kept.content), kept.digest) == (b"", ""), source
    keep_icon(server, [bad[3]], retries=False)
    asked = len(pictures.asked)
    keep_icon(server, [bad[3]], retries=False)
    assert len(pictures.asked) == asked
    keep_icon(server, [bad[3]], retries=True)
    assert len(pictures.asked) == asked + 1

    settings.TRELLIS = settings.TRELLIS.model_copy(update={"allowed_networks": ()})
    keep_icon(server, [f"{origin}/good.png"], retries=True)
    assert len(pictures.asked) == asked + 1
    data = base64.b64encode(BODIES["/good.png"]).decode()
    keep_icon(server, [bad[0], f"data:image/png;base64,{data}"], retries=False)
    kept = icon_of(server)
    assert kept is not None
    assert kept.digest


def test_icons_of_a_fitting_size_come_first() -> None:
    """SEC-421: and no drawing, nor anything that is too long, is looked at."""
    icons = [
        Icon(src="https://i.example/16.png", sizes=["16x16"]),
        Icon(src="https://i.example/unknown.png"),
        Icon(src="https://i.example/96.png", sizes=["16x16", "96x96"]),
        Icon(src="https://i.example/any.svg", sizes=["any"]),
        Icon(src="data:image/png;base64," + "A" * LONGEST_DATA),
        Icon(src="https://i.example/512.png", sizes=["512x512"]),
    ]
    names = [source.rsplit("/", 1)[1] for source in icon_sources(icons)]
    assert names == ["96.png", "512.png", "unknown.png"]
    assert icon_sources(None) == ()
