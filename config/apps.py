"""The wiring as a Django app, so that its commands and checks are found."""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.contrib.admin.apps import SimpleAdminConfig
from django.db.models.signals import post_migrate, pre_migrate


class AdminConfig(SimpleAdminConfig):
    """The admin with our site. The routes look for its pages, and commands need none."""

    default_site = "config.admin.admin_site.TrellisAdminSite"


class ConfigConfig(AppConfig):
    """Commands of the whole product."""

    name = "config"
    default = True

    def ready(self) -> None:
        """Give threads room, offer the gauges of what the installation is wired to, and watch the tables of configuration."""
        from audit import outside_writes
        from config.telemetry import metrics
        from workspaces.database.postgresql import policies
        from workspaces.process import call_stack

        call_stack.give_all_threads_room()
        metrics.register()
        # Triggers name columns, which a migration may change: away before the first, and back after the last.
        pre_migrate.connect(outside_writes.remove, sender=apps.get_app_config("workspaces"))
        post_migrate.connect(outside_writes.install, sender=apps.get_app_config("chat"))
        post_migrate.connect(policies.install, sender=apps.get_app_config("chat"))
