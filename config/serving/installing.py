"""What a browser needs to install Trellis as an app, and what it shows while the server cannot be reached.

The service worker answers page loads alone, and only where the network fails. It keeps the chat's public files, a page of
ours that says so, and for whoever is signed in the chat's page of each workspace that they opened: with their name, without
conversations and without a token. It also shows the notifications that come while Trellis is closed.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

_DAY: Final = 86_400
_GREEN: Final = "#1d6b4a"
_SIZES: Final = (192, 512)
_PLAIN: Final = ("plain.css", "favicon.svg", "offline.js")
_SHELL: Final = ("src/chat.tsx", "src/chat/conversation.tsx")
"""Sources of the chat's page and of an open conversation, as the build's manifest names them."""
_FONT: Final = "inter-latin-wght"
"""Of the fonts the one that most texts need; the others are left to the device."""


@require_safe
def manifest(request: HttpRequest) -> JsonResponse:
    """The web app manifest. Source: W3C, Web Application Manifest."""
    icons = [
        {
            "src": static(f"web/icon-{size}.png"),
            "sizes": f"{size}x{size}",
            "type": "image/png",
            "purpose": purpose,
        }
        for size in _SIZES
        for purpose in ("any", "maskable")
    ]
    content = {
        "id": "/",
        "name": "Trellis",
        "short_name": "Trellis",
        "description": _("Chat with assistants that use your tools."),
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "theme_color": _GREEN,
        "background_color": "#ffffff",
        "icons": icons,
    }
    answer = JsonResponse(content, content_type="application/manifest+json")
    answer["Cache-Control"] = f"public, max-age={_DAY}"
    return answer


@require_safe
def worker(request: HttpRequest) -> HttpResponse:
    """The service worker; it stands at the root because it serves all addresses below its own."""
    build = settings.WEB_DIST
    manifest = build / "manifest.json"
    names, release = _files_of(build, manifest.stat().st_mtime_ns if manifest.exists() else 0)
    context = {
        "kept": [reverse("offline"), *(static(f"web/{name}") for name in names)],
        "release": release,
        "login": reverse("account_login"),
        "logout": reverse("account_logout"),
        "longest_ms": settings.SESSION_COOKIE_AGE * 1000,
        "icon": static("web/icon-192.png"),
    }
    answer = render(request, "config/worker.js", context, content_type="text/javascript")
    answer["Cache-Control"] = "no-cache"
    return answer


@lru_cache(maxsize=1)
def _files_of(build: Path, changed: int) -> tuple[list[str], str]:
    """Give the files that the chat's page needs without a network, and what stands for the release they are of."""
    manifest = build / "manifest.json"
    chunks: dict[str, Any] = json.loads(manifest.read_bytes()) if manifest.exists() else {}
    found: dict[str, None] = dict.fromkeys(_PLAIN)
    todo = [name for name in _SHELL if name in chunks]
    seen = set(todo)
    while todo:
        chunk = chunks[todo.pop()]
        fonts = [name for name in chunk.get("assets", ()) if name.startswith(_FONT)]
        found |= dict.fromkeys([chunk["file"], *chunk.get("css", ()), *fonts])
        new = [name for name in chunk.get("imports", ()) if name not in seen]
        seen.update(new)
        todo += new
    digest = hashlib.sha256("\n".join(found).encode())
    for name in _PLAIN:  # the others have a hash in their names
        path = build / name
        digest.update(path.read_bytes() if path.exists() else b"")
    return list(found), digest.hexdigest()[:12]


@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    """The page that the service worker keeps."""
    answer = render(request, "errors/offline.html")
    answer["Cache-Control"] = "public, max-age=0"
    return answer
