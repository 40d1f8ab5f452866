"""Words of which invented texts are made."""

from __future__ import annotations

from typing import Final

WORDS: Final = [
    "invoice",
    "order",
    "customer",
    "shipment",
    "refund",
    "harbour",
    "ledger",
    "contract",
    "meeting",
    "budget",
    "forecast",
    "ticket",
    "backup",
    "release",
    "cluster",
    "deploy",
    "schema",
    "index",
    "report",
    "garden",
    "weather",
    "translate",
    "summary",
    "draft",
]
