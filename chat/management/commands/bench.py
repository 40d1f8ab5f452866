"""manage.py bench: what the product adds to the bare clients, as ratios."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Measure the product against the bare clients, in a database of its own."

    def handle(self, *args: Any, **options: Any) -> None:
        # A process of its own: settings are read once, and these must not be the running product's.
        sys.exit(subprocess.run([sys.executable, "-m", "bench.run"], check=False).returncode)
