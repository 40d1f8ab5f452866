"""What the OpenAPI document says of every operation: who may call, headers, and the one shape of errors."""

from __future__ import annotations

import re
from typing import Any, Final

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter
from drf_standardized_errors.openapi import AutoSchema
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS

from workspaces.api import ListRows, PlatformViewSet, RetrieveRow
from workspaces.api.authentication import ANY_SCOPE
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


_MEANINGS: Final = {
    "400": "The request does not have the right form.",
    "401": "There is no credential, or it is not valid, or no longer.",
    "403": "The person may not do this, or the token does not hold the scope.",
    "404": "It is not there, or it is another workspace's.",
    "405": "This address does not take the method; `Allow` names those that it takes.",
    "406": "None of the types in `Accept` can be given.",
    "409": "The state has moved on, or the first request with this key is still at work.",
    "413": "The body or the file is too large.",
    "415": "The body's `Content-Type` is not taken here.",
    "422": "Understood, and refused for its values.",
    "429": "Too many requests; `Retry-After` says how many seconds to wait.",
    "500": "Trellis made a mistake. It has been logged under the answer's `X-Request-Id`.",
    "503": "Not possible at the moment, as when the database or the audit log is out of reach. `Retry-After` says how many seconds to wait.",
    "507": "The disk or the storage for files is full or out of reach. Nothing was kept.",
}
"""What each status of an error means."""
_FORM: Final = "multipart/form-data"
"""How files are sent."""
_MOST_OF_A_SUMMARY: Final = 90
"""Characters of one line in lists of operations."""
_OF_ALL_LISTS: Final = {ListRows.list.__doc__: "List", RetrieveRow.retrieve.__doc__: "Read"}
"""What the foundation's own operations do, by what they say of themselves in the code."""


def finish(result: dict[str, Any], **_given: Any) -> dict[str, Any]:
    """Say once what each status of an error means, and refer to it: said by each operation, it was most of the document.

    And name no value that may be anything by `oneOf` with null: null would fit twice, so no null would be valid.
    """
    shared = result["components"].setdefault("responses", {})
    for path in result["paths"].values():
        for operation in path.values():
            answers = operation["responses"]
            for status, answer in answers.items():
                if status in _MEANINGS and not answer["description"]:
                    shared[f"Error{status}"] = {**answer, "description": _MEANINGS[status]}
                    answers[status] = {"$ref": f"#/components/responses/Error{status}"}
    result["components"]["responses"] = dict(sorted(shared.items()))
    _allow_null(result)
    return result


def _allow_null(part: Any) -> None:
    """Have any value be any value, wherever the document says so."""
    for inner in part.values() if isinstance(part, dict) else part:
        if isinstance(inner, dict | list):
            _allow_null(inner)
    if isinstance(part, dict) and {} in part.get("oneOf", ()):
        part["anyOf"] = part.pop("oneOf")


class ApiSchema(AutoSchema):
    """Adds to each operation what the foundation does: errors of one shape, headers, limits, and who may call."""

    def get_auth(self) -> list[Any]:
        """Name the scope that a token needs, as OpenAPI 3.1 has it; no token where none is taken."""
        ways = []
        for way in super().get_auth():
            if TokenScheme.name not in way:
                ways.append(way)
            elif self._scope is not None:
                needed = [] if self._scope == ANY_SCOPE else [self._scope]
                ways.append({TokenScheme.name: needed})
        return ways

    @property
    def _scope(self) -> str | None:
        """What a token needs; None: no token may call this."""
        view: Any = self.view
        scopes = getattr(view, "scopes", None)
        if scopes is None or view.action in getattr(view, "needs_person", ()):
            return None
        needed: str = scopes.read if self.method in SAFE_METHODS else scopes.write
        return needed

    def get_summary(self) -> str:
        """Give one line for lists of operations: what was written for it, or the first sentence of what it says."""
        if (verb := _OF_ALL_LISTS.get(self._own_words())) is not None:
            return f"{verb} {self._rows(is_one=verb == 'Read')}"
        words = " ".join(self._own_words().split())
        if self._is_shared:
            reads, _or, changes = words.replace(", or ", "; or ", 1).partition("; or ")
            words = reads if self.method in SAFE_METHODS else changes[:1].upper() + changes[1:]
        first = re.split(r"(?<=[.;])\s", words)[0].rstrip(".;")
        return first if len(first) <= _MOST_OF_A_SUMMARY else ""

    @property
    def _is_shared(self) -> bool:
        """Whether one function reads and changes, as its words say."""
        view: Any = self.view
        names = list(getattr(getattr(view, view.action, None), "mapping", {}).values())
        return len(names) > 1 and len(set(names)) == 1 and " or " in self._own_words()

    def get_description(self) -> str:  # type: ignore[override]  # as its base does
        """Say what it does, of what, and who may call it."""
        description = self._own_words()
        if description in _OF_ALL_LISTS:
            description = (self.view.__class__.__doc__ or "").strip()
        if self._scope is None:
            return f"{description}\n\nTakes a browser session; no token may call this."
        if self._scope == ANY_SCOPE:
            return f"{description}\n\nA token needs any one scope."
        return f"{description}\n\nA token needs the scope `{self._scope}`."

    def _own_words(self) -> str:
        return str(super().get_description()).strip()

    def _rows(self, *, is_one: bool) -> str:
        """Name what the operation is about."""
        view: Any = self.view
        address = str(view.basename).replace("-", " ")
        model = getattr(view, "model", None) or getattr(
            getattr(view, "queryset", None), "model", None
        )
        if model is None:
            return address
        meta = model._meta
        if is_one:
            return f"one {meta.verbose_name}"
        # Where nobody wrote a plural, Django's is the name with an s.
        own = meta.original_attrs.get("verbose_name_plural")
        return str(own or address)

    def get_override_parameters(self) -> list[Any]:
        """Headers that every operation reads; one of the platform is of no workspace."""
        workspace = OpenApiParameter(
            "X-Workspace",
            str,
            OpenApiParameter.HEADER,
            description="Slug of the workspace, for a session; a token has its own.",
        )
        parameters: list[Any] = [] if isinstance(self.view, PlatformViewSet) else [workspace]
        view: Any = self.view
        if view.action == "list" and getattr(view, "pagination_class", None) is not None:
            # No enum: generators of clients make one name of "id" and "-id".
            names = [name.removeprefix("-") for name in view.orderings]
            pattern = f"^-?({'|'.join(names)})$"
            parameters.append(
                OpenApiParameter(
                    "ordering",
                    {"type": "string", "pattern": pattern, "default": view.orderings[0]},
                    description=f"By {' or '.join(names)}; with `-` from the largest down.",
                )
            )
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
            view: Any = self.view
            takes_words = self._is_list_view() or view.parameters.get(view.action)
            takes_words = takes_words or view.action in getattr(view, "refuses_values", ())
            is_typed = status_code == "422" and self.method == "GET" and takes_words
            has_body = self.method not in {"GET", "DELETE"}
            return bool(has_body or is_typed) and status_code not in responses
        if status_code == "507":
            takes_file = self.method not in {"GET", "DELETE"} and _FORM in self.map_parsers()
            return takes_file and "507" not in responses
        if status_code in {"400", "503"}:
            return status_code not in responses
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
