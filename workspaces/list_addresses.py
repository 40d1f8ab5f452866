"""What of a list's address in the admin does not fit. Django shows the list without it, and says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib.admin.filters import DateFieldListFilter
from django.contrib.admin.views.main import ORDER_VAR, PAGE_VAR
from django.utils.translation import gettext as _

from workspaces.text_values import read_whole_number

if TYPE_CHECKING:
    from django.contrib.admin.filters import ListFilter
    from django.contrib.admin.views.main import ChangeList
    from django.http import HttpRequest

_LONGEST_SHOWN: Final = 50
_MOST_PAGES: Final = 1_000_000


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


def no_page(page: str) -> str:
    """That there is no such page."""
    told = _("There is no page “%(page)s”. This is the first one.")
    return told % {"page": page[:_LONGEST_SHOWN]}


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
