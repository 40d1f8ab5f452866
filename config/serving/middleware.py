"""HTTP middleware that belongs to the whole product: content security policy, common headers, compression."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs, urlencode, urlsplit

import structlog
from csp.constants import HEADER
from csp.middleware import CheckableLazyObject, CSPMiddleware, PolicyParts
from csp.utils import build_policy
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.middleware.common import CommonMiddleware
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import resolve_url
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django_structlog import signals
from django_structlog.middlewares import RequestMiddleware
from rest_framework.permissions import SAFE_METHODS
from uuid_utils.compat import uuid7

from config.serving import errors
from workspaces.database import give_back_connections
from workspaces.errors import DomainError
from workspaces.middleware import client_address
from workspaces.write_conflicts import as_conflict

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

_COMPRESSIBLE = re.compile(
    r"text/|application/(javascript$|json$|(.+\+)?(json|xml|yaml)$|vnd\.oai\.openapi)"
)
_WORTH_RESUMING = 2**20
"""Bytes of a file from which on it is better to go on with a broken download than to have less to load."""
_UTF_8 = frozenset({"utf-8", "utf8"})
_PROBES = frozenset({"/healthz", "/readyz"})
_PARTS_OF_PAGES = re.compile(r"text/(javascript|css)\b|font/")
"""Types of static files that browsers never show by themselves: the policy that holds is that of their page."""
_CHANGES_POLICY = frozenset(
    {"_csp_config", "_csp_update", "_csp_replace", "_csp_exempt"}
    | {"_csp_config_ro", "_csp_update_ro", "_csp_replace_ro", "_csp_exempt_ro"}
)
"""What views put on an answer whose policy is another one."""
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class ContentSecurityPolicyMiddleware(CSPMiddleware):
    """The strict policy everywhere, and the admin's own policy under ``/admin/`` only."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if _is_of_admin(request) and not report_only:
            parts.config = settings.ADMIN_CONTENT_SECURITY_POLICY
        return parts

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Leave out what says nothing: a page loads some twenty files, each with half a kilobyte of policies."""
        if is_part_of_a_page(request, response):
            return response
        if hasattr(request, "_csp_nonce") or not _CHANGES_POLICY.isdisjoint(vars(response)):
            return super().process_response(request, response)
        # Nearly all other answers have one of two policies, which need not be put together each time.
        response.headers.setdefault(HEADER, _policy_without_nonce(is_admin=_is_of_admin(request)))
        request.csp_nonce = CheckableLazyObject(self._csp_nonce_post_response)  # type: ignore[attr-defined]  # as the library does
        return response


def _is_of_admin(request: HttpRequest) -> bool:
    return request.path_info.startswith("/admin/")


@cache
def _policy_without_nonce(*, is_admin: bool) -> str:
    return build_policy(settings.ADMIN_CONTENT_SECURITY_POLICY if is_admin else None)


def is_part_of_a_page(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Tell whether this is a static script, style sheet or font, so no document of its own."""
    if not request.path_info.startswith(settings.STATIC_URL):
        return False
    return _PARTS_OF_PAGES.match(response.headers.get("Content-Type", "")) is not None


class ResponseHeadersMiddleware(MiddlewareMixin):
    """Headers that Django has no setting for, on every answer; pages of people are not stored by caches."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Add what is not there yet."""
        if not is_part_of_a_page(request, response):
            response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
            response.headers.setdefault("X-Frame-Options", "DENY")
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        if not request.path_info.startswith(settings.STATIC_URL):
            response.headers.setdefault("Cache-Control", "no-store")
        return response


class ProbeMiddleware(MiddlewareMixin):
    """Answers probes under whatever name they ask: balancers, clusters and Prometheus know a process by its own address.

    What they say depends on no name. `/metrics` also answers by network: without a token it needs a name of ours,
    or else a page could have a browser in that network read it under a name of its own.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Have these asked under a name of ours."""
        has_token = request.path_info == "/metrics" and "HTTP_AUTHORIZATION" in request.META
        if has_token or request.path_info in _PROBES:
            request.META["HTTP_HOST"] = settings.PROBED_HOST


class StreamMiddleware(MiddlewareMixin):
    """A stream holds no database connection while somebody reads it; what it reads, it reads by `in_database`."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Give back what the view has used."""
        if response.streaming:
            give_back_connections()
        return response


