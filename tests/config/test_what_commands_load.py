"""What a command in a terminal has to load before it can begin: nothing that only pages, exports or workers need."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from config.env import ROOT

_LOADED = """
import json, sys
import django
django.setup()
from importlib import import_module
for name in sys.argv[1].split(","):
    import_module(name)
print(json.dumps(sorted(sys.modules)))
"""
_OF_PAGES = (
    *("config.urls", "config.asgi", "unfold.admin", "rest_framework.serializers"),
    *("drf_spectacular.generators", "allauth.account.views", "django.test"),
    *("chat.admin", "audit.admin", "mcp_servers.pages.admin", "mcp_servers.pages.forms"),
)
_OF_FEW = (
    *("xlsxwriter", "google.protobuf", "jsonpath", "PIL", "jwt", "pypdfium2", "openpyxl"),
    *("opentelemetry.sdk", "daphne", "twisted.internet.reactor", "requests", "openai"),
)
_OF_WORKERS = ("celery", "kombu")
_TURNS = "chat.management.commands.ask,chat.engine.runner,chat.providers.openai_compatible"


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        (_TURNS, (*_OF_PAGES, *_OF_FEW, *_OF_WORKERS)),
        ("config.celery", (*_OF_PAGES, *_OF_FEW)),
    ],
    ids=["ask", "scheduler"],
)
def test_what_is_loaded(modules: str, unwanted: tuple[str, ...]) -> None:
    """REL-353: each of these costs as much as a short turn, and nobody misses it here."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, modules],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert loaded & set(unwanted) == set()


def test_asking_looks_at_no_page() -> None:
    """REL-353: Django's checks load all of them; servers run these when they start."""
    from chat.management.commands.ask import Command

    assert Command.requires_system_checks == []
