"""``manage.py up``: migrate, seed the demo, serve. One process does everything unless Redis is configured."""

from __future__ import annotations

import errno
import os
import socket
import threading
from argparse import BooleanOptionalAction
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, call_command
from django.core.management.base import CommandParser
from django.db import connection

from config.backups.archive import BackupError
from config.backups.before_upgrades import copy_before_upgrade, forget_old_copies
from config.doctor import DoctorFinding, FindingState, examine_part
from config.doctor.demo import check_demo
from config.env import normal_origin
from config.installation.folder_lock import AlreadyServed, hold
from workspaces.database.first_tables import is_new
from workspaces.database.migration_state import count_missing, find_newer
from workspaces.people.first_owner import setup_path
from workspaces.product import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


WORKER_THREADS = 4


class Command(BaseCommand):
    """Brings the database up to date and serves until it is stopped."""

    help = "Set everything up and serve. The address is printed; Ctrl-C stops."
    requires_system_checks: list[str] = []  # Django's checks run below, in time to be read

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--port", type=int, default=settings.TRELLIS.port, help="Port to listen on (8000)."
        )
        parser.add_argument(
            "--host", default=settings.TRELLIS.host, help="Address to listen on (127.0.0.1)."
        )
        parser.add_argument(
            "--demo",
            action=BooleanOptionalAction,
            help="Create the demo workspace. Left out, it is made where only this machine reaches Trellis.",
        )

    def handle(self, *_args: object, **options: Any) -> None:
        host, port = str(options["host"]), int(options["port"])
        os.umask(0o077)  # database, mails and scratch folders are their owner's alone
        check_port(host, port)
        try:
            with self._alone():
                self._prepare(host, wants_demo=options["demo"])
                serve(host, port, ready=lambda: self._greet(host, port))
        except KeyboardInterrupt:
            pass  # before it served
        self.stdout.write("Trellis has stopped.")

    def _alone(self) -> AbstractContextManager[None]:
        """Keep another embedded server off this data folder."""
        folder = settings.TRELLIS.data_dir
        if settings.TRELLIS.database_url is not None:
            return nullcontext()
        return self._held(folder)

    @contextmanager
    def _held(self, folder: Path) -> Iterator[None]:
        def tell() -> None:
            self.stdout.write("Another Trellis uses this data folder. Waiting for it to stop …")
            self.stdout.flush()

        with ExitStack() as held:
            try:
                held.enter_context(hold(folder, waiting=tell))
            except AlreadyServed as error:
                raise CommandError(
                    f"Trellis already runs on the data folder {folder} ({error}). "
                    "Stop it first, or choose another folder with TRELLIS_DATA_DIR."
                ) from None
            except OSError as error:
                raise CommandError(
                    f"The data folder {folder} takes no writes ({error.strerror}). Look whether its disk is full or "
                    "read-only, and whether it belongs to the user who runs Trellis."
                ) from None
            yield

    def _prepare(self, host: str, *, wants_demo: bool | None) -> None:
        """Bring the database up to date, and say so where that takes a while."""
        was_new = is_new(connection)
        call_command("check")
        self._tell_of_migrations()
        call_command("migrate", interactive=False, verbosity=0)
        for part in ("clocks", "keys", "seals"):
            found = examine_part(part)
            is_wrong = found.state is FindingState.FAILED
            if is_wrong or (part == "clocks" and found.state is FindingState.LOOK):
                self._warn(found)
        is_open = settings.TRELLIS.is_open_to_others(host)
        if wants_demo or (wants_demo is None and not is_open):
            call_command("seed_demo")
        elif wants_demo is None and was_new:
            self.stdout.write(
                "There is no demo workspace: others can reach this address, and the demo's password is known to all. "
                "Start with --demo to have it all the same."
            )
        found = check_demo("demo", host=host)
        if found.state is FindingState.LOOK:
            self._warn(found)

    def _warn(self, found: DoctorFinding) -> None:
        self.stderr.write(f"Warning: {found.text}. {found.advice}")

    def _tell_of_migrations(self) -> None:
        if is_new(connection):
            return
        if missing := count_missing():
            self._keep_copy()
            self.stdout.write(
                f"Bringing the database to Trellis {VERSION} ({missing} migrations) …"
            )
            self.stdout.flush()
        forget_old_copies()
        if newer := find_newer():
            self.stderr.write(
                f"Warning: a newer version of Trellis has changed this database ({newer[-1]}). Go back to that version soon: "
                "this one may not know all that is in it."
            )

    def _keep_copy(self) -> None:
        try:
            copy = copy_before_upgrade()
        except BackupError as error:
            self.stderr.write(f"Warning: nothing of the database is kept as it was. {error}")
            return
        if copy is not None:
            self.stdout.write(f"The database as it was is kept in {copy}")

    def _greet(self, host: str, port: int) -> None:
        shown = "localhost" if host in {"127.0.0.1", "0.0.0.0", "::", "::1"} else host  # noqa: S104
        here = normal_origin(
            f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
        )
        origins = settings.TRELLIS.public_origins
        origin = here if here in origins else origins[0]
        self.stdout.write(f"\nTrellis runs at {origin}/   (Ctrl-C stops it)\n")
        if origin != here:
            self.stdout.write(f"Your proxy reaches it at {here}/\n")
        if (path := setup_path()) is not None:
            self.stdout.write(
                "Nobody owns this installation yet. Make the first account (the link works once, within seven days):\n"
                f"  {origin}{path}\n"
            )
        if settings.TRELLIS.email_host is None:
            self.stdout.write(f"Mails are written to {settings.EMAIL_FILE_PATH}")
        self.stdout.flush()


def check_port(host: str, port: int) -> None:
    """Raise CommandError, with one line for people, if nobody can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                raise CommandError(
                    f"This machine has no address {host}. Give --host one that it has, such as 127.0.0.1 or 0.0.0.0."
                ) from None
            raise CommandError(
                f"Port {port} on {host} cannot be used ({os.strerror(error.errno or 0).lower()}). "
                f"Choose another: python3 manage.py up --port {port + 1}"
            ) from None


def serve(host: str, port: int, *, ready: Callable[[], None]) -> None:
    """Serve on this thread until SIGINT or SIGTERM, with worker and beat beside it if there is no Redis."""
    # Daphne's server must be imported first: it installs the reactor that config.asgi hangs its hooks on.
    from daphne.endpoints import build_endpoint_description_strings
    from daphne.server import Server

    from config.asgi import application

    stop_background = start_background() if settings.TRELLIS.has_embedded_worker else None
    server = Server(
        application,
        endpoints=build_endpoint_description_strings(host=host, port=port),
        ping_interval=20,
        server_name="trellis",
        application_close_timeout=5,
        ready_callable=ready,
    )
    try:
        server.run()
    finally:
        if stop_background is not None:
            stop_background()


def start_background() -> Callable[[], None]:
    """Run Celery's worker and beat as threads of this process; gives what stops them."""
    from celery.apps.worker import Worker
    from celery.beat import EmbeddedService

    from config.celery import app

    app.set_current()
    worker = app.WorkController(
        pool="threads",
        concurrency=WORKER_THREADS,
        without_heartbeat=True,
        quiet=True,
    )
    assert not isinstance(worker, Worker)
    threading.Thread(target=worker.start, name="celery-worker", daemon=True).start()
    beat = EmbeddedService(
        app, max_interval=5, thread=True, scheduler_cls=settings.CELERY_BEAT_SCHEDULER
    )
    beat.daemon = True
    beat.start()

    def stop() -> None:
        beat.stop()
        worker.stop()

    return stop
