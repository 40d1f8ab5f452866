"""The server of a chaos run: the product's own, with shorter leases where the run is short."""

from __future__ import annotations

import os
from datetime import timedelta

from config.asgi import application  # loads the apps, which the import below needs

from chat.engine import leases  # isort: skip

if seconds := os.environ.get("CHAOS_LEASE_SECONDS"):
    leases.LEASE = timedelta(seconds=float(seconds))
    leases.RENEW_SECONDS = float(seconds) / 5

__all__ = ["application"]
