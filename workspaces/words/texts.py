"""Marks for texts that people read: all that modules without a framework take from Django."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from django.utils.translation import gettext, gettext_lazy, gettext_noop

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    Text: TypeAlias = str | _StrPromise
    """A text now, or one that is translated when it is shown."""

__all__ = ["gettext", "gettext_lazy", "gettext_noop"]
