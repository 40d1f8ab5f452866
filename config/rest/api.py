"""The REST router, and the one place that turns an error into an answer."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, cast

import structlog
from django.core.exceptions import RequestDataTooBig, ValidationError
from django.db import DatabaseError
from django.urls import URLPattern, URLResolver, include, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from drf_standardized_errors.formatter import ExceptionFormatter
from drf_standardized_errors.handler import ExceptionHandler
from drf_standardized_errors.types import Error
from rest_framework import exceptions
from rest_framework.authentication import SessionAuthentication
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.settings import api_settings

import audit.api
import chat.api
import config.platform.platform_api
import config.workspace_files.api
import mcp_servers.pages.api
import workspaces.api.platform
from mcp_servers.pages import extensions
from workspaces.api import account as account_api
from workspaces.api import list_views as list_views_api
from workspaces.api import members as members_api
from workspaces.api import people as people_api
from workspaces.api import profile as profile_api
from workspaces.api import requests as requests_api
from workspaces.api.parsing import BodyTooLarge
from workspaces.api.viewsets import CallerThrottle
from workspaces.database import drop_dead_connections, is_unavailable
from workspaces.errors import ASKED_AGAIN, RETRY_SECONDS, DomainError, InvalidInput
from workspaces.write_conflicts import as_conflict


class DomainValidationError(exceptions.ValidationError):
    """A service refused values: like a serializer's refusal, but 422."""

    status_code = 422


class ServiceUnavailable(exceptions.APIException):
    """503, with the time after which to ask again."""

    status_code = 503
    default_code = "unavailable"
    default_detail = "This is not possible at the moment. Please try again soon."
    wait = RETRY_SECONDS
    """The REST framework makes a Retry-After of it."""


class Refused(exceptions.APIException):
    """An expected failure of ours, with the time after which to ask again where that may help."""

    def __init__(self, error: DomainError) -> None:
        super().__init__(error.message, code=error.code)
        self.status_code = error.status
        if error.status in ASKED_AGAIN:
            self.wait = error.retry_seconds


class ApiErrors(ExceptionFormatter):
    """Names fields alone in `attr`, and gives every error a code."""

    def get_errors(self) -> list[Error]:
        """As its base; what concerns the whole body or the whole of a part names no field of the framework's own."""
        own = api_settings.NON_FIELD_ERRORS_KEY
        found: list[Error] = super().get_errors()
        for error in found:
            error.code = error.code or "invalid"
            if error.attr is not None and error.attr.rpartition(".")[2] == own:
                error.attr = error.attr.rpartition(".")[0] or None
        return found


class ApiExceptionHandler(ExceptionHandler):
    """Every error in one shape; what is not expected is a 500 without details."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        """Give the REST framework's counterpart of our errors and Django's."""
        exc = as_conflict(exc) or exc
        if isinstance(exc, InvalidInput) and exc.fields:
            return DomainValidationError(exc.fields, code=exc.code)
        if isinstance(exc, DomainError):
            return Refused(exc)
        if is_unavailable(exc):
            drop_dead_connections()
            return ServiceUnavailable()
        if isinstance(exc, RequestDataTooBig):
            return BodyTooLarge()
        if isinstance(exc, ValidationError):
            return exceptions.ValidationError(exc.messages)
        if isinstance(exc, exceptions.UnsupportedMediaType):
            taken = _types(self.context["view"].get_parsers())
            return exceptions.UnsupportedMediaType(
                "", _("Send the body with the Content-Type %(types)s.") % {"types": taken}
            )
        if isinstance(exc, exceptions.NotAcceptable):
            given = _types(self.context["view"].get_renderers())
            return exceptions.NotAcceptable(
                _("This address answers with %(types)s, which Accept does not name.")
                % {"types": given}
            )
        converted: Exception = super().convert_known_exceptions(exc)
        return converted

    def report_exception(self, exc: exceptions.APIException, response: Response) -> None:
        """Name what fails outside Trellis in the request's own line of the log. No traceback helps: nothing here is wrong."""
        if isinstance(self.exc, DomainError) and not isinstance(self.exc.__cause__, DatabaseError):
            structlog.contextvars.bind_contextvars(error=self.exc.code)
        else:
            super().report_exception(exc, response)


