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
exec(sys.argv[2])
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
_TURNS = "chat.management.commands.ask,chat.engine.runner,chat.providers.openai_compatible"


def _loaded(modules: str, then: str = "") -> set[str]:
    """All modules of a new process that imported these and did this."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, modules, then],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def _our_commands() -> dict[str, str]:
    """Commands by name, with their app."""
    ours = ("audit", "chat", "config", "mcp_servers", "workspaces")
    return {name: app for name, app in get_commands().items() if app in ours}


@pytest.mark.parametrize(
    ("modules", "then", "unwanted"),
    [
        (_TURNS, "", (*_OF_PAGES, *_OF_FEW, *_OF_WORKERS)),
        ("config.celery", _AS_SCHEDULER, (*_OF_PAGES, *_OF_FEW)),
        ("audit.management.commands.verify_audit", "", (*_OF_PAGES, *_OF_FEW, *_OF_WORKERS)),
    ],
    ids=["ask", "scheduler", "command"],
)
def test_what_is_loaded(modules: str, then: str, unwanted: tuple[str, ...]) -> None:
    """REL-353: each of these costs as much as a short turn, and nobody misses it here."""
    assert _loaded(modules, then) & set(unwanted) == set()


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
    assert _loaded("config.asgi") & rare == set()


def test_processes_of_a_worker_fork_from_one_that_has_loaded_everything() -> None:
    """REL-410: each would load it again otherwise, and keep a copy of its own."""
    loaded = _loaded(
        "config.celery", then="import celery; celery.signals.worker_init.send(sender=None)"
    )
    assert {"config.urls", "mcp", "chat.providers.openai_compatible"} <= loaded