class RequestLogMiddleware(RequestMiddleware):
    """One log line for each request, under an id that is ours and never the caller's."""

    def prepare(self, request: HttpRequest) -> None:
        """Give the request its id, which the workspace's middleware, the log and the answer share."""
        request.META["HTTP_X_REQUEST_ID"] = str(uuid7())
        super().prepare(request)

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        """Write the line, and have Django write no second one (`config.telemetry.logs`)."""
        super().handle_response(request, response)
        request.is_logged = True  # type: ignore[attr-defined]

    @classmethod
    def bind_ip(cls, request: HttpRequest) -> None:
        """The address that `config.serving.edge` has found; headers that a caller can invent are not looked at."""
        structlog.contextvars.bind_contextvars(ip=client_address(request))

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        """Without what comes after the path, where an issuer's codes stand and what people look for."""
        return f"{request.method} {request.path}"


def _name_status(exception: Exception, log_kwargs: dict[str, object], **_more: object) -> None:
    """Name what is answered. The library takes each failure for a 500."""
    log_kwargs["code"] = errors.status_of(exception)


signals.bind_extra_request_failed_metadata.connect(_name_status)


class FormCharsetMiddleware(MiddlewareMixin):
    """Refuses a form of any charset but UTF-8. Python has charsets that are no text, and reading one fails.

    Django does the same for the other kind of form. Source: RFC 7578, section 5.1.2: browsers name none.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Have a form that names another charset answered by 400."""
        charset = (request.content_params or {}).get("charset", "utf-8")
        if request.content_type == "multipart/form-data" and charset.lower() not in _UTF_8:
            raise BadRequest("A form has to be UTF-8.")


class SlashMiddleware(CommonMiddleware):
    """Django's, whose 301 makes clients turn a POST without the last slash into a GET: of a list, or of nothing."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Have programs repeat the same request at the address that there is."""
        is_programs = request.path_info.startswith("/api/") or request.method not in SAFE_METHODS
        if is_programs and response.status_code == 404 and self.should_redirect_with_slash(request):
            return errors.ends_with_slash(self.get_full_path_with_slash(request))
        return super().process_response(request, response)


class DomainErrorMiddleware(MiddlewareMixin):
    """Turns an expected failure in a page into the error page of its status; the REST interface has its own shape."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Give the page, or None for what was not expected."""
        expected = exception if isinstance(exception, DomainError) else as_conflict(exception)
        return errors.domain_error(request, expected) if expected is not None else None


class LostFormMiddleware(MiddlewareMixin):
    """Leads on whoever sends a form after their session ended, and whoever opens an address that only takes forms.

    A form's address has no page. Signing in would lead there, and browsers show nothing at all. Where a part of a page
    was asked for, the page to sign in would stand in its place.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Have the sign-in lead to the page that the form stood on, and say that nothing was saved."""
        if response.status_code == 405 and request.method in ("GET", "HEAD"):
            return errors.only_for_forms(request, response)
        if response.status_code != 302:
            return response
        to = urlsplit(response.headers.get("Location", ""))
        if to.path not in (resolve_url(settings.LOGIN_URL), reverse("admin:login")):
            return response
        if request.headers.get("HX-Request"):
            return errors.signed_out(request)
        if request.method == "POST" and parse_qs(to.query).get("next") == [request.get_full_path()]:
            before = urlsplit(errors.page_before(request))
            page = before._replace(scheme="", netloc="", fragment="").geturl()
            page = f"{page}{errors.UNSENT}" if page else "/"
            response.headers["Location"] = f"{to.path}?{urlencode({'next': page})}"
            message = _("You were signed out, so nothing was saved. Sign in, and send it again.")
            messages.warning(request, message)
        return response


class CompressionMiddleware(GZipMiddleware):
    """Compresses pages, scripts and JSON.

    Django appends random bytes, so that the length of a page tells nothing about a secret in it (BREACH). Streams are
    left alone: their pieces have to arrive one by one. So are long files: a download goes on after a break only where
    its bytes are the same each time.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Compress it, or leave it as it is."""
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
        if response.streaming or response.status_code == 206 or not _COMPRESSIBLE.match(kind):
            return response
        content = cast("HttpResponse", response).content
        if "Accept-Ranges" in response.headers and len(content) >= _WORTH_RESUMING:
            return response
        return super().process_response(request, response)
