"""Heads of tables."""

from __future__ import annotations

from typing import Any

from django import template

register = template.Library()


@register.inclusion_tag("_table_head.html")
def table_head(*headings: str, right: str = "") -> dict[str, Any]:
    """Show the headings of a table's columns.

    Args:
        right: numbers of the columns that stand to the right, counted from 1.
    """
    to_the_right = {int(number) for number in right.split()}
    columns = [(heading, number in to_the_right) for number, heading in enumerate(headings, 1)]
    return {"columns": columns}
