"""The Celery app. Each app's `tasks` says beside a task when it runs by itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from celery import Celery
from celery.signals import (
    beat_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
    worker_process_shutdown,
)

from config.telemetry.log_writing import write_beside
from config.workers import celery_context as _celery_context  # noqa: F401 - carries ids into tasks
from config.workers import celery_runs as _celery_runs  # noqa: F401 - notes when jobs ran
from config.workers import task_modules
from workspaces.process.schedules import SCHEDULE

if TYPE_CHECKING:
    from celery.worker import WorkController

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Celery runs Django's checks and drops what they find. They load all pages, which the scheduler needs none of.
os.environ["CELERY_SKIP_CHECKS"] = "1"

app = Celery("trellis")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(task_modules.PARTS)
app.conf.beat_schedule = SCHEDULE  # filled as the tasks are imported
app.set_default()  # in every thread, also those that began before this


@setup_logging.connect
def _keep_logging(**_kwargs: object) -> None:
    """Celery would set up its own logging; ours stands already."""


@worker_init.connect
@beat_init.connect
def _write_beside(**_kwargs: object) -> None:
    write_beside()


@worker_init.connect
def keep_to_itself(sender: WorkController, **_kwargs: object) -> None:
    """Workers find in the database what there is to do. Talk among them would only fail whenever Redis does.

    Nobody reads their heartbeats. One that a worker sends to a Redis that stands still never comes back, and then the
    worker does not end.
    """
    sender.options.update(without_gossip=True, without_mingle=True, without_heartbeat=True)


@task_prerun.connect
@task_postrun.connect
def _drop_dead_connections(**_kwargs: object) -> None:
    from django.db import close_old_connections

    close_old_connections()


@worker_init.connect
def _load(**_kwargs: object) -> None:
    """What every process of this worker needs, before they fork from it: loaded once, and its memory shared."""
    from chat.providers import openai_compatible as _model  # noqa: F401 - no turn waits for its imports
    from config import urls as _urls  # noqa: F401 - addresses stand in what is told within transactions
    from mcp_servers.client import sdk
    from workspaces.process import garbage

    sdk.load()
    garbage.settle()
    # Behind Celery's own receiver, which closes the pool of connections that threads of ours would be using.
    worker_process_init.connect(_take_part)


def _take_part(**_kwargs: object) -> None:
    """A worker's process runs turns that others have left, like every other process."""
    from audit.sealing import sealing_thread
    from chat import restore_confirmation
    from config.telemetry.tracing import configure_tracing
    from workspaces.process import garbage

    configure_tracing()
    garbage.tame()
    restore_confirmation.watch()
    sealing_thread.start()


@worker_process_shutdown.connect
def _hand_over(**_kwargs: object) -> None:
    from audit.sealing import sealing_thread
    from chat.engine import runner
    from mcp_servers.client.connections import runtime
    from workspaces.database import wait_for
    from workspaces.process import shutdown

    shutdown.begin()
    wait_for(runner.hand_over, _HAND_OVER_SECONDS)
    runtime.shutdown(_HAND_OVER_SECONDS)
    sealing_thread.stop(1.0)


_HAND_OVER_SECONDS = 2.0
