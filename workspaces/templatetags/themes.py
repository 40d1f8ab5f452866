"""The theme and the shortcuts of whoever is signed in, on the page that they get."""

from __future__ import annotations

import json

from django import template
from django.http import HttpRequest
from django.template import RequestContext
from django.utils.html import format_html
from django.utils.safestring import SafeString

from workspaces.middleware import signed_in_user
from workspaces.models import Theme, User

register = template.Library()


@register.simple_tag(takes_context=True)
def theme_of_person(context: RequestContext) -> SafeString:
    """Give the attributes of `<html>` that hold the theme, so that it is there before the first paint.

    `src/theme.ts` reads them. Without a person there are none, and the browser's own choice holds.
    """
    user = _person(context)
    if user is None:
        return SafeString()
    attributes = format_html('data-person-theme="{}"', user.theme)
    if user.theme in {Theme.LIGHT, Theme.DARK}:
        attributes += format_html(' data-theme="{}"', user.theme)
    return attributes


@register.simple_tag(takes_context=True)
def shortcuts_of_person(context: RequestContext) -> SafeString:
    """Give the attribute of `<html>` with the person's own keys; `src/shortcuts/own.ts` reads it."""
    user = _person(context)
    if user is None or user.shortcuts is None:
        return SafeString()
    return format_html(' data-shortcuts="{}"', json.dumps(user.shortcuts))


def _person(context: RequestContext) -> User | None:
    request: HttpRequest | None = context.get("request")
    return signed_in_user(request) if request is not None and hasattr(request, "user") else None
