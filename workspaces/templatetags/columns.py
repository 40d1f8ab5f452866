"""Words for tables and columns in pages."""

from __future__ import annotations

from django import template

from workspaces.words.columns import column_in_words

register = template.Library()


@register.filter
def column_of(name: object, kind: object) -> str:
    """What people call a column of a row of this kind; both as an entry of the log holds them."""
    return column_in_words(str(kind), str(name))
