"""What a browser needs to install Trellis as an app, and what it shows while the server cannot be reached.

The service worker answers page loads alone, and only where the network fails. It keeps one page of ours that says so,
and nothing of anybody's data. It also shows the notifications that come while Trellis is closed.
"""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

_DAY: Final = 86_400
_GREEN: Final = "#1d6b4a"
_SIZES: Final = (192, 512)


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
    files = ("plain.css", "favicon.svg", "offline.js")
    kept = [reverse("offline"), *(static(f"web/{name}") for name in files)]
    context = {"kept": kept, "icon": static("web/icon-192.png")}
    answer = render(request, "config/worker.js", context, content_type="text/javascript")
    answer["Cache-Control"] = "no-cache"
    return answer


@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    """The page that the service worker keeps."""
    answer = render(request, "errors/offline.html")
    answer["Cache-Control"] = "public, max-age=0"
    return answer
