"""The wiring as a Django app, so that its commands and checks are found."""

from __future__ import annotations

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    """Commands of the whole product."""

    name = "config"

    def ready(self) -> None:
        """Offer the gauges of what the installation is wired to."""
        from config import metrics

        metrics.register()
