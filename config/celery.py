"""The Celery app and the whole beat schedule as one table."""

from __future__ import annotations

import os

from celery import Celery
from celery.schedules import crontab
from celery.signals import (
    import_modules,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_process_shutdown,
)

from config import celery_context as _celery_context  # noqa: F401 - carries ids into tasks

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("trellis")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["mcp_servers.registry"])
app.set_default()  # in every thread, also those that began before this


@setup_logging.connect
def _keep_logging(**_kwargs: object) -> None:
    """Celery would set up its own logging; ours stands already."""


@task_prerun.connect
@task_postrun.connect
def _drop_dead_connections(**_kwargs: object) -> None:
    from django.db import close_old_connections

    close_old_connections()


@worker_process_init.connect
def _take_part(**_kwargs: object) -> None:
    """A worker's process runs turns that others have left, like every other process."""
    from audit.sealing import watching
    from chat import restored
    from chat.providers import openai_compatible as _model  # noqa: F401 - no turn waits for its imports
    from config.tracing import configure_tracing

    configure_tracing()
    restored.watch()
    watching.watch()


@worker_process_shutdown.connect
def _hand_over(**_kwargs: object) -> None:
    from audit.sealing import watching
    from chat.engine import runner
    from mcp_servers.client.connections import runtime
    from workspaces import leaving
    from workspaces.database import wait_for

    leaving.leave()
    wait_for(runner.hand_over, _HAND_OVER_SECONDS)
    runtime.shutdown(_HAND_OVER_SECONDS)
    watching.stop(1.0)


_HAND_OVER_SECONDS = 2.0


# ``expires``: a run that waited longer than its period would only be followed by the next one.
app.conf.beat_schedule = {
    "check every MCP server": {
        "task": "mcp_servers.tasks.check_all_servers",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "keep the platform's servers": {
        "task": "mcp_servers.tasks.keep_platform_servers",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "renew sign-ins at servers": {
        "task": "mcp_servers.tasks.renew_grants",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "trim traces": {
        "task": "mcp_servers.tasks.trim_traces",
        "schedule": 120.0,
        "options": {"expires": 120},
    },
    "trim health checks": {
        "task": "mcp_servers.tasks.trim_health_checks",
        "schedule": crontab(minute=17),
        "options": {"expires": 3600},
    },
    "count entries of the log": {
        "task": "audit.tasks.count_entries",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "send scheduled reports": {
        "task": "audit.tasks.send_reports",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "take over turns nobody runs": {
        "task": "chat.tasks.recover_turns",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "let approvals run out": {
        "task": "chat.tasks.expire_approvals",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "let questions of servers run out": {
        "task": "chat.tasks.expire_inputs",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "send what waits for programs": {
        "task": "chat.tasks.deliver_webhooks",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "send the log to its sinks": {
        "task": "audit.tasks.send_streams",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "look at alert rules": {
        "task": "audit.tasks.watch_alerts",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "send alerts": {
        "task": "audit.tasks.send_alerts",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "forget old alerts": {
        "task": "audit.tasks.trim_alerts",
        "schedule": crontab(minute=51),
        "options": {"expires": 3600},
    },
    "remove what the log need not keep": {
        "task": "audit.tasks.apply_retention",
        "schedule": crontab(minute=53),
        "options": {"expires": 3600},
    },
    "verify what is new in the log": {
        "task": "audit.tasks.verify_what_is_new",
        "schedule": crontab(hour=3, minute=11),
        "options": {"expires": 3600},
    },
    "verify the whole log": {
        "task": "audit.tasks.verify_the_whole",
        "schedule": crontab(day_of_week="sunday", hour=1, minute=23),
        "options": {"expires": 3600},
    },
    "forget old deliveries": {
        "task": "chat.tasks.trim_deliveries",
        "schedule": crontab(minute=37),
        "options": {"expires": 3600},
    },
    "remove contents of files that are gone": {
        "task": "chat.tasks.sweep_artifacts",
        "schedule": crontab(minute=29),
        "options": {"expires": 3600},
    },
    "forget old idempotency keys": {
        "task": "workspaces.tasks.trim_idempotency_keys",
        "schedule": crontab(minute=43),
        "options": {"expires": 3600},
    },
    "forget ended sessions": {
        "task": "workspaces.tasks.clear_sessions",
        "schedule": crontab(hour=4, minute=7),
        "options": {"expires": 3600},
    },
}


@import_modules.connect
def _add_schedules_of_apps(**_kwargs: object) -> None:
    """An app that can be left out brings its schedule along."""
    from django.apps import apps

    for config in apps.get_app_configs():
        app.conf.beat_schedule.update(getattr(config, "beat_schedule", {}))
