"""What people say about themselves and how they see Trellis: the same in each workspace and on each device."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext as _

from workspaces.errors import InvalidInput
from workspaces.models import Theme, User

LONGEST_NAME: Final = 150  # as the column


def change_profile(*, user: User, name: str | None = None, theme: str | None = None) -> User:
    """Keep what is given, and leave the rest as it is.

    Raises:
        InvalidInput: with each faulty field.
    """
    fields: dict[str, list[str]] = {}
    if name is not None and len(name.strip()) > LONGEST_NAME:
        fields["name"] = [_("Write at most %(most)s characters.") % {"most": LONGEST_NAME}]
    if theme is not None and theme not in Theme.values:
        fields["theme"] = [_("Choose light, dark or as the device.")]
    if fields:
        raise InvalidInput(fields=fields)
    user.name = user.name if name is None else name.strip()
    user.theme = user.theme if theme is None else theme
    user.save(update_fields=["name", "theme", "updated_at"])
    return user
