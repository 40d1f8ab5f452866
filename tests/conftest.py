"""Where every test runs: fresh keys, a folder of its own, SQLite, or PostgreSQL and Redis if they are given.

``TEST_DATABASE_URL`` and ``TEST_REDIS_URL`` choose the services; ``manage.py test`` starts both by itself and sets them.
The environment is made while this file is imported, that is before Django reads its settings.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import django
import pytest
from _pytest.runner import runtestprotocol
from django.conf import settings
from django.test import TransactionTestCase
from pytest_django.plugin import DjangoDbBlocker

from config.keys import generate_keys
from mcp_servers.client.connections.hooks import hooks
from tests import idle_transactions, locks, plain_role, templates
from tests.emptying import empty_database
from tests.engines import holds_some, runs_on_both
from tests.ports import free_port
from tests.second_proofs import function_of, second_proofs
from workspaces.database import row_security
from workspaces.process.call_stack import give_room

# Pytest's own calls fill most of a chunk, so that tests stand at its end.
give_room(pytest.Session.perform_collect)
give_room(runtestprotocol)


def _worker_number() -> int:
    name = os.environ.get("PYTEST_XDIST_WORKER", "")
    return int(name.removeprefix("gw")) + 1 if name else 0


def _make_environment() -> None:
    """Set every variable that Trellis reads, so that nothing of the caller's environment shows through."""
    data_dir = Path(tempfile.mkdtemp(prefix="trellis-test-"))
    atexit.register(shutil.rmtree, data_dir, ignore_errors=True)
    port = free_port()
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    os.environ |= {
        **generate_keys(),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "TRELLIS_DATA_DIR": str(data_dir),
        "TRELLIS_PORT": str(port),
        "TRELLIS_PUBLIC_ORIGINS": f"http://testserver,http://localhost:{port},http://127.0.0.1:{port}",
        "TRELLIS_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
        "TRELLIS_OLLAMA_URL": "off",
        "LOG_LEVEL": "WARNING",
    }
    if database_url := os.environ.get("TEST_DATABASE_URL"):
        # A transaction around a module's tests stands still while a test computes, on a busy machine for long.
        patience = quote("-c idle_in_transaction_session_timeout=15min -c lock_timeout=2min")
        joint = "&" if "?" in database_url else "?"
        os.environ["DATABASE_URL"] = f"{database_url}{joint}options={patience}"
        if os.environ.get("TRELLIS_TEST_ROW_SECURITY"):
            os.environ["TRELLIS_ROW_SECURITY"] = "on"
    if redis_url := os.environ.get("TEST_REDIS_URL"):
        # Each worker process has a Redis database of its own.
        os.environ["REDIS_URL"] = f"{redis_url.rstrip('/')}/{_worker_number()}"


# Modules and tests stay to the end: looking for garbage among them is a tenth of what it takes to collect the tests.
gc.set_threshold(100_000, 50, 100)
_make_environment()
django.setup()  # the factories below are models' builders, and are imported before pytest-django's turn
row_security.set_reach(row_security.EVERYTHING)  # the tests' own statements are the platform's
# With the middleware for static files, each test client would look at thousands of files. The journeys see them served.
settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "StaticFiles" not in name]
# What a power cut leaves has a test of its own; the others need not wait for the disk.
if "DATABASE_URL" not in os.environ:
    _options: dict[str, Any] = settings.DATABASES["default"]["OPTIONS"]  # type: ignore[assignment]
    _options["init_command"] = _options["init_command"].replace("=FULL", "=OFF")
# Tasks that a test sends go to its own broker; without the app each would look for one on this machine, for seconds.
import_module("config.celery")
# As servers and workers do when they start, so that no transaction waits until all pages are loaded.
import_module("config.urls")
# Traces are written by a thread of their own; tests that want them ask for them, the others keep their database still.
hooks.traced = None
if "PYTEST_XDIST_WORKER" not in os.environ:
    # Worker processes inherit this environment: with the name in it they would read their settings
    # before this file gives each of them a Redis database and a folder of its own.
    del os.environ["DJANGO_SETTINGS_MODULE"]

