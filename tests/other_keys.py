"""An installation whose encryption keys were replaced by others."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.test import override_settings

from config.env import EncryptionKey

NEW: Final = EncryptionKey("new", bytes(range(32)))


def having(*keys: EncryptionKey) -> override_settings:
    """Have these keys, the first of them primary; without any, one that opens nothing."""
    changed = settings.TRELLIS.model_copy(update={"encryption_keys": keys or (NEW,)})
    return override_settings(TRELLIS=changed)
