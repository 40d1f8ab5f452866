"""A list of the admin as a CSV file: its columns and its rows as they are filtered, in words.

That somebody took it is an entry of the log, written before anything is given.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, Final, cast

from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import label_for_field, lookup_field
from django.core.exceptions import ObjectDoesNotExist
from django.http import FileResponse, Http404, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags
from django.utils.safestring import SafeString
from django.utils.text import capfirst, slugify
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.exports.columns import neutral
from audit.services import EntryDraft, record
from workspaces.pages.model_admin import (
    MomentColumn,
    PlatformModelAdmin,
    TrackedModelAdmin,
)
from workspaces.words.formats import written_for

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from workspaces.middleware import WorkspaceRequest

_ROWS_AT_ONCE: Final = 500
_IN_MEMORY: Final = 1024 * 1024
_CHECKBOX: Final = "action_checkbox"


def export_list(
    request: HttpRequest, site: admin.AdminSite, app_label: str, model_name: str
) -> HttpResponseBase:
    """Give the rows that a list shows with the filters of this address, those of all its pages.

    Raises:
        Http404: there is no such list, or it is not for this person.
    """
    shown = _list_of(site, app_label, model_name)
    if shown is None or not shown.has_view_permission(request):
        raise Http404
    try:
        listed = shown.get_changelist_instance(request)
    except (IncorrectLookupParameters, DisallowedModelAdminLookup):
        # The list says what of the address does not fit.
        where = reverse(f"admin:{app_label}_{model_name}_changelist")
        return HttpResponseRedirect(f"{where}?{request.GET.urlencode()}")
    title = str(shown.page_name or capfirst(shown.opts.verbose_name_plural))
    file = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115  the answer closes it
    number = -1  # the head
    with written_for(None):  # a file for programs
        for number, line in enumerate(_lines(shown, listed), start=-1):  # noqa: B007  its last value counts
            file.write(line)
    bound = cast("WorkspaceRequest", request)
    is_platforms = isinstance(shown, PlatformModelAdmin)
    record(
        EntryDraft(
            action=Action.LIST_EXPORTED,
            actor=bound.actor,
            workspace_id=None if is_platforms or bound.workspace is None else bound.workspace.pk,
            details={
                "format": "csv",
                "kind": "list",
                "name": title,
                "filters": request.GET.dict(),
                "rows": number + 1,
            },
        )
    )
    file.seek(0)
    name = f"{slugify(title) or model_name}-{timezone.now():%Y%m%d}.csv"
    return FileResponse(file, as_attachment=True, filename=name, content_type="text/csv")


def _list_of(site: admin.AdminSite, app_label: str, model_name: str) -> TrackedModelAdmin | None:
    for model, shown in site._registry.items():
        if (model._meta.app_label, model._meta.model_name) == (app_label, model_name):
            is_offered = isinstance(shown, TrackedModelAdmin) and shown.offers_export
            return cast("TrackedModelAdmin", shown) if is_offered else None
    return None


def _lines(shown: TrackedModelAdmin, listed: ChangeList) -> Iterator[bytes]:
    columns = [one for one in listed.list_display if one != _CHECKBOX]
    heads = [str(label_for_field(one, shown.model, shown)) for one in columns]
    yield b"\xef\xbb\xbf" + _line([capfirst(head) for head in heads])
    for row in listed.queryset.iterator(chunk_size=_ROWS_AT_ONCE):
        yield _line([_in_words(one, row, shown) for one in columns])


def _line(cells: list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow([neutral(cell) for cell in cells])
    return text.getvalue().encode()


def _in_words(column: Any, row: Any, shown: TrackedModelAdmin) -> str:
    """A cell as the list shows it, without its links."""
    name = column.field_name if isinstance(column, MomentColumn) else column
    try:
        field, _attribute, value = lookup_field(name, row, shown)
    except ObjectDoesNotExist:
        return ""
    if field is not None and field.flatchoices:
        value = dict(field.flatchoices).get(value, value)
    if value is None or value == shown.get_empty_value_display():
        return ""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds")
    return strip_tags(value) if isinstance(value, SafeString) else str(value)