pytest_plugins = ["tests.factories", "tests.fakes.signing_in", "tests.platform_api", "tests.times"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what was imported and collected out of every later collection of garbage: it stays to the end."""
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


_TOGETHER = ("tests/dependencies/", "tests/chaos/test_crashes.py")
"""Whose tests share processes of their own, which are started once if one process of ours runs all of them."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal out single tests, and those that belong together as one.

    The marks for that, `xdist_group`, are lost on the way: pytest keeps a test's id elsewhere than xdist looks for it.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((part for part in _TOGETHER if nodeid.startswith(part)), nodeid)

    return Together(config, log) if config.getoption("dist") == "load" else None


_DATABASES = {"db", "transactional_db", "django_db_reset_sequences"}
_FIRST = (
    *("tests/dependencies/", "tests/chaos/test_crashes.py", "tests/scaled/", "tests/api/"),
    *("tests/mcp_servers/oauth/test_races.py", "tests/mcp_servers/gate/test_waiting_requests.py"),
)
"""What takes a process longest, so that none of it is left when the others have nothing to do any more."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which the stage runs nothing."""
    if os.environ.get("TRELLIS_SUITE_STAGE") != "both_engines" or collection_path.is_dir():
        return None
    return not holds_some(collection_path, config.rootpath) or None


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str) -> list[pytest.Item] | None:
    """Make no items of what a usual run leaves out: there are thousands, with their parameters."""
    if collector.config.option.markexpr != "not second_proof":
        return None
    return [] if f"{collector.nodeid}::{name}" in second_proofs() else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a service that this run does not have; the run with services has them all.

    ``TRELLIS_SUITE_STAGE`` picks a part: ``both_engines`` what speaks to the database in a way of its own,
    ``pure`` what knows no database.
    """
    listed = second_proofs()
    for item in items:
        if runs_on_both(item.nodeid) and knows_database(item):
            item.add_marker(pytest.mark.both_engines)
        if function_of(item.nodeid) in listed:
            item.add_marker(pytest.mark.second_proof)
    parts: dict[str, Callable[[pytest.Item], bool]] = {
        "both_engines": lambda item: _has(item, "both_engines") or _has(item, "sqlite"),
        "pure": lambda item: not knows_database(item),
    }
    if keeps := parts.get(os.environ.get("TRELLIS_SUITE_STAGE", "")):
        config.hook.pytest_deselected(items=[item for item in items if not keeps(item)])
        items[:] = [item for item in items if keeps(item)]
    has_postgresql = "DATABASE_URL" in os.environ
    missing = {
        "postgresql": not has_postgresql,
        "sqlite": has_postgresql,
        "redis": "REDIS_URL" not in os.environ,
    }
    for item in items:
        for name, is_missing in missing.items():
            if is_missing and _has(item, name):
                item.add_marker(pytest.mark.skip(reason=f"runs with {name}"))
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))


def _has(item: pytest.Item, mark: str) -> bool:
    return item.get_closest_marker(mark) is not None


def knows_database(item: pytest.Item) -> bool:
    names = set(getattr(item, "fixturenames", ()))
    marks = ("django_db", "postgresql", "redis")
    return bool(names & _DATABASES) or any(_has(item, mark) for mark in marks)


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None,
    django_db_blocker: DjangoDbBlocker,
    django_db_modify_db_settings: None,
) -> Iterator[None]:
    """Make this process's database: as a copy, unless it is the first one to migrate."""
    from django.test.utils import setup_databases, teardown_databases

    with django_db_blocker.unblock(), templates.alone() as folder:
        is_copy = templates.use_template(folder)
        # Django makes the copy itself on PostgreSQL; on SQLite it finds the file there.
        keeps = is_copy and "DATABASE_URL" not in os.environ
        made = setup_databases(verbosity=0, interactive=False, keepdb=keeps)
        if not is_copy:
            templates.keep_template(folder)
        plain_role.take()
    yield
    plain_role.leave()
    with django_db_blocker.unblock():
        teardown_databases(made, verbosity=0, keepdb=keeps)


@pytest.fixture(autouse=True, scope="session")
def quick_emptying() -> Iterator[None]:
    """Empty the database in our own way after tests that commit: Django's flush takes ten times as long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _case: empty_database())
        yield


@pytest.fixture(autouse=True, scope="session")
def watched_transactions() -> Iterator[None]:
    """Note transactions that stay open over heavy work, whatever test they are in."""
    with idle_transactions.watching():
        yield


@pytest.fixture(autouse=True, scope="session")
def no_joined_updates() -> Iterator[None]:
    """REL-701: who claims a row on PostgreSQL is the only one."""
    with locks.refusing_joined_updates():
        yield


@pytest.fixture(autouse=True)
def no_idle_transaction(watched_transactions: None) -> Iterator[None]:
    """REL-262: no code under test computes for long between BEGIN and COMMIT."""
    idle_transactions.take_found()
    yield
    assert not (found := idle_transactions.take_found()), found[0]


@pytest.fixture(autouse=True)
def whole_reach() -> Iterator[None]:
    """What a test has narrowed, such as by binding a request itself, does not narrow the next one."""
    yield
    row_security.set_reach(row_security.EVERYTHING)


@pytest.fixture(autouse=True)
def empty_spool() -> Iterator[None]:
    """What a test left for later is not entered into the next one's database."""
    from audit.services import spool

    yield
    if spool._own.lost or spool.spool_size().files:
        shutil.rmtree(spool._folder(), ignore_errors=True)
        spool._own = spool._OwnFile()


@pytest.fixture(autouse=True)
def no_checkpoint_file() -> Iterator[None]:
    """A test's newest checkpoint is not held against the next one's database, nor what it left in its place."""
    from audit.sealing import external_checkpoint

    yield
    path = external_checkpoint.file_path()
    for kept in path.parent.glob(f"{path.name}*"):
        kept.unlink(missing_ok=True)


@pytest.fixture(autouse=True, scope="session")
def fast_passwords() -> Iterator[None]:
    """Hash test passwords quickly; the real hasher takes its time on purpose."""
    from django.test import override_settings

    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(autouse=True, scope="session")
def no_connection_outlives_the_tests(
    django_db_setup: None, django_db_blocker: Any
) -> Iterator[None]:
    """PostgreSQL drops a test database only when nobody is in it: threads of async tests may still be."""
    from django.db import connection

    from mcp_servers.client.connections import runtime

    yield
    runtime.shutdown(2.0)
    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute("RESET ROLE")
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        # Of the pool's own connections some are dead now.
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's alone


@pytest.fixture
def no_known_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks nothing that an earlier test has made a secret: the memory lives as long as the process."""
    from workspaces import secret_memory

    monkeypatch.setattr(secret_memory, "_memories", {})
    monkeypatch.setattr(secret_memory, "_everything", secret_memory._Index())


@pytest.fixture(autouse=True)
def fresh_cache() -> None:
    """Give each test its own counters for rate limits."""
    from django.core.cache import cache

    cache.clear()
