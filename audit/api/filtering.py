"""What lists of entries are narrowed by over REST: the filters of the log's page, under the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import django_filters
from django import forms
from django.core.validators import MaxValueValidator
from django.utils import timezone

from audit import reports
from audit.actions import Action, Outcome
from audit.filters import (
    CHOICES,
    IDS,
    MAX_LENGTH,
    MOST_NUMBER,
    NUMBERS,
    TEXTS,
    EntryFilter,
    read_filter,
)
from workspaces.api import RowFilterSet
from workspaces.api.filtering import MomentFilter
from workspaces.words.typed_filters import LONGEST

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from workspaces.scoping import WorkspaceQuerySet


class TextFilter(django_filters.CharFilter):
    """The whole text, or with a star at the end how it begins."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Narrow the entries."""
        if not value.endswith("*"):
            return cast("QuerySet[Any]", super().filter(qs, value))
        return qs.filter(**{f"{self.field_name}__startswith": value.rstrip("*")})


class AddressFilter(django_filters.CharFilter):
    """An IP address."""

    field_class = forms.GenericIPAddressField


class TypedField(forms.CharField):
    """Filters as people type them; gives what they say."""

    def clean(self, value: Any) -> Any:
        """Read them.

        Raises:
            ValidationError: with everything that is wrong.
        """
        text = super().clean(value)
        if not text:
            return None
        wanted = read_filter({"q": text, "range": "all"}, now=timezone.now())
        errors = list(wanted.errors)
        if wanted.sort != "time":
            errors.append("The list is always in the order of time.")
        if errors:
            raise forms.ValidationError(errors)
        return wanted


class TypedFilter(django_filters.Filter):
    """The search field of the log's page."""

    field_class = TypedField

    def filter(self, qs: QuerySet[Any], value: EntryFilter | None) -> QuerySet[Any]:
        """Narrow the entries; words only for those who may read bodies."""
        if value is None:
            return qs
        actor = cast("Any", self.parent).request.actor
        return reports.matching(cast("WorkspaceQuerySet[Any]", qs), value, actor=actor)


class WholeNumberFilter(django_filters.NumberFilter):
    """A number that the database can compare with."""

    field_class = forms.IntegerField

    def get_max_validator(self) -> MaxValueValidator:
        """The largest one."""
        return MaxValueValidator(MOST_NUMBER)


class _CommonFilters(RowFilterSet):
    """What a list is narrowed by most."""

    action = django_filters.ChoiceFilter(choices=[(one.value, one.value) for one in Action])
    outcome = django_filters.ChoiceFilter(choices=[(one.value, one.value) for one in Outcome])
    server = TextFilter(field_name="server_name", max_length=200)
    tool = TextFilter(field_name="tool_name", max_length=256)
    actor = django_filters.UUIDFilter(field_name="actor_id")
    q = TypedFilter(
        label="Filters as they are typed on the page: `tool:mail.send outcome:refused since:7d words`.",
        max_length=LONGEST,
    )
    since = MomentFilter(field_name="created_at", lookup_expr="gte")
    until = MomentFilter(field_name="created_at", lookup_expr="lt")


def _filters_of_the_page() -> dict[str, django_filters.Filter]:
    """What the log's page has behind "More filters", under the same names."""
    found: dict[str, django_filters.Filter] = {"ip": AddressFilter(field_name="ip_address")}
    for name, (label, column, known) in CHOICES.items():
        choices = [(value, value) for value in known]
        found[name] = django_filters.ChoiceFilter(column, label=label, choices=choices)
    for name, (label, column) in TEXTS.items():
        found[name] = TextFilter(column, label=label, max_length=MAX_LENGTH)
    for name, (label, column) in IDS.items():
        found[name] = django_filters.UUIDFilter(column, label=label)
    for name, (label, column) in NUMBERS.items():
        for end, lookup in (("min", "gte"), ("max", "lte")):
            found[f"{name}_{end}"] = WholeNumberFilter(
                column, lookup, label=f"{label}, {end}", min_value=0
            )
    return found


EntryFilters = type("EntryFilters", (_CommonFilters,), _filters_of_the_page())
"""What a list may be narrowed by."""
