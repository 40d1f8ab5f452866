"""How people look on pages."""

from __future__ import annotations

import re
from typing import Final

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from workspaces.models import User, Workspace
from workspaces.people.pictures import address_for_members, own_address

register = template.Library()

_PAUSES: Final = re.compile(r"(?<=@)(?=\w)|(?=\.[a-zA-Z])")


@register.inclusion_tag("parts/person_tile.html")
def person_tile(person: User, workspace: Workspace | None = None, size: str = "") -> dict[str, str]:
    """A person's picture, or the first letter of their name.

    Args:
        workspace: in which others see them; None: it is the reader.
        size: "large" on a page about the person.
    """
    address = address_for_members(person, workspace) if workspace else own_address(person)
    return {"address": address, "letter": person.display_name[:1], "size": size}


@register.filter
def breaking_addresses(text: str) -> SafeString:
    """A text whose e-mail addresses go on a new line behind their @ or before a dot, rather than in mid-word."""
    return format_html_join(SafeString("<wbr>"), "{}", ([part] for part in _PAUSES.split(text)))
