"""What people say about themselves and how they see Trellis: the same in each workspace and on each device."""

from __future__ import annotations

from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext as _

from workspaces.errors import InvalidInput
from workspaces.models import Clock, DateFormat, NumberFormat, Theme, User
from workspaces.words.formats import time_zones
from workspaces.words.names import seen_name

LONGEST_NAME: Final = 150  # as the column
FORMATS: Final[dict[str, type[TextChoices]]] = {
    "date_format": DateFormat,
    "clock": Clock,
    "number_format": NumberFormat,
}


def change_profile(
    *,
    user: User,
    name: str | None = None,
    theme: str | None = None,
    time_zone: str | None = None,
    date_format: str | None = None,
    clock: str | None = None,
    number_format: str | None = None,
) -> User:
    """Keep what is given, and leave the rest as it is.

    Args:
        time_zone: a name of the IANA database; as the formats: empty for "as my browser says".

    Raises:
        InvalidInput: with each faulty field.
    """
    fields: dict[str, list[str]] = {}
    given = {
        "name": None if name is None else seen_name(name),
        "theme": theme,
        "time_zone": None if time_zone is None else _named(time_zone),
        "date_format": date_format,
        "clock": clock,
        "number_format": number_format,
    }
    changed = {key: value for key, value in given.items() if value is not None}
    if len(changed.get("name", "")) > LONGEST_NAME:
        fields["name"] = [_("Write at most %(most)s characters.") % {"most": LONGEST_NAME}]
    if theme is not None and theme not in Theme.values:
        fields["theme"] = [_("Choose light, dark or as the device.")]
    if changed.get("time_zone") and changed["time_zone"] not in time_zones():
        fields["time_zone"] = [
            _("There is no such time zone. Choose one by its place, such as Europe/Zurich.")
        ]
    for key, choices in FORMATS.items():
        if changed.get(key) and changed[key] not in choices.values:
            known = " · ".join(choices.values)
            fields[key] = [_("Choose one of these: %(choices)s.") % {"choices": known}]
    if fields:
        raise InvalidInput(fields=fields)
    for key, value in changed.items():
        setattr(user, key, value)
    user.save(update_fields=[*changed, "updated_at"])
    return user


def _named(typed: str) -> str:
    """The time zone in the letters that it has; what is none stays as it was typed."""
    lower = typed.strip().lower()
    return next((name for name in time_zones() if name.lower() == lower), typed.strip())
