"""What of a list's address in the admin does not fit. Django shows the list without it, and says nothing."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.filters import DateFieldListFilter
from django.contrib.admin.options import IS_POPUP_VAR, TO_FIELD_VAR, IncorrectLookupParameters
from django.contrib.admin.views.main import (
    ALL_VAR,
    ERROR_FLAG,
    ORDER_VAR,
    PAGE_VAR,
    SEARCH_VAR,
)
from django.http import QueryDict
from django.utils.translation import gettext as _

from workspaces.words.text_values import read_whole_number

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.contrib.admin.filters import ListFilter
    from django.contrib.admin.views.main import ChangeList
    from django.http import HttpRequest

VIEW_VAR: Final = "_view"
"""The parameter that says which saved view the list was opened with."""
LONGEST_SEARCH: Final = 200
"""Characters that are looked for."""
_LONGEST_SHOWN: Final = 50
_MOST_PAGES: Final = 1_000_000
_MOST_PARAMETERS: Final = 100
_NEVER_SAVED: Final = frozenset(
    {VIEW_VAR, PAGE_VAR, ERROR_FLAG, ALL_VAR, "_facets", IS_POPUP_VAR, TO_FIELD_VAR}
)
"""Parameters that say which part of the rows is shown, or how, and not which rows."""


def saved_part(query: str) -> str:
    """What of an address a view saves: search, filters and order, always written in the same way.

    Raises:
        ValueError: it has too many parameters.
    """
    pairs = parse_qsl(query.replace("\x00", ""), max_num_fields=_MOST_PARAMETERS)
    kept = [(name, value) for name, value in pairs if value and name not in _NEVER_SAVED]
    return urlencode(sorted(kept))


def faults_of_query(query: str, shown: ModelAdmin[Any], request: HttpRequest) -> list[str]:
    """A sentence for each part of a query that this list does not know."""
    asked = copy(request)
    asked.method = "GET"
    asked.GET = QueryDict(query)
    if SEARCH_VAR in asked.GET and not shown.get_search_fields(request):
        return [_("This list cannot be searched.")]
    try:
        return faults_of(asked, shown.get_changelist_instance(asked))
    except (DisallowedModelAdminLookup, IncorrectLookupParameters):
        return [_("The address has a filter that does not exist, or a value that does not fit.")]


def faults_of(request: HttpRequest, listed: ChangeList) -> list[str]:
    """A sentence for each value that no column, no page and no choice of a filter has."""
    found = []
    order = request.GET.get(ORDER_VAR, "")
    if order and not all(_sorts(one, listed) for one in order.split(".")):
        found.append(
            _("There is no column “%(order)s” to sort by.") % {"order": order[:_LONGEST_SHOWN]}
        )
    page = request.GET.get(PAGE_VAR, "1")
    last = listed.paginator.num_pages
    if read_whole_number(page, least=1, most=min(last, _MOST_PAGES)) is None:
        found.append(no_page(page))
    found += [
        _("No choice of the filter “%(filter)s” fits the address.") % {"filter": one.title}
        for one in listed.filter_specs
        if _fits_nothing(one, listed)
    ]
    return found


def cut_search(request: HttpRequest) -> str:
    """That not all of a search was looked for; empty: it was."""
    if len(request.GET.get(SEARCH_VAR, "")) <= LONGEST_SEARCH:
        return ""
    message = _("Only the first %(most)s characters of the search were looked for.")
    return message % {"most": LONGEST_SEARCH}


def no_page(page: str) -> str:
    """That there is no such page."""
    message = _("There is no page “%(page)s”. This is the first one.")
    return message % {"page": page[:_LONGEST_SHOWN]}


def _sorts(order: str, listed: ChangeList) -> bool:
    column = read_whole_number(order.removeprefix("-"), most=len(listed.list_display) - 1)
    if column is None:
        return False
    return listed.get_ordering_field(listed.list_display[column]) is not None


def _fits_nothing(one: ListFilter, listed: ChangeList) -> bool:
    """Whether a filter is in the address with a value that it does not offer. Moments may be any."""
    if not getattr(one, "used_parameters", None) or isinstance(one, DateFieldListFilter):
        return False
    return not any(choice["selected"] for choice in one.choices(listed))
