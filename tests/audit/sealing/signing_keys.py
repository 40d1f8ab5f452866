"""Keys that sign checkpoints."""

from __future__ import annotations

from django.conf import settings
from django.test import override_settings

from config.env import EncryptionKey
from workspaces.actors import Actor, Source

SYSTEM = Actor.system(label="test", source=Source.COMMAND, workspace_id=None)


def with_keys(*names: str) -> override_settings:
    keys = tuple(EncryptionKey(name, name.encode() * 32) for name in names)
    config = settings.TRELLIS.model_copy(update={"audit_signing_keys": keys})
    return override_settings(TRELLIS=config)
