"""Headings, panels and tables of pages: their frame, so that a template holds only what is in them."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_block_tag
def page_head(
    content: SafeString, title: str, *, back_url: str = "", back_label: str = ""
) -> SafeString:
    """Show the heading of a page that has no buttons there. Its content is what the page is for.

    Args:
        back_url: of the page above, if there is one, with its name.
    """
    values = {"content": content, "title": title, "back_url": back_url, "back_label": back_label}
    return render_to_string("parts/page_head.html", values)


@register.simple_block_tag
def panel(
    content: SafeString,
    heading: str,
    *,
    id: str,
    extra: str = "",
    section_id: str = "",
    note: str = "",
) -> SafeString:
    """Show a panel with a heading.

    Args:
        id: of the heading, which names the panel for screen readers.
        extra: further classes.
        section_id: of the panel itself, for links that lead there.
        note: stands beside the heading.
    """
    values = {"content": content, "heading": heading, "id": id, "extra": extra}
    values |= {"section_id": section_id, "note": note}
    return render_to_string("parts/panel.html", values)


@register.simple_block_tag
def table(
    content: SafeString, label: str, *headings: str, right: str = "", is_tight: bool = False
) -> SafeString:
    """Show a table that scrolls sideways where it is too wide. Its content is rows.

    Args:
        label: what screen readers call it.
        right: numbers of the columns that stand to the right, counted from 1.
    """
    values = {"content": content, "label": label, "is_tight": is_tight}
    return render_to_string("parts/table.html", {**values, **table_head(*headings, right=right)})


@register.inclusion_tag("_table_head.html")
def table_head(*headings: str, right: str = "") -> dict[str, Any]:
    """Show the headings of a table's columns.

    Args:
        right: numbers of the columns that stand to the right, counted from 1.
    """
    to_the_right = {int(number) for number in right.split()}
    columns = [(heading, number in to_the_right) for number, heading in enumerate(headings, 1)]
    return {"columns": columns}
