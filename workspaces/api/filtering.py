"""Filters: a list of names that are allowed; everything else in the query is refused, so that typing errors show."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_filters.rest_framework import (
    BooleanFilter,
    DjangoFilterBackend,
    FilterSet,
    IsoDateTimeFilter,
)
from rest_framework.exceptions import ParseError

from workspaces.words.text_values import read_moment

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.views import APIView

LIST_PARAMETERS = frozenset({"cursor", "page_size", "ordering"})
_MOST_NAMED = 40
"""Values that an error names."""


class MomentField(forms.DateTimeField):
    """A moment as UTC."""

    default_error_messages = {"invalid": _("Write a date and time like 2026-11-27T10:00:00Z.")}

    def to_python(self, value: Any) -> datetime | None:
        """Read it in the one way that all of Trellis does."""
        if value in self.empty_values:
            return None
        moment = read_moment(str(value).strip())
        if moment is None:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return moment


class MomentFilter(IsoDateTimeFilter):
    """Compares with a moment."""

    field_class = MomentField


class TruthField(forms.NullBooleanField):
    """Yes or no."""

    default_error_messages = {"invalid": _("Use true or false.")}

    def to_python(self, value: Any) -> bool | None:  # type: ignore[override]  # as its base gives it
        """Refuse what is neither, instead of giving all rows."""
        found = super().to_python(value)
        if found is None and value not in (None, ""):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return found


class TruthFilter(BooleanFilter):
    """Compares with true or false."""

    field_class = TruthField

    def __init__(self, *args: Any, **options: Any) -> None:
        """Read the text itself: the usual widget takes what it does not know for nothing."""
        super().__init__(*args, widget=forms.TextInput, **options)


def one_of(values: Iterable[object]) -> str:
    """Say which values a field or a parameter takes, the empty one left out."""
    known = [text for value in values if (text := str(value))]
    if len(known) > _MOST_NAMED:
        known[_MOST_NAMED:] = ["…"]
    return gettext("Use one of: %(known)s.") % {"known": ", ".join(known)}


class RowFilterSet(FilterSet):
    """The base of all filters. Filters are declared one by one: lookups never come from the query."""

    class Meta:
        fields: tuple[str, ...] = ()

    def get_form_class(self) -> type[forms.Form]:
        """As its base; what takes one of some values says which."""
        form: type[forms.Form] = super().get_form_class()
        for field in form.base_fields.values():
            if isinstance(field, forms.ChoiceField):
                values = [str(value) for value, _words in cast("Any", field.choices) if value]
                field.error_messages["invalid_choice"] = one_of(values).replace("%", "%%")
        return form


class StrictFilterBackend(DjangoFilterBackend):
    """Applies the view's filters; a value that does not fit is 400."""

    def get_filterset_class(
        self, view: APIView, queryset: QuerySet[Any] | None = None
    ) -> type[FilterSet] | None:
        """Never make filters out of a model's fields: what is not declared cannot be filtered by."""
        found: type[FilterSet] | None = getattr(view, "filterset_class", None)
        return found


def check_parameters(request: Request, allowed: Collection[str]) -> None:
    """Raise ParseError for a query parameter that means nothing here, or holds a NUL character."""
    for name, values in request.query_params.lists():
        if name not in allowed:
            raise ParseError(
                f"There is no parameter '{name[:50]}' here." if name.isprintable() else None
            )
        if len(values) > 1:
            raise ParseError(f"The parameter '{name}' is given twice.")
        if any("\x00" in value for value in values):
            raise ParseError("Text must not contain the NUL character.")
