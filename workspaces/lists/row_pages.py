"""Lists of pages outside the admin, page by page: each page begins after the last row of the one before."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import DateTimeField, Field, Model, Q, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.utils.translation import gettext as _

from workspaces.errors import InvalidInput
from workspaces.words.text_values import read_moment

R = TypeVar("R", bound=Model)
MOST_ON_PAGE: Final = 100


def write_mark(*parts: str) -> str:
    """What an address says of the row that a page ended with."""
    return urlsafe_b64encode(json.dumps(parts).encode()).decode()


def read_mark(text: str, number: int) -> list[str]:
    """The parts of a mark.

    Raises:
        InvalidInput: it is none of ours, or has another number of parts.
    """
    try:
        parts = json.loads(urlsafe_b64decode(text))
        "".join(parts).encode()  # they are texts, and such that a database takes them
    except (ValueError, TypeError, RecursionError):
        parts = None
    if not isinstance(parts, list) or len(parts) != number or "\0" in "".join(parts):
        raise no_page()
    return parts


def no_page() -> InvalidInput:
    """That an address leads to no page."""
    return InvalidInput(fields={"after": [_("This page does not exist.")]})


def first_page_instead() -> str:
    """What a list says that was asked for a page which does not exist."""
    return _("This page does not exist. The first one is shown.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPage(Generic[R]):
    """Some rows of a list."""

    rows: list[R]
    following: str = ""
    """The mark after which the next page begins; empty: this is the last one."""
    is_first: bool = True
    fault: str = ""
    """What is wrong with the mark that was asked for; the first page is given instead."""


def page_after(rows: QuerySet[R], mark: str, *, by: str, most: int = MOST_ON_PAGE) -> RowPage[R]:
    """The rows after a mark, or the first ones without a mark.

    Args:
        by: the field of the order, with `-` for the other way round; rows that are equal in it follow by id. It may be
            a text of a row that is selected along, as in `user__email`.

    Raises:
        InvalidInput: the mark is none of this list.
    """
    name, is_down = by.removeprefix("-"), by.startswith("-")
    ordered = rows.order_by(by, "-id" if is_down else "id")
    if mark:
        value, key = _read(mark, rows, name)
        way = "lt" if is_down else "gt"
        later = Q(**{f"{name}__{way}": value}) | Q(**{name: value, f"id__{way}": key})
        ordered = ordered.filter(later)
    found = list(ordered[: most + 1])
    following = ""
    if len(found) > most:
        last: Any = reduce(getattr, name.split(LOOKUP_SEP), found[most - 1])
        text = last.isoformat() if isinstance(last, datetime) else str(last)
        following = write_mark(text, str(found[most - 1].pk))
    return RowPage(rows=found[:most], following=following, is_first=not mark)


def page_in_address(
    rows: QuerySet[R],
    asked: Mapping[str, str],
    name: str = "after",
    *,
    by: str,
    most: int = MOST_ON_PAGE,
) -> RowPage[R]:
    """The page that a parameter of an address asks for; the first one where there are no rows after the mark.

    A mark that is none gives the first page, too, and a fault.
    """
    fault = ""
    try:
        page = page_after(rows, asked.get(name, ""), by=by, most=most)
        if page.rows or page.is_first:
            return page
    except InvalidInput:
        fault = first_page_instead()
    first = page_after(rows, "", by=by, most=most)
    return RowPage(rows=first.rows, following=first.following, fault=fault)


def page_faults(*pages: RowPage[Any]) -> list[str]:
    """What is wrong with the address of these lists, in words; empty if nothing is."""
    return [page.fault for page in pages if page.fault]


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Where the links below a list lead; empty where there is nothing."""

    first: str = ""
    following: str = ""


def ways_from(
    page: RowPage[Any],
    asked: Mapping[str, str],
    name: str = "after",
    *,
    path: str = "",
    anchor: str = "",
) -> PageLinks:
    """The links to the first and to the next page, which keep what else is in the address.

    Args:
        path: of the list's page, where a form that was refused shows it at another one.
        anchor: where on the page the list stands.
    """

    def to(mark: str) -> str:
        others = {key: value for key, value in asked.items() if key != name}
        return f"{path}?{urlencode({**others, **({name: mark} if mark else {})})}{anchor}"

    return PageLinks(
        first="" if page.is_first else to(""),
        following=to(page.following) if page.following else "",
    )


def _read(mark: str, rows: QuerySet[Any], name: str) -> tuple[Any, UUID]:
    text, key = read_mark(mark, 2)
    value: Any = text
    try:
        if LOOKUP_SEP not in name:
            field = rows.model._meta.get_field(name)
            assert isinstance(field, Field)
            is_moment = isinstance(field, DateTimeField)
            value = read_moment(text) if is_moment else field.to_python(text)
            field.run_validators(value)  # what the database would refuse to compare with
        found = UUID(key)
    except (ValueError, ValidationError) as error:
        raise no_page() from error
    if value is None:
        raise no_page()
    return value, found
