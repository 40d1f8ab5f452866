"""What the platform's owner reads of versions."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from config.env import ROOT
from config.installation import versions
from config.installation.versions import as_text, note_version, read_commit, read_versions
from tests.factories import Tenant
from tests.platform_api import Api
from workspaces.models import InstalledVersion
from workspaces.product import VERSION

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]

URL = "/platform/state/versions/"


@pytest.fixture(autouse=True)
def _nothing_noted() -> None:
    InstalledVersion.objects.all().delete()


def test_the_version_stands_in_one_place() -> None:
    """REL-1207: what builds and installs Trellis says the same."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    web = json.loads((ROOT / "chat/web/package.json").read_text())
    chart = yaml.safe_load((ROOT / "deploy/helm/trellis/Chart.yaml").read_text())
    assert {project["version"], web["version"], chart["appVersion"]} == {VERSION}


def test_everything_that_it_runs_on_is_told() -> None:
    """REL-1206: and how far the tables of each app are."""
    found = read_versions()
    assert found.version == VERSION
    names = {one.name: one for one in found.programs}
    assert {"Python", "Django", "MCP SDK", "Redis"} <= set(names)
    assert ("PostgreSQL" if connection.vendor == "postgresql" else "SQLite") in names
    assert all(one.version or one.note for one in found.programs)
    assert found.to_apply == 0
    apps = {one.app: one for one in found.migrations}
    assert {"workspaces", "audit", "mcp_servers", "klavis", "chat", "sessions"} <= set(apps)
    assert re.match(r"\d{4}_", apps["chat"].last)
    assert found.installed_at is not None


def test_migrations_that_wait_are_counted(root: Api) -> None:
    """REL-1206: by app, with what to do."""
    last = read_versions().migrations
    newest = next(one for one in last if one.app == "workspaces").last
    MigrationRecorder.Migration.objects.filter(app="workspaces", name=newest).delete()
    found = read_versions()
    workspaces = next(one for one in found.migrations if one.app == "workspaces")
    assert (found.to_apply, workspaces.to_apply) == (1, 1)
    assert workspaces.last < newest
    assert ", 1 to apply" in as_text(found)
    text = root.client.get(URL).content.decode()
    assert "1 migration is still to apply" in text
    assert "1 to apply" in text


@pytest.mark.sqlite
def test_migrating_notes_the_version(settings: Settings) -> None:
    """REL-1207: once for each version and commit, and only so many of them. On PostgreSQL the tables' owner migrates."""
    call_command("migrate", verbosity=0)
    call_command("migrate", verbosity=0)
    row = InstalledVersion.objects.get()
    assert row.version == VERSION
    assert read_versions().since == row.since
    call_command("migrate", "sessions", verbosity=0)
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"commit": "c0ffee"})
    call_command("migrate", plan=True, verbosity=0)
    assert InstalledVersion.objects.count() == 1
    call_command("migrate", verbosity=0)
    newest = InstalledVersion.objects.order_by("-id")[0]
    assert (newest.version, newest.commit) == (VERSION, "c0ffee")
    for number in range(30):
        settings.TRELLIS = settings.TRELLIS.model_copy(update={"commit": f"{number:x}"})
        note_version()
    assert InstalledVersion.objects.count() == versions.MOST_KEPT
    assert read_versions().history[0].commit == "1d"


def test_a_version_that_never_migrated_has_no_date(root: Api) -> None:
    """REL-1206: and the page says so."""
    assert read_versions().since is None
    text = root.client.get(URL).content.decode()
    assert "None is noted yet." in text
    assert "not known" in text


def test_the_commit_is_read_from_a_checkout(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1206: a branch, a packed one, a second checkout, none at all; the setting comes first."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"commit": ""})
    monkeypatch.setattr(versions, "ROOT", tmp_path / "code")
    assert read_commit() == ""
    git = tmp_path / "code" / ".git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text("# pack-refs with: peeled\nabc123 refs/heads/main\n")
    assert read_commit() == "abc123"
    (git / "refs/heads/main").write_text("def456\n")
    assert read_commit() == "def456"
    (git / "HEAD").write_text("0a0b\n")
    assert read_commit() == "0a0b"
    (git / "HEAD").write_text("<b>no commit</b>\n")
    assert read_commit() == ""
    second = tmp_path / "second"
    own = git / "worktrees" / "second"
    second.mkdir()
    own.mkdir(parents=True)
    (second / ".git").write_text(f"gitdir: {own}\n")
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "commondir").write_text("../..\n")
    monkeypatch.setattr(versions, "ROOT", second)
    assert read_commit() == "def456"
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"commit": "c0ffee"})
    assert read_commit() == "c0ffee"


def test_redis_that_does_not_answer_is_told(root: Api, settings: Settings) -> None:
    """REL-1206, SEC-586: without its address."""
    away = "redis://:password@127.0.0.1:1/0"
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"redis_url": away})
    text = root.client.get(URL).content.decode()
    assert "does not answer" in text
    assert ":password@" not in text


def test_the_report_holds_no_secret(root: Api, settings: Settings) -> None:
    """SEC-586: nor an address of a machine; REL-1206: it is on the page for its button."""
    note_version()
    text = as_text(read_versions())
    assert text.startswith(f"Trellis {VERSION}")
    assert "Migrations:" in text
    assert "://" not in text
    assert settings.SECRET_KEY not in text
    page = root.client.get(URL).content.decode()
    assert 'data-copy="#version-report"' in page
    assert "Migrations:" in page


def test_it_takes_few_statements() -> None:
    """REL-1206: as many for a long history as for a short one."""
    with CaptureQueriesContext(connection) as asked:
        read_versions()
    assert len(asked) <= 6


def test_rest_has_what_the_page_shows(root: Api) -> None:
    """REL-1209: and the whole commit."""
    note_version()
    shown = root.get("versions/").json()
    assert (shown["version"], shown["commit"]) == (VERSION, read_commit())
    assert shown["history"][0]["version"] == VERSION
    assert shown["to_apply"] == 0
    assert [one["app"] for one in shown["migrations"]] == [
        one.app for one in read_versions().migrations
    ]


@pytest.mark.parametrize("role", ["owner", "admin", "auditor", "member"])
def test_nobody_else_finds_these_pages(tenant: Tenant, role: str) -> None:
    """SEC-585: no page, no button, no address of the REST interface."""
    client = tenant.client(role)
    for page in ("jobs", "storage", "versions"):
        assert client.get(f"/platform/state/{page}/").status_code == 404
        assert client.get(f"/api/platform/{page}/").status_code == 404
    name = {"name": "audit.tasks.count_entries"}
    assert client.post("/platform/state/jobs/run/", name).status_code == 404
    run = client.post("/api/platform/jobs/run/", name, content_type="application/json")
    assert run.status_code == 404
    assert "Background jobs" not in client.get("/admin/").content.decode()
