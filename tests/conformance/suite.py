"""Runs the official suite's client scenarios, one after another, and tells how each ended.

The suite is a Node program, pinned in package-lock.json: its newest release and its newest pre-release.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.conf import settings

from tests.servers.install import node_program

HERE: Final = Path(__file__).parent
RELEASES: Final = ("conformance-next", "conformance")
"""The newest one first."""
SCENARIO_SECONDS: Final = 60
_INSTALL_SECONDS: Final = 300

AUTHORIZATION: Final = "auth/"
"""How the names of scenarios of signing in to servers begin."""

_SKILLS: Final = "skills, an extension that is not spoken here; the scenario checks nothing"
_EXTENSION: Final = "an extension of authorization that is not spoken here"
EXPLAINED: Final = {
    "sep-2640-client-no-prefetch": _SKILLS,
    "sep-2640-client-verify-digest": _SKILLS,
    "sep-2640-client-verify-size": _SKILLS,
    "sep-2640-client-verify-frontmatter": _SKILLS,
    "auth/cross-app-access-complete-flow": _EXTENSION,
    "auth/enterprise-managed-authorization": _EXTENSION,
    "auth/dpop": _EXTENSION,
    "auth/dpop-nonce": _EXTENSION,
    "auth/wif-jwt-bearer": _EXTENSION,
    "conformance auth/2025-03-26-oauth-metadata-backcompat": (
        "the scenario's issuer misnames itself, which its next release mends, and there it passes"
    ),
}
"""Scenarios that need not pass, and why; where a release stands before the name, only in that one."""


class SuiteUnavailable(RuntimeError):
    """The suite could not be set up, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How one scenario ended."""

    release: str
    scenario: str
    passed: int
    failed: int
    warned: int = 0
    note: str = ""

    @property
    def is_good(self) -> bool:
        """At least one check, and none that failed; or explained."""
        return (self.failed == 0 and self.passed > 0) or bool(self.explanation)

    @property
    def explanation(self) -> str:
        """Why it need not pass; empty where it has to."""
        named = f"{self.release} {self.scenario}"
        return EXPLAINED.get(named) or EXPLAINED.get(self.scenario, "")


def install(folder: Path) -> Path:
    """Install the pinned suite into a folder, if it is not there; gives the folder.

    Raises:
        SuiteUnavailable: there is no Node, or the packages cannot be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        locked = (HERE / "package-lock.json").read_bytes()
        stamp = folder / ".installed"
        if stamp.exists() and stamp.read_bytes() == locked:
            return folder
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(HERE / name, folder / name)
        command = [_program("npm"), "ci", "--omit=optional", "--prefix", str(folder)]
        try:
            done = subprocess.run(
                command,
                env=_environment(),
                capture_output=True,
                text=True,
                timeout=_INSTALL_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SuiteUnavailable(f"The suite could not be installed: {error}") from error
        if done.returncode != 0:
            raise SuiteUnavailable(f"The suite could not be installed: {done.stderr[-2000:]}")
        stamp.write_bytes(locked)
    return folder


def version_of(folder: Path, release: str) -> str:
    """The installed version of a release."""
    package = json.loads((folder / "node_modules" / release / "package.json").read_text())
    return str(package["version"])


def scenarios(folder: Path, release: str) -> list[str]:
    """The client scenarios of a release."""
    done = subprocess.run(
        [*_suite(folder, release), "list", "--client"],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=SCENARIO_SECONDS,
        check=True,
    )
    return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("  - ")]


def run(folder: Path, release: str, wanted: list[str], results: Path) -> Iterator[Ended]:
    """Run scenarios one after another: several of them watch the time."""
    for scenario in wanted:
        output = results / release / scenario
        output.mkdir(parents=True, exist_ok=True)
        command = [
            *_suite(folder, release),
            "client",
            "--command",
            f"{sys.executable} -I -S {HERE / 'client.py'}",
            "--scenario",
            scenario,
            "--output-dir",
            str(output),
        ]
        try:
            done = subprocess.run(
                command,
                cwd=settings.BASE_DIR,
                env=_environment(),
                capture_output=True,
                text=True,
                timeout=SCENARIO_SECONDS,
                check=False,
            )
            note = "" if done.returncode == 0 else (done.stdout + done.stderr)[-3000:]
        except subprocess.TimeoutExpired:
            note = f"did not end within {SCENARIO_SECONDS} s"
        yield _read(release, scenario, output, note)


def _read(release: str, scenario: str, output: Path, note: str) -> Ended:
    found = sorted(output.rglob("checks.json"))
    checks = json.loads(found[-1].read_text()) if found else []
    statuses = [str(check.get("status", "")).upper() for check in checks]
    failures = [
        f"{check.get('id')}: {check.get('errorMessage') or check.get('description')}"
        for check in checks
        if str(check.get("status", "")).upper() == "FAILURE"
    ]
    return Ended(
        release=release,
        scenario=scenario,
        passed=statuses.count("SUCCESS"),
        failed=statuses.count("FAILURE") + (0 if found else 1),
        warned=statuses.count("WARNING"),
        note="; ".join(failures) or ("" if found else note),
    )


def _suite(folder: Path, release: str) -> list[str]:
    return [str(node_program()), str(folder / "node_modules" / release / "dist" / "index.js")]


def _program(name: str) -> str:
    """Node's tools come with the environment's own packages, beside its Python."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise SuiteUnavailable(f"There is no {name} beside {sys.executable}.")
    return str(path)


def _environment() -> dict[str, str]:
    """Ours, with Node in the path; the suite's servers listen on this machine."""
    here = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": f"{here}{os.pathsep}{os.environ.get('PATH', '')}",
        "TRELLIS_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
        "TRELLIS_DATA_DIR": str(settings.TRELLIS.data_dir),
    }
