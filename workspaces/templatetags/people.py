"""How people look on pages."""

from __future__ import annotations

from django import template

from workspaces.models import User, Workspace
from workspaces.people.pictures import address_for_members, own_address

register = template.Library()


@register.inclusion_tag("parts/person_tile.html")
def person_tile(person: User, workspace: Workspace | None = None, size: str = "") -> dict[str, str]:
    """A person's picture, or the first letter of their name.

    Args:
        workspace: in which others see them; None: it is the reader.
        size: "large" on a page about the person.
    """
    address = address_for_members(person, workspace) if workspace else own_address(person)
    return {"address": address, "letter": person.display_name[:1], "size": size}
