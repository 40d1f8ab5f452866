"""What all views have that people save under a name, of whichever page: bounds, and what is said about them."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext as _

LONGEST_NAME: Final = 80
LONGEST_QUERY: Final = 4_000


def faults_of_view(*, name: str | None = None, query: str | None = None) -> dict[str, list[str]]:
    """What is wrong with the given ones, by field."""
    faults: dict[str, list[str]] = {}
    if name is not None and not 0 < len(name) <= LONGEST_NAME:
        message = _("Give the view a name of at most %(most)s characters.")
        faults["name"] = [message % {"most": LONGEST_NAME}]
    if query is not None and len(query) > LONGEST_QUERY:
        faults["query"] = [_("These filters are too long to save. Remove some.")]
    return faults