def _types(classes: Iterable[Any]) -> str:
    """Name the content types that a view takes or gives."""
    return ", ".join(dict.fromkeys(str(one.media_type) for one in classes))


@cache
def _document() -> dict[str, Any]:
    """Make the OpenAPI document. It depends on the code alone, and takes seconds, so each process makes it once."""
    document: dict[str, Any] = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
    return document


class OnceGenerator(SchemaGenerator):
    """Gives every caller the one document."""

    def get_schema(self, request: Any = None, public: bool = False) -> dict[str, Any]:
        """As its base."""
        return _document()


class OnceYamlRenderer(OpenApiYamlRenderer):
    """Writes the one document once; that takes half a second."""

    @staticmethod
    @cache
    def _written() -> bytes:
        written: bytes = OpenApiYamlRenderer().render(_document())  # type: ignore[no-untyped-call]
        return written

    def render(self, data: Any, media_type: Any = None, renderer_context: Any = None) -> bytes:
        """As its base, unless there is an error to write."""
        if data is _document():
            return self._written()
        return cast("bytes", super().render(data, media_type, renderer_context))  # type: ignore[no-untyped-call]


@method_decorator(cache_control(private=True, max_age=3600), name="dispatch")
class SchemaView(SpectacularAPIView):
    """The OpenAPI document; it tells nothing of any workspace, so everybody may read it, and browsers may keep it."""

    generator_class = OnceGenerator
    renderer_classes = [OnceYamlRenderer, *SpectacularAPIView.renderer_classes[1:]]
    permission_classes = ()
    authentication_classes = ()
    throttle_classes = (CallerThrottle,)


class DocsView(SpectacularSwaggerSplitView):
    """Swagger's page, from our own files and without inline scripts."""

    permission_classes = ()
    authentication_classes = (SessionAuthentication,)
    template_name = "api_docs.html"

    @extend_schema(exclude=True)
    def get(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Give the page, or its script with ``?script=``."""
        return super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]


def _router() -> SimpleRouter:
    router = SimpleRouter(use_regex_path=False)
    servers: list[tuple[str, Any]] = [*mcp_servers.pages.api.routes, *extensions.api_routes()]
    people = (
        account_api.routes,
        *(people_api.routes, members_api.routes, requests_api.routes),
        profile_api.routes,
        list_views_api.routes,
    )
    own = (*people, config.workspace_files.api.routes)
    for routes in (audit.api.routes, servers, chat.api.routes, *own):
        for prefix, viewset in routes:
            router.register(prefix, viewset, basename=prefix)
    for prefix, viewset in _platform_routes():
        router.register(f"platform/{prefix}", viewset, basename=f"platform-{prefix}")
    return router


def _platform_routes() -> list[tuple[str, Any]]:
    """What belongs to the whole installation, for its owner alone."""
    return [
        *config.platform.platform_api.platform_routes,
        *workspaces.api.platform.platform_routes,
        *mcp_servers.pages.api.platform_routes,
        *chat.api.platform_routes,
        *audit.api.platform_routes,
    ]


def _by_first_segment(patterns: Iterable[URLPattern | URLResolver]) -> list[URLResolver]:
    """The same routes behind the first segment of each: a request tries those of its own segment, and not all 300."""
    groups: dict[str, list[URLPattern]] = {}
    for pattern in patterns:
        assert isinstance(pattern, URLPattern)
        first, _slash, rest = str(pattern.pattern).partition("/")
        groups.setdefault(first, []).append(path(rest, pattern.callback, name=pattern.name))
    return [path(f"{first}/", include(inner)) for first, inner in groups.items()]


app_name = "api"
urlpatterns: list[URLPattern | URLResolver] = [
    path("schema/", SchemaView.as_view(), name="schema"),
    path("docs/", DocsView.as_view(url_name="api:schema"), name="docs"),
    *_by_first_segment(_router().urls),
]
