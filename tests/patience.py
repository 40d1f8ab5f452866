"""How long a test waits for something that will come."""

from typing import Final

PATIENCE: Final = 120.0
"""Seconds. Waits end with their event; this ends one whose event never comes, on the busiest machine too."""
