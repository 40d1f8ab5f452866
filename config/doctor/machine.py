"""What the doctor sees of this machine: versions, settings, clocks, keys and the data folder."""

from __future__ import annotations

import platform
import shutil
import ssl
import stat
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core import checks

from config.doctor.findings import DoctorFinding, failed, look, ok
from config.health import write_to_data_folder
from config.keys import FILE_NAME
from mcp_servers.registry.catalogue.file_format import read_known_servers
from mcp_servers.registry.files.platform_file import registry
from workspaces.database import database_now
from workspaces.errors import InvalidInput
from workspaces.product import VERSION
from workspaces.secrets import (
    PUT_BACK,
    count_by_key,
    find_unreadable,
    primary_key_id,
    unreadable_in_words,
    unused_in_words,
)
from workspaces.words.formats import whole
from workspaces.words.waiting_times import duration_in_words

_NOT_BUILT: Final = "django_vite.W001"
CLOCK_SECONDS: Final = 2.0
"""By how much two clocks may differ before people notice."""
ROOM_BYTES: Final = 1024**3
LEAST_ROOM_BYTES: Final = 100 * 1024**2


def check_versions(part: str) -> DoctorFinding:
    """Tell which versions run."""
    return ok(
        part,
        f"Trellis {VERSION}, Python {platform.python_version()}, Django {version('django')}, mcp {version('mcp')}, {ssl.OPENSSL_VERSION}",
    )


def check_settings(part: str) -> DoctorFinding:
    """Look whether the settings fit together, and what they name is there."""
    found = [one for one in checks.run_checks() if one.level >= checks.WARNING]
    if any(one.id == _NOT_BUILT for one in found):
        command, after = (
            ("up", "")
            if settings.TRELLIS.database_url is None
            else ("collectstatic --no-input", " Then restart every server.")
        )
        return failed(
            part,
            "the web app is not built, so the chat has no page",
            f"Run: python3 manage.py {command}. It builds the web app first. If it stops there, its lines say why.{after}",
        )
    if found:
        texts = "; ".join(str(one.msg) for one in found)  # some checks give an exception
        return look(part, texts, found[0].hint or "See the text.")
    config = settings.TRELLIS
    # A file that comes later is read then, so this stops no start.
    named = {
        "MCP_SERVERS_FILE": config.mcp_servers_file,
        "TRELLIS_CATALOGUE_FILE": config.catalogue_file,
    }
    for name, path in named.items():
        if path is not None and not path.is_file():
            return look(
                part,
                f"{name} names {path}, and there is no such file",
                "Put the file there, for the user who runs Trellis to read, or correct the setting.",
            )
    if fault := _fault_in_lists(config.catalogue_file):
        return look(part, fault, "Correct the file. Trellis reads it anew when it has changed.")
    mode = "embedded (SQLite in the data folder)" if config.database_url is None else "production"
    if config.database_url is not None and any(
        origin.startswith("http://") for origin in config.public_origins
    ):
        return look(
            part,
            f"{mode}, with an origin that browsers reach without TLS",
            "Put a proxy with TLS before Trellis and name the https origin in TRELLIS_PUBLIC_ORIGINS.",
        )
    return ok(part, mode)


def _fault_in_lists(catalogue: Path | None) -> str:
    """Why Trellis cannot read the list of the platform's servers or that of the catalogue; empty: it can."""
    if fault := registry.state().error:
        return fault
    try:
        if catalogue is not None:
            read_known_servers(catalogue)
    except InvalidInput as error:
        return error.message
    return ""


def check_clocks(part: str) -> DoctorFinding:
    """Compare this machine's clock with the database's."""
    before = time.monotonic()
    there = database_now()
    took = time.monotonic() - before
    ahead = (datetime.now(UTC) - there).total_seconds()
    if abs(ahead) > CLOCK_SECONDS + took:
        return look(
            part,
            f"this machine's clock is {duration_in_words(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} the database's",
            "Synchronise both with a time server (NTP). Leases and expiry go by the database's clock, times in the log by "
            "this machine's.",
        )
    return ok(part, "this machine and the database agree")


def check_keys(part: str) -> DoctorFinding:
    """Look whether every stored secret opens, and how far a rotation of keys is."""
    if unreadable := find_unreadable():
        return failed(part, unreadable_in_words(unreadable), PUT_BACK)
    path = settings.TRELLIS.data_dir / FILE_NAME
    if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        return look(part, f"others on this machine can read {path.name}", f"Run: chmod 600 {path}")
    usage = count_by_key()
    left = sum(usage.values()) - usage[primary_key_id()]
    if left:
        return look(
            part,
            f"{whole(left)} of {whole(usage.total())} stored secrets are still under an old key",
            "Run: python3 manage.py rotate_keys. It goes on where it stopped. Do not remove the old key before.",
        )
    return ok(part, unused_in_words() or "every stored secret can be read")


def check_disk(part: str) -> DoctorFinding:
    """Look whether the data folder takes writes and has room, and whether the folder for temporary files has."""
    folder = settings.TRELLIS.data_dir
    try:
        write_to_data_folder()
    except OSError as error:
        return failed(
            part,
            f"the data folder {folder} takes no writes ({(error.strerror or type(error).__name__).lower()})",
            "Look whether its disk is full or read-only, and whether it belongs to the user who runs Trellis.",
        )
    free = shutil.disk_usage(folder).free
    state = f"{free / 1024**3:.1f} GiB free in the data folder"
    advice = "Make room: a full disk stops tool calls, since they could not be recorded."
    if free < LEAST_ROOM_BYTES:
        return failed(part, state, advice)
    if free < ROOM_BYTES:
        return look(part, state, advice)
    if (left := shutil.disk_usage(scratch := tempfile.gettempdir()).free) < LEAST_ROOM_BYTES:
        return look(
            part,
            f"{state}; {left / 1024**2:.0f} MiB in {scratch}",
            "Make room there, or set TMPDIR: larger uploads are refused, since they lie there while they arrive.",
        )
    return ok(part, state)
