"""`python -m tests.conformance.run`, called by `manage.py conformance`: every client scenario, as a table."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import django
from django.core.management import call_command

from config.bootstrap import ROOT
from tests.conformance.client import SOCKET


def main() -> int:
    """Run the scenarios; 0 if all pass or are explained, 1 if not, 2 if the suite cannot be had."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        return _run(options, Path(scratch), _prepare(Path(scratch)))


def _prepare(scratch: Path) -> Path:
    """Set up an installation of the scenarios' own; gives the folder where the suite is kept between runs."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    kept = Path(os.environ.get("TRELLIS_DATA_DIR") or ROOT / "data") / "conformance"
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    os.environ |= {
        "TRELLIS_DATA_DIR": str(scratch / "data"),
        "TRELLIS_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
        "TRELLIS_PUBLIC_ORIGINS": "https://trellis.example.org",
        SOCKET: str(scratch / "player.sock"),
    }
    django.setup()
    call_command("migrate", verbosity=0)
    return kept


def _run(options: argparse.Namespace, scratch: Path, kept: Path) -> int:
    from tests.conformance import suite
    from tests.conformance.player import playing

    try:
        folder = suite.install(kept)
    except suite.SuiteUnavailable as error:
        sys.stderr.write(f"{error}\n")
        return 2
    ended: list[suite.Ended] = []
    with playing(Path(os.environ[SOCKET])):
        played: set[str] = set()
        for release in suite.RELEASES:
            _say(f"\n{release} {suite.version_of(folder, release)}")
            names = suite.scenarios(folder, release)
            wanted = [name for name in names if not options.scenario or name in options.scenario]
            if options.once:
                wanted = [name for name in wanted if name not in played]
                played |= set(wanted)
            for one in suite.run(folder, release, wanted, options.results or scratch):
                note = one.explanation or one.note
                counts = f"{one.passed:3} passed {one.failed:2} failed {one.warned:2} warned"
                word = "pass" if one.is_good else "FAIL"
                _say(f"  {word}  {one.scenario:45} {counts}  {note}".rstrip())
                ended.append(one)
    bad = [one.scenario for one in ended if not one.is_good]
    _say(f"\n{len(ended)} scenarios, {sum(one.passed for one in ended)} checks passed.")
    if bad:
        _say(f"{len(bad)} failed: {', '.join(bad)}")
    return 1 if bad or not ended else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", action="append", help="only this one; may be repeated")
    parser.add_argument(
        "--once", action="store_true", help="each scenario as the newest release has it"
    )
    parser.add_argument("--results", type=Path, help="a folder that keeps what the suite saw")
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
