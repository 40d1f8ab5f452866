"""What happened: entries that are only ever added."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from audit import metrics, receivers  # noqa: F401 - connects the receivers

        metrics.register()
