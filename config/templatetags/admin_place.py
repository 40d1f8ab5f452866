"""Where in the admin a page is, in the words of its navigation."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib import admin
from django.template import RequestContext
from django.urls import reverse
from django.utils.text import capfirst

from config.admin.admin_site import TITLES

register = template.Library()


@register.inclusion_tag("config/admin_place.html", takes_context=True)
def admin_place(context: RequestContext) -> dict[str, Any]:
    """Show the group, the page and the row, by its own name; the page's own title where it is of no model."""
    opts: Any = context.get("opts")
    shown: Any = admin.site._registry.get(opts.model) if opts else None
    if shown is None:
        return {"parts": [{"title": context.get("content_title") or context.get("title")}]}
    name = f"admin:{opts.app_label}_{opts.model_name}"
    parts: list[dict[str, Any]] = [
        {"title": TITLES[shown.section]},
        {
            "title": capfirst(shown.page_name or opts.verbose_name_plural),
            "link": reverse(f"{name}_changelist"),
        },
    ]
    row = context.get("original") or context.get("object")
    if row is not None and not isinstance(row, str):
        parts.append({"title": row, "link": reverse(f"{name}_change", args=[row.pk])})
    elif context.get("add"):
        parts.append({"title": context.get("title")})
    return {"parts": parts}
