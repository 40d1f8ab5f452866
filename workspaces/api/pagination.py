"""Lists come in pages, and the next page begins after a key, never at a number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.core import signing
from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound, ParseError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.utils.urls import replace_query_param

from workspaces.words.text_values import read_whole_number

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.views import APIView


class KeysetPagination(CursorPagination):
    """``?cursor=`` and ``?page_size=`` (1 to 200). New rows neither repeat nor hide others."""

    page_size = 50
    max_page_size = 200
    page_size_query_param = "page_size"

    def get_page_size(self, request: Request) -> int | None:
        """Refuse a size that is no number of rows, instead of taking another one silently."""
        given = request.query_params.get(self.page_size_query_param)
        if given is None:
            return self.page_size
        size = read_whole_number(given, least=1, most=self.max_page_size)
        if size is None:
            raise ParseError(f"page_size must be between 1 and {self.max_page_size}.")
        return size

    def get_ordering(
        self,
        request: Request,
        queryset: QuerySet[Any],
        view: APIView | None,
    ) -> tuple[str, ...]:
        """Order by a field of the view's allow-list, and by id where that is equal."""
        allowed: Sequence[str] = getattr(view, "orderings", ("-id",))
        given = request.query_params.get("ordering")
        if given is None:
            chosen = allowed[0]
        elif given in {*allowed, *(_reverse(name) for name in allowed)}:
            chosen = given
        else:
            raise ParseError(f"ordering must be one of {', '.join(allowed)}, with or without '-'.")
        if chosen.removeprefix("-") == "id":
            return (chosen,)
        return (chosen, "-id" if chosen.startswith("-") else "id")

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        """Give one page; a cursor that we did not make is 400."""
        self._is_personal = getattr(view, "lists_of_person", False)
        try:
            return super().paginate_queryset(queryset, request, view)
        except (NotFound, ValidationError, ValueError, TypeError, OverflowError):
            raise ParseError("This cursor is not valid here.") from None

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Read a cursor that this list gave in this order and, where its rows are a workspace's, in this workspace.

        Raises:
            NotFound: it is another list's, or not whole. Read as far as it goes, it would begin the list anew.
        """
        given = request.query_params.get(self.cursor_query_param)
        if not given:
            return None
        try:
            return Cursor(*self._signer(request).unsign_object(given))
        except (signing.BadSignature, ValueError) as error:
            raise NotFound from error

    def encode_cursor(self, cursor: Cursor) -> str:
        """Give the address of the page there."""
        signed = self._signer(self.request).sign_object(list(cursor))  # type: ignore[attr-defined]  # not in the stubs
        assert self.base_url is not None, "a page is read before there is one beside it"
        return str(replace_query_param(self.base_url, self.cursor_query_param, signed))

    def _signer(self, request: Request) -> signing.Signer:
        workspace = getattr(request._request, "workspace", None)
        place = str(workspace.pk) if workspace and not self._is_personal else ""
        return signing.Signer(salt=" ".join((request.path, *self.ordering, place)))

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Describe a page."""
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["results", "next", "previous"],
            "properties": {"next": link, "previous": link, "results": schema},
        }


def _reverse(name: str) -> str:
    return name[1:] if name.startswith("-") else f"-{name}"
