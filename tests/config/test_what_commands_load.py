"""What a process has to load before it can begin: a command nothing of pages, a server nothing of single exports."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from config.env import ROOT

_LOADED = """
import json, sys
import django
django.setup()
from importlib import import_module
for name in sys.argv[1].split(","):
    import_module(name)
for line in sys.argv[2:]:
    exec(line)
    print(json.dumps(sorted(sys.modules)))
"""
_OF_PAGES = (
    *("config.urls", "config.asgi", "unfold.admin", "rest_framework.serializers"),
    *("drf_spectacular.generators", "allauth.account.views", "django.test"),
    *("chat.admin", "audit.admin", "mcp_servers.pages.admin", "mcp_servers.pages.forms"),
)
_OF_FEW = (
    *("xlsxwriter", "google.protobuf", "jsonpath", "PIL", "jwt", "pypdfium2", "openpyxl", "fpdf"),
    *("opentelemetry.sdk", "daphne", "twisted.internet.reactor", "requests", "openai"),
    *("mcp", "mcp_types", "rich", "twisted"),
)
_OF_WORKERS = ("celery", "kombu")
_AS_SCHEDULER = "from config.celery import app; app.loader.init_worker(); app.finalize()"
_AS_WORKER = "import celery; celery.signals.worker_init.send(sender=None)"
_TURNS = "chat.management.commands.ask,chat.engine.runner,chat.providers.openai_compatible"


def _loaded(*modules: str, then: tuple[str, ...] = ("",)) -> list[set[str]]:
    """All modules of a new process that imported these, after each thing that it did then."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, ",".join(modules), *then],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [set(json.loads(line)) for line in done.stdout.splitlines()]


def _our_commands() -> dict[str, str]:
    """Commands by name, with their app."""
    ours = ("audit", "chat", "config", "mcp_servers", "workspaces")
    return {name: app for name, app in get_commands().items() if app in ours}


def test_a_command_loads_what_it_needs() -> None:
    """REL-353: a turn in the terminal and a look at the log; the rest costs as much as a short turn, and nobody misses it."""
    (loaded,) = _loaded(_TURNS, "audit.management.commands.verify_audit")
    assert loaded & {*_OF_PAGES, *_OF_FEW, *_OF_WORKERS} == set()


def test_a_scheduler_loads_what_it_needs_and_a_worker_everything_before_it_forks() -> None:
    """REL-353, REL-410: each process of a worker would load it again otherwise, and keep a copy of its own."""
    scheduler, worker = _loaded("config.celery", then=(_AS_SCHEDULER, _AS_WORKER))
    assert scheduler & {*_OF_PAGES, *_OF_FEW} == set()
    assert {"config.urls", "mcp", "chat.providers.openai_compatible"} <= worker


@pytest.mark.parametrize("name", sorted(_our_commands()))
def test_no_command_looks_at_pages(name: str) -> None:
    """REL-410: Django's checks load all of them, which doubles a start; `up` and `check` run these."""
    assert load_command_class(_our_commands()[name], name).requires_system_checks == []


def test_a_server_loads_what_few_people_use_once_they_do() -> None:
    """REL-1796: it takes memory and time of every start, on the smallest machine too."""
    rare = {"xlsxwriter", "google.protobuf", "PIL", "openai", "pypdfium2", "openpyxl", "fpdf"}
    rare |= {"requests", "rich"}
    if not settings.TRELLIS.is_production:
        rare |= {"psycopg"}
    if settings.TRELLIS.redis_url is None:
        rare |= {"redis", "opentelemetry.sdk"}
    (loaded,) = _loaded("config.asgi")
    assert loaded & rare == set()
