"""Keyboard shortcuts as a person wants them. The web app holds the list of what they do (`src/shortcuts/list.ts`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _

from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from workspaces.models import User

MOST: Final = 40
MOST_KEYS: Final = 4
LONGEST_KEY: Final = 20
HELD: Final = frozenset({"mod", "alt"})
"""Keys that are held with others. Without one of them, writing a text would press a shortcut."""
_NAME: Final = re.compile(r"[a-zA-Z]{1,40}")
_ALONE: Final = re.compile(r"f\d{1,2}|escape")
"""Keys that write nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortcutChoice:
    """What a person chose."""

    is_on: bool = True
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By the name of what they do: the keys, as in `["mod", "shift", "o"]`. No keys: it has no shortcut."""


def change_shortcuts(*, user: User, choice: ShortcutChoice | None) -> None:
    """Keep a person's own keys. None: they have the usual ones again.

    Raises:
        InvalidInput: at `shortcuts`, in words.
    """
    user.shortcuts = None if choice is None else asdict(_read(choice))
    user.save(update_fields=["shortcuts", "updated_at"])


def _read(given: ShortcutChoice) -> ShortcutChoice:
    """Give a choice that the chat can use, with its keys in small letters.

    Raises:
        InvalidInput: at `shortcuts`, in words.
    """
    faults: list[str] = []
    read: dict[str, Sequence[str]] = {}
    if len(given.keys) > MOST:
        faults.append(_("Change at most %(most)s shortcuts.") % {"most": MOST})
    for name, keys in given.keys.items():
        small = [key.lower() for key in keys]
        if not _NAME.fullmatch(name) or not _are_keys(small):
            faults.append(_("“%(name)s” has no keys that Trellis knows.") % {"name": name[:40]})
        elif small and not _can_be_pressed(small):
            faults.append(
                _("The keys of “%(name)s” need Ctrl, Command or Alt with them.") % {"name": name}
            )
        elif small and small in read.values():
            faults.append(_("“%(name)s” has the keys of another shortcut.") % {"name": name})
        else:
            read[name] = small
    if faults:
        raise InvalidInput(fields={"shortcuts": faults})
    return ShortcutChoice(is_on=given.is_on, keys=read)


def _are_keys(keys: Sequence[str]) -> bool:
    return len(set(keys)) == len(keys) <= MOST_KEYS and all(
        0 < len(key) <= LONGEST_KEY and key.isprintable() for key in keys
    )


def _can_be_pressed(keys: Sequence[str]) -> bool:
    """Whether they end with a key that is not only held, and writing does not press them."""
    *held, last = keys
    if last in {*HELD, "shift"} or not set(held) <= {*HELD, "shift"}:
        return False
    return not HELD.isdisjoint(held) or bool(_ALONE.fullmatch(last))
