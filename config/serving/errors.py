"""Error pages: short, without details, with an id that finds the log line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from workspaces.database import drop_dead_connections, is_unavailable
from workspaces.errors import ASKED_AGAIN, RETRY_SECONDS, DomainError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http.response import HttpResponseBase
    from django.utils.functional import _StrPromise

_TEXTS = {
    400: ("bad_request", gettext_noop("This request could not be understood.")),
    403: ("forbidden", gettext_noop("You may not do this.")),
    404: ("not_found", gettext_noop("There is nothing here.")),
    500: ("error", gettext_noop("Something went wrong on our side. It has been logged.")),
    503: (
        "unavailable",
        gettext_noop("This is not possible at the moment. Please try again soon."),
    ),
}
UNSENT = "#unsent"
"""Behind a page's address: what was sent from it did not arrive. `keeping-typed.ts` puts back what was typed."""
_OAUTH_PATHS = frozenset({"/oauth/token", "/oauth/revoke", "/oauth/register"})
"""What OAuth clients call, and read errors of as RFC 6749, section 5.2 has them."""
_OAUTH_CODES = {500: "server_error", 503: "temporarily_unavailable"}


def _answer(
    request: HttpRequest,
    status: int,
    *,
    detail: str | None = None,
    code: str | None = None,
    is_about_access: bool = True,
    retry_seconds: int = RETRY_SECONDS,
) -> HttpResponse:
    known_code, known_text = _TEXTS.get(status, ("error", _("This did not work. Try again.")))
    code, text = code or known_code, detail or _(known_text)
    headers = _headers(status, retry_seconds)
    if request.path_info.startswith("/api/"):
        kind = "server_error" if status >= 500 else "client_error"
        errors = [{"code": code, "detail": text, "attr": None}]
        return JsonResponse({"type": kind, "errors": errors}, status=status, headers=headers)
    if request.path_info in _OAUTH_PATHS:
        return JsonResponse(
            {"error": _OAUTH_CODES.get(status, "invalid_request"), "error_description": text},
            status=status,
            headers={"Cache-Control": "no-store", **headers},
        )
    request_id = str(getattr(request, "request_id", ""))
    context = {
        "status": status,
        "title": text,
        "request_id": request_id,
        "back": _way_back(request) if request.method == "POST" and status < 500 else "",
    }
    names = [f"{status}.html", "400.html" if status < 500 else "500.html"]
    has_own_page = status in _TEXTS.keys() - {400} and is_about_access
    if detail is not None and status < 500 and not has_own_page:
        names.insert(0, "errors/refused.html")
    try:
        body = render_to_string(names, context, request if status < 500 else None)
    except TemplateDoesNotExist:
        body = format_html(
            "<!doctype html><title>{}</title><p>{}</p><p>{}</p>", status, text, request_id
        )
    return HttpResponse(body, status=status, headers=headers)


def _in_words(message: str, status: int, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """What a part of a page shows as a notice."""
    plain = "text/plain; charset=utf-8"
    return HttpResponse(message, status=status, content_type=plain, headers=headers)


def page_before(request: HttpRequest) -> str:
    """Give the address of the page of ours from which the request came; nothing for any other."""
    came_from = request.headers.get("Referer", "")
    try:
        host = request.get_host()
    except DisallowedHost:
        return ""
    is_ours = url_has_allowed_host_and_scheme(came_from, {host}, require_https=request.is_secure())
    return came_from if is_ours else ""


def _way_back(request: HttpRequest) -> str:
    """Give the address of the form that was sent, where its page puts back what was typed; nothing if it is not known."""
    before = page_before(request).partition("#")[0]
    return f"{before}{UNSENT}" if before else ""


def _headers(status: int, retry_seconds: int) -> dict[str, str]:
    return {"Retry-After": str(retry_seconds)} if status in ASKED_AGAIN else {}


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400; whoever runs the platform for the first time under a new name reads which setting lists names."""
    if isinstance(exception, DisallowedHost):
        message = _(
            "Trellis does not answer under this name. TRELLIS_PUBLIC_ORIGINS lists its addresses."
        )
        return _answer(request, 400, detail=message)
    return _answer(request, 400)


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403."""
    return _answer(request, 403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404: the same for a missing page and for another tenant's; in words for a part of a page."""
    if request.headers.get("HX-Request"):
        message = _("This is not here any more, or you no longer have access to it.")
        return _in_words(message, 404)
    if request.path_info.startswith("/api/"):
        return _answer(
            request, 404, detail=_("There is nothing at this address. /api/docs/ lists all.")
        )
    return _answer(request, 404)


def ends_with_slash(address: str) -> HttpResponse:
    """308 to the address with its slash: what follows it sends the same method and body there; others read why."""
    fault = {"code": "no_slash", "detail": _("Addresses end with a slash."), "attr": None}
    return JsonResponse(
        {"type": "client_error", "errors": [fault]}, status=308, headers={"Location": address}
    )


def signed_out(request: HttpRequest) -> HttpResponse:
    """401 in words for a part of a page, which shows them as a notice, instead of the page to sign in."""
    message = (
        _("You were signed out, so nothing was saved. Reload the page to sign in again.")
        if request.method == "POST"
        else _("You were signed out. Reload the page to sign in again.")
    )
    return _in_words(message, 401)


def only_for_forms(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """405 for an address that somebody opens and that only takes what forms send: browsers show nothing for it."""
    is_programs = response.headers.get("Content-Type", "").startswith("application/json")
    if is_programs or request.path_info.startswith("/api/"):
        return response
    message = _(
        "This address only takes what a form sends. Go to the page of the form, and send it there."
    )
    page = _answer(request, 405, detail=message)
    page.headers["Allow"] = response.headers.get("Allow", "POST")
    return page


def server_error(request: HttpRequest) -> HttpResponse:
    """500, or 503 while the database is away: needs neither database nor session, which may be what is broken."""
    if is_unavailable(sys.exc_info()[1]):
        drop_dead_connections()
        return _answer(request, 503)
    return _answer(request, 500)


def status_of(error: BaseException | None) -> int:
    """What is answered to a failure that nobody expected, or that the REST interface reports beside its answer."""
    if isinstance(error, DomainError):
        return error.status
    return 503 if is_unavailable(error) else 500


def domain_error(request: HttpRequest, error: DomainError) -> HttpResponse:
    """The status and words of an expected failure; the words alone for a part of a page, which shows them as a notice."""
    if request.headers.get("HX-Request"):
        return _in_words(error.message, error.status, _headers(error.status, error.retry_seconds))
    return _answer(
        request,
        error.status,
        detail=error.message,
        code=error.code,
        retry_seconds=error.retry_seconds,
    )


def csrf_failure(request: HttpRequest, reason: str | _StrPromise = "") -> HttpResponse:
    """403 for a change that did not prove it came from one of our pages."""
    if request.COOKIES:
        message = _("This form has run out or came from another site. Go back, reload, try again.")
    else:
        message = _(
            "Your browser sent no cookie, and Trellis needs one to know who you are. Allow cookies for this site in"
            " your browser. Then go back, reload and try again."
        )
    return _answer(request, 403, detail=message, is_about_access=False)
