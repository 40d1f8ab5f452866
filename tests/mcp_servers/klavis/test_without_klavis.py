"""Klavis registers itself: without its folder and its line in the settings the product is whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from config.env import ROOT

LINE = '    "mcp_servers.klavis",\n'
PACKAGES = ("config", "workspaces", "audit", "mcp_servers", "chat")
LOOK = f"""
import importlib, pkgutil
import django
from django.core.management import call_command

django.setup()
call_command("check", fail_level="WARNING")
call_command("makemigrations", check_changes=True, dry_run=True)
call_command("migrate", verbosity=0)

from django.db import connection
assert not [name for name in connection.introspection.table_names() if "klavis" in name]

import config.urls  # finds the admin's pages in their order

for name in {PACKAGES!r}:
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(package.__path__, name + "."):
        if ".web" not in found.name:
            importlib.import_module(found.name)

from django.urls import NoReverseMatch, reverse
from config.celery import app

assert reverse("api:servers-list") and reverse("mcp_servers:servers", args=["acme"])
for gone in ("api:hosted-servers-list", "mcp_servers:klavis"):
    try:
        raise AssertionError(reverse(gone))
    except NoReverseMatch:
        pass
app.loader.import_default_modules()
assert {{entry["task"] for entry in app.conf.beat_schedule.values()}} <= set(app.tasks)
assert not [name for name in app.tasks if "klavis" in name]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the product without the app and without its line."""
    # What Python has compiled comes along: it goes by a file's time and size, which a copy keeps.
    left_out = shutil.ignore_patterns("web")
    for name in (*PACKAGES, "templates"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    shutil.copytree(ROOT / "chat" / "web" / "dist", tmp_path / "chat" / "web" / "dist")
    shutil.rmtree(tmp_path / "mcp_servers" / "klavis")
    settings = tmp_path / "config" / "settings.py"
    text = settings.read_text()
    assert text.count(LINE) == 1
    settings.write_text(text.replace(LINE, ""))
    return tmp_path


def test_the_product_is_whole_without_klavis(tree: Path) -> None:
    """Ours: checked, migrated, every module imported, and its pages, interface and schedule there."""
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "TRELLIS_DATA_DIR": str(tree / "data"),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOOK],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
