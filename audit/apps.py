"""What happened: entries that are only ever added."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from audit import metrics, receivers  # noqa: F401 - connects the receivers
        from audit.models import AlertRule, AuditPolicy, AuditStream
        from workspaces.watched import watch

        watch(
            AuditPolicy,
            (
                *("keep_days", "keep_entries", "keep_bodies_days", "body_bytes"),
                *("masked_paths", "detectors"),
            ),
        )
        watch(AuditStream, ("name", "kind", "target", "secret", "headers", "is_paused"))
        watch(
            AlertRule,
            (
                *("name", "condition", "threshold", "window_minutes", "is_active", "tells_bell"),
                *("server_name", "tool_name", "emails", "webhook_url", "webhook_secret"),
            ),
        )
        metrics.register()
