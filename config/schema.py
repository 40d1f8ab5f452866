"""What the OpenAPI document says of every operation: who may call, headers, and the one shape of errors."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter
from drf_standardized_errors.openapi import AutoSchema
from rest_framework import serializers

from workspaces.api import PlatformViewSet
from workspaces.api.idempotency import HEADER, MAX_LENGTH


class ErrorItemSerializer(serializers.Serializer[Any]):
    """One thing that is wrong."""

    code = serializers.CharField(help_text="Stable, for programs.")
    detail = serializers.CharField(help_text="For people.")
    attr = serializers.CharField(allow_null=True, help_text="The field at fault, if it is one.")


class ErrorSerializer(serializers.Serializer[Any]):
    """The shape of every error."""

    type = serializers.ChoiceField(choices=["validation_error", "client_error", "server_error"])
    errors = ErrorItemSerializer(many=True)  # type: ignore[assignment]  # the framework's own attribute of that name


class ApiSchema(AutoSchema):
    """Adds to each operation what the foundation does: errors of one shape, headers, limits."""

    def get_override_parameters(self) -> list[Any]:
        """Headers that every operation reads; one of the platform is of no workspace."""
        workspace = OpenApiParameter(
            "X-Workspace",
            str,
            OpenApiParameter.HEADER,
            description="Slug of the workspace, for a session; a token has its own.",
        )
        parameters: list[Any] = [] if isinstance(self.view, PlatformViewSet) else [workspace]
        if self.method == "POST":
            parameters.append(
                OpenApiParameter(
                    HEADER,
                    {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": MAX_LENGTH,
                        "pattern": "^[!-~]+$",
                    },
                    OpenApiParameter.HEADER,
                    description="The same key and request get the first answer; nothing is done again.",
                )
            )
        return parameters

    def _should_add_error_response(self, responses: dict[str, Any], status_code: str) -> bool:
        if status_code == "404" and isinstance(self.view, PlatformViewSet):
            return "404" not in responses  # to everybody but the platform's owner
        if status_code == "409" and self.method == "DELETE":
            return "409" not in responses  # still in use
        if status_code in {"409", "413", "422"}:
            # Lists are narrowed by words that people type, some of which cannot be understood.
            is_typed = status_code == "422" and self.method == "GET" and self._is_list_view()
            has_body = self.method not in {"GET", "DELETE"}
            return (has_body or is_typed) and status_code not in responses
        if status_code == "400":
            return "400" not in responses
        should: bool = super()._should_add_error_response(responses, status_code)
        return should


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """API tokens."""

    target_class = "workspaces.api.authentication.ApiTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """A bearer token."""
        return {"type": "http", "scheme": "bearer"}


class CookieScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Sessions of people."""

    target_class = "workspaces.api.authentication.CookieAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """The session cookie."""
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
